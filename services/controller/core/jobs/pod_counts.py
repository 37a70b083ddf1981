"""Counts of a Job's pods, and the status with them. Pure."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from services.controller.core.jobs.observed_pods import SeenPod
from services.controller.core.jobs.states import FINAL, Counts
from shared.kinds.job import Job, JobCondition, JobPhase, JobState, JobStatus, TaskState

_FIELDS: Final = {
    "Pending": "pending",
    "Running": "running",
    "Succeeded": "succeeded",
    "Failed": "failed",
}


def counts_of(pods: Sequence[SeenPod], going: Collection[str] = ()) -> Counts:
    """Count pods by phase; terminating pods (being deleted, released by a binder, or named in
    `going`) are counted separately.
    """
    totals: dict[str, int] = dict.fromkeys(
        ("pending", "running", "succeeded", "failed", "unknown"), 0
    )
    by_task: dict[str, dict[str, int]] = {}
    terminating = 0
    for pod in pods:
        if pod.terminating or pod.released or pod.metadata.name in going:
            terminating += 1
            continue
        phase = pod.status.phase or "Pending"
        totals[_FIELDS.get(phase, "unknown")] += 1
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


def entered(job: Job, status: JobStatus, phase: JobPhase, now_ms: int, why: str = "") -> JobStatus:
    """The status after entering `phase` now, with its condition as the newest."""
    now = datetime.fromtimestamp(now_ms // 1000, UTC)
    kept = tuple(one for one in status.conditions if one.status != phase)
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
