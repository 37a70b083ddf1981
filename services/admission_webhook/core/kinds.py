"""The table of what the webhook looks at. Looking at another kind is one line more here.

`judge` answers by it, `configurations` registers by it.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from services.admission_webhook.core import (
    gang_marks,
    mutate_job,
    mutate_pod,
    mutate_podgroup,
    mutate_queue,
    priority_classes,
    scheduler_names,
    validate_cronjob,
    validate_hypernode,
    validate_job,
    validate_jobflow,
    validate_pod,
    validate_podgroup,
    validate_queue,
    workloads,
)
from services.admission_webhook.core.case import VOLCANO, Case, job_scheduler
from services.admission_webhook.core.cel import quoted, text_of
from services.admission_webhook.core.parts import text_at
from services.admission_webhook.core.resource_groups import ResourceGroups, membership_expression
from services.admission_webhook.core.review import Operation, PatchOperation, plain_object
from services.admission_webhook.core.scheduler_names import slips
from shared.dialects.protocol import FieldError, JsonObject
from shared.kube.resources import (
    CRONJOBS_VOLCANO,
    HYPERNODES,
    JOBFLOWS,
    JOBS_VOLCANO,
    PODGROUPS_INCUBATOR,
    PODGROUPS_SIGS,
    PODGROUPS_VOLCANO,
    PODS,
    QUEUES_INCUBATOR,
    QUEUES_SIGS,
    QUEUES_VOLCANO,
    Resource,
)


class Guarded(msgspec.Struct, frozen=True, kw_only=True):
    """One resource that the webhook looks at."""

    resource: Resource
    #: Defaults, for objects that are created; None: there are none.
    mutate: Callable[[Case], list[PatchOperation]] | None = None
    validate: Callable[[Case], list[FieldError]]
    #: On which operations it is validated.
    operations: tuple[Operation, ...] = ("CREATE",)
    #: Whether it is for us at all.
    is_ours: Callable[[Case], bool] = lambda _: True
    read: Callable[[msgspec.Raw], JsonObject] = plain_object
    #: CEL by name, given our scheduler names: keeps the API server from asking us about others'
    #: objects. API servers without CEL ask all the same, so `is_ours` says it again.
    conditions: Callable[[tuple[str, ...]], tuple[tuple[str, str], ...]] = lambda _: ()
    #: Given the resource groups: keeps the API server from asking for defaults of others' objects.
    #: None: as `conditions`. "" for no group at all: not asked for defaults of this kind.
    membership: Callable[[ResourceGroups], str] | None = None
    #: The queue that the object names, where it must exist.
    queue: Callable[[JsonObject], str] = lambda _: ""
    #: What is reported of a valid object.
    warn: Callable[[Case], tuple[str, ...]] = lambda _: ()
    #: Nothing of it is checked: a dry run gets whether it would run, and a creation gets warnings
    #: of what `warn` finds.
    only_tried: bool = False


def _spec_queue(candidate: JsonObject) -> str:
    return text_at(candidate, "spec", "queue")


def _is_our_job(case: Case) -> bool:
    """An update that gives a job of ours to another scheduler is ours to refuse."""
    meant = {job_scheduler(case.candidate)}
    if case.operation == "UPDATE":
        meant.add(job_scheduler(case.old))
    return not meant.isdisjoint(case.known.scheduler_names)


def _is_job_for_us(case: Case) -> bool:
    return _is_our_job(case) or bool(scheduler_names.of_job(case))


def _validate_job(case: Case) -> list[FieldError]:
    return validate_job.validate(case) if _is_our_job(case) else []


def _mutate_job(case: Case) -> list[PatchOperation]:
    return mutate_job.mutate(case) if _is_our_job(case) else []


def _warnings_of_job(case: Case) -> tuple[str, ...]:
    if not _is_our_job(case):
        return scheduler_names.of_job(case)
    return (*gang_marks.of_job(case), *priority_classes.of_job(case))


def _our_pods(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Pods of ours, and those that were meant to be: they get a warning."""
    named = "object.spec.schedulerName"
    slipped = f" || {named}.matches({text_of(slips(names))})" if slips(names) else ""
    expression = f"has({named}) && ({named} in [{quoted(names)}]{slipped})"
    return (("names-our-scheduler", expression),)


def _is_pod_for_us(case: Case) -> bool:
    return validate_pod.is_ours(case) or bool(scheduler_names.of_pod(case))


