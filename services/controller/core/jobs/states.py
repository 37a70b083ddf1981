"""The Job's state machine, as tables; counts of its pods, and the status with them. Pure.

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

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from services.controller.core.jobs.step import SeenPod
from shared.kinds.job import Job, JobCondition, JobPhase, JobState, JobStatus, TaskState


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

#: Phase -> action -> the kill. In all other phases an action has no effect.
KILLS: Final[dict[JobPhase, dict[str, Kill]]] = {
    "Pending": _FULL,
    "Running": _FULL,
    "Restarting": _RESTARTING,
    "Aborting": _RESUME,
    "Aborted": _RESUME,
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
    """The phase of a Pending or Running job (with its defaults) with these pods. `replicas` is the
    number of pods in its spec, `minima` the sum of its tasks' `minAvailable`.
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


def counts_of(pods: Sequence[SeenPod], going: Collection[str] = ()) -> Counts:
    """Count pods by phase; terminating pods (being deleted, released by a binder, or named in
    `going`) are counted separately.
    """
    totals = dict.fromkeys(("pending", "running", "succeeded", "failed", "unknown"), 0)
    by_task: dict[str, dict[str, int]] = {}
    terminating = 0
    for pod in pods:
        if pod.terminating or pod.released or pod.metadata.name in going:
            terminating += 1
            continue
        phase = pod.status.phase or "Pending"
        field = phase.lower()
        totals[field if field in totals else "unknown"] += 1
        phases = by_task.setdefault(pod.task, {})
        phases[phase] = phases.get(phase, 0) + 1
    return Counts(terminating=terminating, by_task=by_task, **totals)


def counted(status: JobStatus, counts: Counts) -> JobStatus:
    """The status with these counts.

    In a final phase, pods that have ended stay counted after their deletion, so that the status
    keeps the job's result (Volcano loses it).
    """
    by_task = {name: TaskState(phase=phases) for name, phases in sorted(counts.by_task.items())}
    succeeded, failed = counts.succeeded, counts.failed
    if status.state.phase in FINAL and succeeded + failed < status.succeeded + status.failed:
        succeeded, failed = status.succeeded, status.failed
        by_task = {
            name: TaskState(phase=ended)
            for name, state in status.task_status_count.items()
            if (ended := {k: n for k, n in state.phase.items() if k in ("Succeeded", "Failed")})
        }
    return msgspec.structs.replace(
        status,
        pending=counts.pending,
        running=counts.running,
        succeeded=succeeded,
        failed=failed,
        terminating=counts.terminating,
        unknown=counts.unknown,
        task_status_count=by_task,
    )


def unfinished(old: JobStatus, new: JobStatus) -> JobStatus:
    """The status `new` of a step of which a write has failed: the objects that `old` lists stay
    listed, so that a later step deletes those that still exist.
    """
    listed = {**old.controlled_resources, **new.controlled_resources}
    return msgspec.structs.replace(new, controlled_resources=listed)


def entered(job: Job, status: JobStatus, phase: JobPhase, now_ms: int, why: str = "") -> JobStatus:
    """The status after entering `phase` now, with its condition as the newest."""
    now = datetime.fromtimestamp(now_ms // 1000, UTC)
    kept = tuple(condition for condition in status.conditions if condition.status != phase)
    lasted_ms = max(0, now_ms - job.metadata.created_ms) // 1000 * 1000
    return msgspec.structs.replace(
        status,
        state=JobState(phase=phase, reason=why, last_transition_time=now),
        conditions=(*kept, JobCondition(status=phase, last_transition_time=now)),
        running_duration=go_duration(lasted_ms) if phase in FINAL else status.running_duration,
    )


def go_duration(ms: int) -> str:
    """A duration as Go prints it: "7s", "1m30s", "2h0m0s", "500ms"."""
    if 0 < ms < 1000:
        return f"{ms}ms"
    seconds, rest_ms = divmod(ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    part = f".{rest_ms:03d}".rstrip("0") if rest_ms else ""
    text = f"{seconds}{part}s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text
