"""Selects the groups whose trace begins with their Job's admission. Pure."""

from typing import Final, TypeGuard

from shared.contracts.identity import gang_trace_id, job_trace_root, traceparent_of
from shared.model.objects import Owner

#: API group of the Jobs whose controller creates PodGroups.
_JOB_API: Final = "batch.volcano.sh/"


def trace_root(claimed: str, owner: Owner | None, namespace: str) -> str:
    """The root of the Job's trace that the group continues; "": the group has a trace of its own.

    The annotation `tutti.dev/trace-root` counts only if it names the Job that owns the group, so
    that no user can write into the trace of another user's gang.

    Args:
        claimed: The annotation's value.
        owner: The group's controller owner.
        namespace: The group's, and so its Job's.
    """
    return job_trace_root(namespace, claimed) if _is_job(owner) and claimed == owner.uid else ""


def link_of_job(owner: Owner | None, namespace: str) -> str:
    """Traceparent of the trace with the admission of the group's Job; "" if no Job owns the group.

    For groups that do not continue this trace: later groups of a Job, and those that Volcano's
    controllers create.
    """
    if not _is_job(owner):
        return ""
    return traceparent_of(gang_trace_id(job_trace_root(namespace, owner.uid), 1))


def _is_job(owner: Owner | None) -> TypeGuard[Owner]:
    return owner is not None and owner.kind == "Job" and owner.api_version.startswith(_JOB_API)