def _validate_pod(case: Case) -> list[FieldError]:
    """Nothing of a pod that only was meant to be ours."""
    return validate_pod.validate(case) if validate_pod.is_ours(case) else []


def _warnings_of_pod(case: Case) -> tuple[str, ...]:
    return (*scheduler_names.of_pod(case), *gang_marks.of_pod(case))


def _members(groups: ResourceGroups) -> str:
    return membership_expression(groups) if groups else ""


def _our_jobs(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """As `_is_our_job`."""
    without = "true" if VOLCANO in names else "false"

    def ours(which: str) -> str:
        named = f"{which}.spec.schedulerName"
        unnamed = f"!has({which}.spec) || !has({named}) || {named} == ''"
        return f"(({unnamed}) ? {without} : {named} in [{quoted(names)}])"

    before = f"(request.operation == 'UPDATE' && {ours('oldObject')})"
    named = "object.spec.schedulerName"
    slipped = f" || (has({named}) && {named}.matches({text_of(slips(names))}))"
    meant = slipped if slips(names) else ""
    return (("names-our-scheduler", f"{ours('object')} || {before}{meant}"),)


def _changes_of_spec(_: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Status and annotations are written by controllers, often: nothing to look at."""
    expression = (
        "request.operation == 'CREATE' || has(object.spec) != has(oldObject.spec) || "
        "(has(object.spec) && object.spec != oldObject.spec)"
    )
    return (("changes-the-spec", expression),)


GUARDED: Final = (
    Guarded(
        resource=PODS,
        mutate=mutate_pod.mutate,
        membership=_members,
        validate=_validate_pod,
        is_ours=_is_pod_for_us,
        read=validate_pod.read_head,
        conditions=_our_pods,
        warn=_warnings_of_pod,
    ),
    Guarded(
        resource=PODGROUPS_INCUBATOR,
        mutate=mutate_podgroup.default_queue_or_empty,
        validate=validate_podgroup.validate_incubator,
        warn=priority_classes.of_pod_group,
        operations=("CREATE", "UPDATE"),
        conditions=_changes_of_spec,
    ),
    Guarded(
        resource=PODGROUPS_SIGS,
        mutate=mutate_podgroup.default_queue_or_empty,
        validate=validate_podgroup.validate_sigs,
        warn=priority_classes.of_pod_group,
        operations=("CREATE", "UPDATE"),
        conditions=_changes_of_spec,
    ),
    Guarded(
        resource=PODGROUPS_VOLCANO,
        mutate=mutate_podgroup.queue_of_namespace,
        validate=validate_podgroup.validate_volcano,
        warn=priority_classes.of_pod_group,
        queue=_spec_queue,
    ),
    Guarded(
        resource=JOBS_VOLCANO,
        mutate=_mutate_job,
        validate=_validate_job,
        operations=("CREATE", "UPDATE"),
        is_ours=_is_job_for_us,
        conditions=_our_jobs,
        queue=_spec_queue,
        warn=_warnings_of_job,
    ),
    Guarded(resource=QUEUES_INCUBATOR, validate=validate_queue.validate_incubator),
    Guarded(resource=QUEUES_SIGS, validate=validate_queue.validate_sigs),
    Guarded(
        resource=QUEUES_VOLCANO,
        mutate=mutate_queue.mutate,
        validate=validate_queue.validate_volcano,
        operations=("CREATE", "UPDATE", "DELETE"),
        queue=validate_queue.parent_of,
    ),
    Guarded(
        resource=JOBFLOWS,
        validate=validate_jobflow.validate,
        operations=("CREATE", "UPDATE"),
        conditions=_changes_of_spec,
    ),
    Guarded(
        resource=HYPERNODES,
        validate=validate_hypernode.validate,
        operations=("CREATE", "UPDATE"),
        conditions=_changes_of_spec,
    ),
    Guarded(
        resource=CRONJOBS_VOLCANO,
        validate=validate_cronjob.validate,
        operations=("CREATE", "UPDATE"),
        is_ours=validate_cronjob.is_ours,
        conditions=_changes_of_spec,
        warn=validate_cronjob.warnings,
    ),
    *(
        Guarded(
            resource=resource,
            validate=lambda _: [],
            is_ours=workloads.is_for_us,
            conditions=workloads.conditions,
            warn=workloads.warnings,
            only_tried=True,
        )
        for resource in workloads.RESOURCES
    ),
)

#: (group, plural) -> what to do.
BY_RESOURCE: Final = {(one.resource.group, one.resource.plural): one for one in GUARDED}
