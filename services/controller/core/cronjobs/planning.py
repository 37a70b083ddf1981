"""From a CronJob, its Jobs and the time to what is to be done now, and when to look again.

Pure and level-triggered: a Job's name is that of the minute it was due, so that making it twice is
impossible; what is active is what is there and has not finished (an Aborted Job has not).
"""

from collections import deque
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from itertools import islice
from typing import Final, Literal

import msgspec

from shared.kinds.cron_schedule import Every, Schedule
from shared.kinds.cronjob import (
    SCHEDULED_TIMESTAMP,
    CronJob,
    CronJobStatus,
    ObjectReference,
)
from shared.kinds.job import FINISHED_PHASES, Job
from shared.kinds.metadata import Metadata, controlled_by

#: More missed starts than this are worth a warning: a clock was wrong, or no controller ran.
_MISSED_MAX: Final = 100
#: How far back the most recent start is looked for, step by step.
_WINDOWS: Final = tuple(timedelta(days=days) for days in (1 / 1440, 1 / 24, 1, 32, 366, 9 * 366))
#: Thirty years: with longer ones the calendar ends before they do.
_DEADLINE_S_MAX: Final = 10**9
#: Kept unless the CronJob says otherwise.
_SUCCESSFUL_KEPT: Final = 3
_FAILED_KEPT: Final = 1


class CronEvent(msgspec.Struct, frozen=True):
    """An Event about the CronJob."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class CronPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done for one CronJob: news, then deletions, then the start, then the status."""

    status: CronJobStatus
    news: tuple[CronEvent, ...] = ()
    delete: tuple[Job, ...] = ()
    #: The instant of the Job that is to be made now.
    start: datetime | None = None
    #: When something is due next.
    next: datetime | None = None


def plan(
    cron: CronJob, jobs: Sequence[Job], now: datetime, schedule: Schedule, zone: tzinfo
) -> CronPlan:
    """What is to be done now.

    Args:
        cron: As it is stored.
        jobs: Those that it owns.
        now: The time, which knows its zone.
        schedule: Its schedule.
        zone: Whose clock the schedule is read by.
    """
    active = [job for job in jobs if job.status.state.phase not in FINISHED_PHASES]
    news = _news_of_the_ended(cron, jobs)
    delete = _surplus(cron, jobs)
    last = cron.status.last_schedule_time
    missed = [] if cron.spec.suspend else _missed(cron, now, schedule, zone)
    start = missed[-1] if missed else None
    if start is not None and any(job.metadata.name == _name(cron, start) for job in jobs):
        # Created by a controller that was killed or superseded before the status showed it: its own
        # Job must not count as the one that is in its way.
        last, start, missed = start, None, []
    if len(missed) > _MISSED_MAX:
        news.append(
            CronEvent(
                "Warning",
                "TooManyMissedTimes",
                "too many missed start times. Set or decrease "
                ".spec.startingDeadlineSeconds or check clock skew",
            )
        )
    if start is not None and active:
        if cron.spec.concurrency_policy == "Forbid":
            told = "Skipping job creation because another job is already running"
            news.append(CronEvent("Warning", "ForbidConcurrent", told))
            start = None
        elif cron.spec.concurrency_policy == "Replace":
            told = "Replacing active job for CronJob"
            news.append(CronEvent("Warning", "ReplaceConcurrent", told))
            delete += active
            active = []
    return CronPlan(
        status=CronJobStatus(
            active=tuple(_reference(job) for job in active),
            last_schedule_time=last if start is None else start,
            last_successful_time=_last_success(cron, jobs),
        ),
        news=tuple(news),
        delete=tuple(delete),
        start=start,
        next=None if cron.spec.suspend else schedule.next_after(_base(cron, schedule, now), zone),
    )


def with_job(status: CronJobStatus, job: Job) -> CronJobStatus:
    """The status once this Job was made."""
    known = {one.uid: one for one in status.active} | {job.metadata.uid: _reference(job)}
    return msgspec.structs.replace(status, active=tuple(known.values()))


def job_of(cron: CronJob, due: datetime, zone: tzinfo) -> Job:
    """The Job of the minute at which it was due."""
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
    """Starts that were due and not made, the most recent last; at most one more than may pass."""
    earliest = cron.status.last_schedule_time or cron.metadata.creation_timestamp or now
    deadline_s = cron.spec.starting_deadline_seconds
    if deadline_s is not None:
        earliest = max(earliest, now - timedelta(seconds=min(deadline_s, _DEADLINE_S_MAX)))
    if isinstance(schedule, Every):
        return _missed_periods(earliest, now, schedule)
    missed = list(islice(_walk(earliest, now, schedule, zone), _MISSED_MAX + 1))
    if len(missed) <= _MISSED_MAX:
        return missed
    # Too many to walk through: the most recent one is near the end.
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
    """What the next instant is counted from."""
    if not isinstance(schedule, Every):
        return now
    earliest = cron.status.last_schedule_time or cron.metadata.creation_timestamp or now
    earliest = earliest.replace(microsecond=0)
    return earliest + schedule.period * max(0, (now - earliest) // schedule.period)


def _news_of_the_ended(cron: CronJob, jobs: Sequence[Job]) -> list[CronEvent]:
    """What became of the Jobs that were active at the last look."""
    by_uid = {job.metadata.uid: job for job in jobs}
    news: list[CronEvent] = []
    for one in cron.status.active:
        job = by_uid.get(one.uid)
        if job is None:
            told = f"Active job went missing: {one.name}"
            news.append(CronEvent("Normal", "StaleReference", told))
        elif job.status.state.phase in FINISHED_PHASES:
            told = f"Saw completed job: {one.name} in active, remove"
            news.append(CronEvent("Normal", "SawCompletedJob", told))
    return news


def _surplus(cron: CronJob, jobs: Sequence[Job]) -> list[Job]:
    """Finished Jobs beyond those that are kept, the oldest first."""
    surplus: list[Job] = []
    limits = (
        ("Completed", cron.spec.successful_jobs_history_limit, _SUCCESSFUL_KEPT),
        ("Failed", cron.spec.failed_jobs_history_limit, _FAILED_KEPT),
    )
    for phase, limit, default in limits:
        kept = default if limit is None else limit
        ended = sorted(
            (
                job
                for job in jobs
                if job.status.state.phase == phase and job.metadata.deletion_timestamp is None
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
