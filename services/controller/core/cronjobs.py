"""The plan for one CronJob: from the CronJob, its Jobs and the time to the writes that are due.
Pure.

It is level-triggered: a Job's name contains the minute in which it was due, so that it cannot be
created twice; its active Jobs are those that exist and have not finished (an Aborted Job has not).
"""

from collections import deque
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from itertools import islice
from typing import Final

import msgspec

from services.controller.core.events import ControllerEvent
from shared.kinds.cron_schedule import Every, Schedule
from shared.kinds.cronjob import SCHEDULED_TIMESTAMP, CronJob, CronJobStatus, ObjectReference
from shared.kinds.job import FINISHED_PHASES, Job
from shared.kinds.metadata import Metadata, controlled_by

#: More missed starts cause a warning: a clock was wrong, or no controller ran.
_MISSED_MAX: Final = 100
#: Windows before now in which the most recent start is searched, one after the other.
_WINDOWS: Final = tuple(timedelta(days=days) for days in (1 / 1440, 1 / 24, 1, 32, 366, 9 * 366))
#: Thirty years; a longer deadline could exceed the calendar.
_DEADLINE_S_MAX: Final = 10**9
#: Finished phases that are a success.
_SUCCESSFUL: Final = frozenset({"Completed"})
#: Finished Jobs that are kept by default.
_SUCCESSFUL_KEPT: Final = 3
_FAILED_KEPT: Final = 1


class CronPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The writes for one CronJob, in the order events, deletions, start, status."""

    status: CronJobStatus
    events: tuple[ControllerEvent, ...] = ()
    delete: tuple[Job, ...] = ()
    #: The instant for which a Job is to be created now; None: no Job is due.
    start: datetime | None = None
    #: The instant of the next start; None: there is none.
    next: datetime | None = None


def plan(
    cron: CronJob, jobs: Sequence[Job], now: datetime, schedule: Schedule, zone: tzinfo
) -> CronPlan:
    """Plan the writes that are due for a stored CronJob and the Jobs that it owns. `now` has a time
    zone; `zone` is that of the schedule.
    """
    active = [job for job in jobs if job.status.state.phase not in FINISHED_PHASES]
    events = _events_of_ended_jobs(cron, jobs)
    delete = _surplus(cron, jobs)
    last = cron.status.last_schedule_time
    missed = [] if cron.spec.suspend else _missed(cron, now, schedule, zone)
    start = missed[-1] if missed else None
    if start is not None and any(job.metadata.name == _name(cron, start) for job in jobs):
        # Created by a controller that was killed or superseded before it wrote the status: the Job
        # must not count as a concurrent one.
        last, start, missed = start, None, []
    if len(missed) > _MISSED_MAX:
        events.append(
            ControllerEvent(
                "Warning",
                "TooManyMissedTimes",
                "too many missed start times. Set or decrease "
                ".spec.startingDeadlineSeconds or check clock skew",
            )
        )
    if start is not None and active:
        if cron.spec.concurrency_policy == "Forbid":
            message = "Skipping job creation because another job is already running"
            events.append(ControllerEvent("Warning", "ForbidConcurrent", message))
            start = None
        elif cron.spec.concurrency_policy == "Replace":
            message = "Replacing active job for CronJob"
            events.append(ControllerEvent("Warning", "ReplaceConcurrent", message))
            delete += active
            active = []
    return CronPlan(
        status=CronJobStatus(
            active=tuple(_reference(job) for job in active),
            last_schedule_time=last if start is None else start,
            last_successful_time=_last_success(cron, jobs),
        ),
        events=tuple(events),
        delete=tuple(delete),
        start=start,
        next=None if cron.spec.suspend else schedule.next_after(_base(cron, schedule, now), zone),
    )


def with_job(status: CronJobStatus, job: Job) -> CronJobStatus:
    """The status with a Job that was just created."""
    known = {reference.uid: reference for reference in status.active} | {
        job.metadata.uid: _reference(job)
    }
    return msgspec.structs.replace(status, active=tuple(known.values()))


def job_of(cron: CronJob, due: datetime, zone: tzinfo) -> Job:
    """The Job for a start that was due at `due`."""
    template = cron.spec.job_template
    local = due.astimezone(zone).isoformat(timespec="seconds").replace("+00:00", "Z")
    return Job(
        metadata=Metadata(
            name=_name(cron, due),
            namespace=cron.metadata.namespace,
            labels=template.metadata.labels,
            annotations={**template.metadata.annotations, SCHEDULED_TIMESTAMP: local},
            owner_references=(controlled_by(cron),),
        ),
        spec=template.spec,
    )


def _name(cron: CronJob, due: datetime) -> str:
    return f"{cron.metadata.name}-{int(due.timestamp()) // 60}"


def _missed(cron: CronJob, now: datetime, schedule: Schedule, zone: tzinfo) -> list[datetime]:
    """Missed starts, the most recent last; at most one more than `_MISSED_MAX`."""
    earliest = cron.status.last_schedule_time or cron.metadata.creation_timestamp or now
    deadline_s = cron.spec.starting_deadline_seconds
    if deadline_s is not None:
        earliest = max(earliest, now - timedelta(seconds=min(deadline_s, _DEADLINE_S_MAX)))
    if isinstance(schedule, Every):
        return _missed_periods(earliest, now, schedule)
    missed = list(islice(_walk(earliest, now, schedule, zone), _MISSED_MAX + 1))
    if len(missed) <= _MISSED_MAX:
        return missed
    # Too many to enumerate: search the most recent one backwards.
    for window in _WINDOWS:
        recent = deque(_walk(max(earliest, now - window), now, schedule, zone), maxlen=1)
        if recent:
            return [*missed[:_MISSED_MAX], recent[0]]
    return missed


def _walk(since: datetime, now: datetime, schedule: Schedule, zone: tzinfo) -> Iterator[datetime]:
    following = schedule.next_after(since, zone)
    while following is not None and following <= now:
        yield following
        following = schedule.next_after(following, zone)


def _missed_periods(earliest: datetime, now: datetime, every: Every) -> list[datetime]:
    earliest = earliest.replace(microsecond=0)
    count = max(0, (now - earliest) // every.period)
    first = max(1, count - _MISSED_MAX)
    return [earliest + every.period * number for number in range(first, count + 1)]


def _base(cron: CronJob, schedule: Schedule, now: datetime) -> datetime:
    """The instant from which the next start is computed."""
    if not isinstance(schedule, Every):
        return now
    earliest = cron.status.last_schedule_time or cron.metadata.creation_timestamp or now
    earliest = earliest.replace(microsecond=0)
    return earliest + schedule.period * max(0, (now - earliest) // schedule.period)


def _events_of_ended_jobs(cron: CronJob, jobs: Sequence[Job]) -> list[ControllerEvent]:
    """Events about Jobs that are active in the stored status and have ended since then."""
    by_uid = {job.metadata.uid: job for job in jobs}
    events: list[ControllerEvent] = []
    for reference in cron.status.active:
        job = by_uid.get(reference.uid)
        if job is None:
            message = f"Active job went missing: {reference.name}"
            events.append(ControllerEvent("Normal", "StaleReference", message))
        elif job.status.state.phase in FINISHED_PHASES:
            message = f"Saw completed job: {reference.name} in active, remove"
            events.append(ControllerEvent("Normal", "SawCompletedJob", message))
    return events


def _surplus(cron: CronJob, jobs: Sequence[Job]) -> list[Job]:
    """Finished Jobs beyond the kept number, the oldest first. A Terminated Job counts as failed: it
    will not run again, and in Volcano, which counts it nowhere, such Jobs add up without end.
    """
    surplus: list[Job] = []
    limits = (
        (_SUCCESSFUL, cron.spec.successful_jobs_history_limit, _SUCCESSFUL_KEPT),
        (FINISHED_PHASES - _SUCCESSFUL, cron.spec.failed_jobs_history_limit, _FAILED_KEPT),
    )
    for phases, limit, default in limits:
        kept = default if limit is None else limit
        ended = sorted(
            (
                job
                for job in jobs
                if job.status.state.phase in phases and job.metadata.deletion_timestamp is None
            ),
            key=lambda job: (job.metadata.created_ms, job.metadata.name),
        )
        surplus += ended[: max(0, len(ended) - kept)]
    return surplus


def _last_success(cron: CronJob, jobs: Sequence[Job]) -> datetime | None:
    ends = [
        job.status.state.last_transition_time
        for job in jobs
        if job.status.state.phase == "Completed"
    ]
    known = [end for end in (*ends, cron.status.last_successful_time) if end is not None]
    return max(known, default=None)


def _reference(job: Job) -> ObjectReference:
    return ObjectReference(
        api_version=job.api_version,
        kind=job.kind,
        namespace=job.metadata.namespace,
        name=job.metadata.name,
        uid=job.metadata.uid,
    )
