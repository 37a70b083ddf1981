"""Workloads of other controllers. They are not validated, only advised on.

A dry run (`--dry-run=server`) returns whether the pods would run. A creation returns warnings about
names in the pod templates that do not exist: without them only the workload's controller would see
the problem, not its author.
"""

from collections.abc import Iterator
from typing import Final

from shared.admission import gang_annotations, scheduler_names
from shared.admission.gang_declarations import (
    misdirected_expression,
    reference_expression,
)
from shared.admission.parts import as_object, member, text_at
from shared.admission.rules import (
    Case,
    Conditions,
    KindRules,
    quoted,
    string_literal,
)
from shared.admission.warnings import misdirected_pods
from shared.dialects.owner_kinds import OWNER_KINDS
from shared.dialects.pod_vocabulary import pod_vocabulary
from shared.dialects.protocol import JsonObject
from shared.dialects.workloads import parts_of
from shared.kube.resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    TRAINING_JOBS,
    Resource,
)

RESOURCES: Final = (
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    DAEMON_SETS,
    Resource("batch", "v1", "cronjobs", "CronJob"),
    *(kind.resource for kind in OWNER_KINDS if kind.resource != PODS),
    *TRAINING_JOBS,
)


def _is_ours(case: Case) -> bool:
    """Whether a pod template names one of our schedulers, or the workload has a scheduling policy;
    with one, the training operators set the scheduler name themselves.
    """
    candidate = case.candidate
    if as_object(member(candidate, "spec", "runPolicy", "schedulingPolicy")) is not None:
        return True
    names = set(case.known.scheduler_names)
    return any(
        text_at(template, "spec", "schedulerName") in names for template in _templates(candidate)
    )


def _is_relevant(case: Case) -> bool:
    """Whether a template's scheduler name is a likely misspelling of one of ours, or ignores the
    gang that the template declares; or the workload has an annotation of ours.
    """
    if gang_annotations.is_relevant(case.candidate, _annotated(case.candidate)):
        return True
    return bool(_misspelt(case)) or bool(_misdirected(case))


def _warnings(case: Case) -> tuple[str, ...]:
    """Warnings about the scheduler names in its pod templates, and about its annotations."""
    noted = gang_annotations.warnings_of(case, _pod_templates(case.candidate))
    return (*_misspelt(case), *_misdirected(case), *noted)


def _priority_classes(case: Case) -> Iterator[str]:
    for template in _templates(case.candidate):
        yield text_at(template, "spec", "priorityClassName")


def _conditions(names: tuple[str, ...]) -> Conditions:
    """Dry runs, and creations that may need a warning. An object that a controller creates needs
    none: no user would read it.
    """
    template = "object.spec.template.spec"
    given = (
        "!has(object.metadata.ownerReferences) && has(object.spec) && "
        f"has(object.spec.template) && has({template}) && has({template}.schedulerName)"
    )
    named = f"{template}.schedulerName"
    references = pod_vocabulary().references.to_objects
    names_group = reference_expression("object.spec.template", references)
    checked = f"has({template}.priorityClassName) || {names_group}"
    ours = f"({named} in [{quoted(names)}] && ({checked}))"
    pattern = scheduler_names.misspellings(names)
    misspelt = f" || {named}.matches({string_literal(pattern)})" if pattern else ""
    worthy = f"{ours}{misspelt} || {misdirected_expression('object.spec.template')}"
    dry_run = "has(request.dryRun) && request.dryRun"
    by_user = "!has(object.metadata.ownerReferences)"
    spec = "has(object.spec) && has(object.spec"
    noted = " || ".join(
        (
            gang_annotations.has_any("object"),
            f"({spec}.template) && {gang_annotations.has_any('object.spec.template')})",
            f"({spec}.jobTemplate) && {gang_annotations.has_any('object.spec.jobTemplate')})",
        )
    )
    expression = f"({dry_run}) || ({given} && ({worthy})) || ({by_user} && ({noted}))"
    return (("is-a-dry-run-or-worth-a-warning", expression),)


def _misspelt(case: Case) -> tuple[str, ...]:
    named = (text_at(template, "spec", "schedulerName") for template in _templates(case.candidate))
    names = dict.fromkeys(named)
    return tuple(warning for name in names for warning in scheduler_names.of_name(name, case))


def _misdirected(case: Case) -> tuple[str, ...]:
    return misdirected_pods(_templates(case.candidate), case)


def _annotated(candidate: JsonObject) -> Iterator[JsonObject]:
    """What of it may have annotations of ours, besides the object itself."""
    job = as_object(member(candidate, "spec", "jobTemplate"))
    if job is not None:
        yield job
    yield from _pod_templates(candidate)


def _pod_templates(candidate: JsonObject) -> Iterator[JsonObject]:
    """The templates of its pods, also of kinds without a number of pods."""
    templates = list(_templates(candidate))
    holders = (candidate, as_object(member(candidate, "spec", "jobTemplate")) or {})
    single = (as_object(member(holder, "spec", "template")) for holder in holders)
    yield from templates or (template for template in single if template is not None)


def _templates(candidate: JsonObject) -> Iterator[JsonObject]:
    kind = text_at(candidate, "kind")
    api_group = text_at(candidate, "apiVersion").rpartition("/")[0]
    try:
        parts = [*parts_of(kind, api_group, as_object(candidate.get("spec")) or {})]
    except ValueError:
        # The API server, or the workload's own webhook, reports what is wrong with it.
        return
    yield from (part.template for part in parts)


RULES = tuple(
    KindRules(
        resource=resource,
        is_ours=_is_ours,
        is_relevant=_is_relevant,
        conditions=_conditions,
        priority_classes=_priority_classes,
        warnings=_warnings,
        is_advisory=True,
    )
    for resource in RESOURCES
)
