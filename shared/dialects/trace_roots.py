"""Which group's trace begins with a Job: pure, for readers of groups and for admission."""

from typing import Final, TypeGuard

from shared.contracts.identity import gang_trace_id, traceparent_of
from shared.model.objects import Owner

#: What makes PodGroups for its Jobs.
_JOB_API: Final = "batch.volcano.sh/"


def trace_root(claimed: str, owner: Owner | None) -> str:
    """UID of the Job whose trace the group continues; "": the group has a trace of its own.

    What the annotation `tutti.dev/trace-root` claims is believed only of the group's own Job:
    no user gets into the trace of another user's gang.
    """
    return claimed if _is_job(owner) and claimed == owner.uid else ""


def link_of_job(owner: Owner | None) -> str:
    """Traceparent of the trace in which the admission of the group's Job is exported, for groups
    that do not continue it: later ones of a Job, and those that Volcano's controllers make. "" when
    no Job owns the group.
    """
    return traceparent_of(gang_trace_id(owner.uid, 1)) if _is_job(owner) else ""


def _is_job(owner: Owner | None) -> TypeGuard[Owner]:
    return owner is not None and owner.kind == "Job" and owner.api_version.startswith(_JOB_API)
