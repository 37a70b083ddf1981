"""The Job's state machine, as tables.

                    RestartJob, RestartTask/Pod/Partition
          ┌──────────────────────────────────────────────────┐
          ▼                                                  │
    Pending ◀──▶ Running ──AbortJob──▶ Aborting ─▶ Aborted ──┤ ResumeJob
      ▲             │ └───CompleteJob▶ Completing ─▶ Completed
      │             └───TerminateJob─▶ Terminating ─▶ Terminated
    Restarting ─────────────────────▶ Failed

A kill is written before its pods are deleted. From Restarting, abort, completion and termination
have the same effect as from Running (Volcano ignores them there).
"""

from typing import Final

import msgspec

from shared.kinds.job import Job, JobPhase


class Kill(msgspec.Struct, frozen=True, kw_only=True):
    """Leave the phase for `to` by deleting pods: a part of them, or all."""

    to: JobPhase
    part: bool = False
    #: Whether it counts against maxRetry.
    retry: bool = False


_FULL: Final = {
    "RestartJob": Kill(to="Restarting", retry=True),
    "RestartTask": Kill(to="Restarting", retry=True, part=True),
    "RestartPod": Kill(to="Restarting", retry=True, part=True),
    "RestartPartition": Kill(to="Restarting", retry=True, part=True),
    "AbortJob": Kill(to="Aborting"),
    "TerminateJob": Kill(to="Terminating"),
    "CompleteJob": Kill(to="Completing"),
}
# A further restart while restarting counts as no retry.
_RESTARTING: Final = {
    "RestartJob": Kill(to="Restarting"),
    **{name: _FULL[name] for name in ("AbortJob", "TerminateJob", "CompleteJob")},
}
# A resumed job has not failed, so this counts as no retry (Volcano counts one).
_RESUME: Final = {"ResumeJob": Kill(to="Restarting")}

KILLS: Final[dict[JobPhase, dict[str, Kill]]] = {
    "Pending": _FULL,
    "Running": _FULL,
    "Restarting": _RESTARTING,
    "Aborting": _RESUME,
    "Aborted": _RESUME,
    "Completing": {},
    "Terminating": {},
    "Completed": {},
    "Terminated": {},
    "Failed": {},
}

#: Phases in which all pods that have not ended are deleted -> the phase when none is left.
LEADS_TO: Final[dict[JobPhase, JobPhase]] = {
    "Aborting": "Aborted",
    "Aborted": "Aborted",
    "Completing": "Completed",
    "Completed": "Completed",
    "Terminating": "Terminated",
    "Terminated": "Terminated",
    "Failed": "Failed",
}
FINAL: Final = frozenset({"Completed", "Terminated", "Failed"})


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """A job's pods by phase; terminating pods are counted separately."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    by_task: dict[str, dict[str, int]] = {}


def after_sync(job: Job, counts: Counts, replicas: int, minima: int) -> JobPhase:
    """The phase of a Pending or Running job with these pods.

    Args:
        job: The job with its defaults.
        counts: Its pods.
        replicas: The number of pods in its spec.
        minima: The sum of its tasks' `minAvailable`.
    """
    spec = job.spec
    if job.status.state.phase != "Running":
        up = counts.running + counts.succeeded + counts.failed
        return "Running" if up >= spec.min_available else "Pending"
    if replicas == 0:
        return "Running"
    if spec.min_success is not None and counts.succeeded >= spec.min_success:
        return "Completed"
    if counts.succeeded + counts.failed == replicas:
        return _ended(job, counts, minima)
    return "Pending" if counts.pending > replicas - spec.min_available else "Running"


def _ended(job: Job, counts: Counts, minima: int) -> JobPhase:
    """The phase of a job whose pods have all ended."""
    spec = job.spec
    if spec.min_available >= minima:
        for task in spec.tasks:
            done = counts.by_task.get(task.name, {}).get("Succeeded", 0)
            if done < (task.min_available or 0):
                return "Failed"
    if spec.min_success is not None:
        return "Failed"
    return "Completed" if counts.succeeded >= spec.min_available else "Failed"
