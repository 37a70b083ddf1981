"""The rules of Volcano Jobs: which Jobs are ours, and their defaults, violations and warnings."""

from collections.abc import Iterator

from shared.admission import scheduler_names
from shared.admission.jobs.defaults import defaults
from shared.admission.jobs.validation import violations
from shared.admission.parts import text_at
from shared.admission.rules import Case, Conditions, KindRules, quoted, string_literal
from shared.admission.scheduler_names import VOLCANO, job_scheduler
from shared.admission.warnings import task_templates, unread_marks_of_job
from shared.kube.resources import JOBS_VOLCANO


def _is_ours(case: Case) -> bool:
    """Whether the job has a scheduler of ours, or an update takes it away from one."""
    schedulers = {job_scheduler(case.candidate)}
    if case.operation == "UPDATE":
        schedulers.add(job_scheduler(case.old))
    return not schedulers.isdisjoint(case.known.scheduler_names)


def _conditions(names: tuple[str, ...]) -> Conditions:
    """Jobs of ours, and those whose scheduler name is a likely misspelling of one of ours."""
    unnamed_is_ours = "true" if VOLCANO in names else "false"

    def ours(variable: str) -> str:
        named = f"{variable}.spec.schedulerName"
        unnamed = f"!has({variable}.spec) || !has({named}) || {named} == ''"
        return f"(({unnamed}) ? {unnamed_is_ours} : {named} in [{quoted(names)}])"

    before = f"(request.operation == 'UPDATE' && {ours('oldObject')})"
    named = "object.spec.schedulerName"
    pattern = scheduler_names.misspellings(names)
    misspelt = f" || (has({named}) && {named}.matches({string_literal(pattern)}))"
    return (("names-our-scheduler", f"{ours('object')} || {before}{misspelt if pattern else ''}"),)


def _warnings(case: Case) -> tuple[str, ...]:
    if not _is_ours(case):
        return scheduler_names.of_job(case)
    return unread_marks_of_job(case)


def _priority_classes(case: Case) -> Iterator[str]:
    """Those of its pods, which the API server would refuse if one did not exist."""
    yield text_at(case.candidate, "spec", "priorityClassName")
    for template in task_templates(case.candidate):
        yield text_at(template, "spec", "priorityClassName")


RULES = KindRules(
    resource=JOBS_VOLCANO,
    defaults=defaults,
    violations=violations,
    operations=("CREATE", "UPDATE"),
    is_ours=_is_ours,
    is_relevant=lambda case: bool(scheduler_names.of_job(case)),
    conditions=_conditions,
    queue=lambda candidate: text_at(candidate, "spec", "queue"),
    priority_classes=_priority_classes,
    warnings=_warnings,
)
