"""The controller of CronJobs: creates Jobs when they are due, and deletes old finished ones."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from services.controller.core.cronjobs import CronPlan, job_of, plan, with_job
from services.controller.core.events import ControllerEvent, EventType
from services.controller.reconciling.controller import Runtime, Wake
from services.controller.reconciling.informer import Informer, latest
from services.controller.reconciling.writes import Outcome
from shared.kinds.cron_schedule import Schedule, ScheduleError, parse
from shared.kinds.cronjob import CronJob, CronJobStatus
from shared.kinds.job import FINISHED_PHASES, Job
from shared.kube.errors import ApiError, KubeError
from shared.kube.resources import CRONJOBS_VOLCANO, JOBS_VOLCANO

#: A moment after the instant: too early, nothing would be due.
_LATE_S: Final = 0.1
#: Attempts to write a status; after them it is planned again.
_STATUS_TRIES: Final = 4

Now = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


class CronJobReconciler:
    """A CronJob's key is its "namespace/name"."""

    name = "cronjob"

    def __init__(self, runtime: Runtime, now: Now = utc_now) -> None:
        self._client = runtime.client
        self._writes = runtime.writes
        self._events = runtime.events
        self._now = now
        self._crons = runtime.informers.of(CRONJOBS_VOLCANO, CronJob)
        self._jobs = runtime.informers.of(JOBS_VOLCANO, Job)

    def watches(self, wake: Wake) -> Iterable[Informer[Any]]:
        def cron_changed(_old: CronJob | None, new: CronJob | None) -> None:
            if new is not None:
                wake(new.metadata.key)

        def job_changed(old: Job | None, new: Job | None) -> None:
            job = latest(old, new)
            owner = job.metadata.controller
            if owner is not None and owner.kind == CRONJOBS_VOLCANO.kind:
                wake(f"{job.metadata.namespace}/{owner.name}")

        self._crons.on_change(cron_changed)
        self._jobs.on_change(job_changed)
        return self._crons, self._jobs

    def keys(self) -> Iterable[str]:
        return self._crons.keys()

    async def reconcile(self, key: str) -> float | None:
        """Perform what is due, and return the seconds until the next start."""
        cron = self._crons.get(key)
        if cron is None or cron.metadata.deletion_timestamp is not None:
            return None
        clock = self._clock(cron)
        if clock is None:
            return None
        schedule, zone = clock
        now = self._now()
        jobs = self._jobs.owned_by(cron.metadata.uid, namespace=cron.metadata.namespace)
        decided = plan(cron, jobs, now, schedule, zone)
        self._events.record(CRONJOBS_VOLCANO, cron.metadata, *decided.events)
        refused = await self._delete(cron, decided.delete)
        try:
            status = await self._start(cron, decided, zone)
        except ApiError as error:
            # The status is of the Jobs that there are.
            last = cron.status.last_schedule_time
            status = msgspec.structs.replace(decided.status, last_schedule_time=last)
            refused = error
        await self._write_status(cron, status)
        if refused is not None:
            raise refused
        if decided.next is None:
            return None
        return max(0.0, (decided.next - self._now()).total_seconds()) + _LATE_S

    def _clock(self, cron: CronJob) -> tuple[Schedule, tzinfo] | None:
        """The schedule and its time zone; None when one of them is invalid, which is reported. The
        webhook refuses such a CronJob.
        """
        if "TZ=" in cron.spec.schedule:
            message = "TZ and CRON_TZ belong into spec.timeZone"
            self._report(cron, "Warning", "UnsupportedSchedule", message)
            return None
        try:
            schedule = parse(cron.spec.schedule)
        except ScheduleError as error:
            message = f"unparseable schedule: {error}"
            self._report(cron, "Warning", "UnParseableCronJobSchedule", message)
            return None
        if cron.spec.time_zone is None:
            return schedule, UTC
        try:
            return schedule, ZoneInfo(cron.spec.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            message = f"unknown time zone: {cron.spec.time_zone}"
            self._report(cron, "Warning", "InvalidTimeZone", message)
            return None

    async def _start(self, cron: CronJob, decided: CronPlan, zone: tzinfo) -> CronJobStatus:
        """Create the Job that is due, and return the status with it.

        Raises KubeError when it is refused; then the start is tried again.
        """
        if decided.start is None:
            return decided.status
        job = job_of(cron, decided.start, zone)
        namespace, name = cron.metadata.namespace, job.metadata.name
        try:
            made = await self._writes.create(JOBS_VOLCANO, job, namespace=namespace)
        except KubeError as error:
            self._report(cron, "Warning", "FailedCreate", f"Error creating job: {error}")
            raise
        if made.outcome is Outcome.EXISTS:
            # Created before this controller was killed, or by an earlier start of the same minute.
            known = self._jobs.get(f"{namespace}/{name}")
            if known is not None and known.metadata.controller != job.metadata.owner_references[0]:
                message = f"Job {name} exists and belongs to another owner"
                self._report(cron, "Warning", "ForeignJob", message)
            return decided.status
        self._jobs.learn(made.body)
        message = f"Created job {name} for CronJob {namespace}/{cron.metadata.name}"
        self._report(cron, "Normal", "SuccessfulCreate", message)
        stored = self._jobs.get(f"{namespace}/{name}")
        return decided.status if stored is None else with_job(decided.status, stored)

    async def _delete(self, cron: CronJob, jobs: Iterable[Job]) -> ApiError | None:
        """Delete these Jobs. Returns the last refusal for a finished one, which delays no start;
        raises that for another.
        """
        refused: ApiError | None = None
        for job in jobs:
            try:
                deleted = await self._writes.delete(JOBS_VOLCANO, job.metadata)
            except ApiError as error:
                message = f'Error deleting job "{job.metadata.name}": {error}'
                self._report(cron, "Warning", "FailedDelete", message)
                if job.status.state.phase not in FINISHED_PHASES:
                    raise
                refused = error
                continue
            if deleted.done:
                message = f'Deleted job "{job.metadata.name}"'
                self._report(cron, "Normal", "SuccessfulDelete", message)
        return refused

    async def _write_status(self, cron: CronJob, status: CronJobStatus) -> None:
        """Write the planned status, also when other parts of the CronJob have changed since then.

        A lost status would be planned again from the Jobs, but with wrong Events: a Job that was
        just replaced would be reported missing.
        """
        namespace, name = cron.metadata.namespace, cron.metadata.name
        stored = cron
        for _ in range(_STATUS_TRIES):
            if status == stored.status:
                return
            changed = msgspec.structs.replace(stored, status=status)
            written = await self._writes.replace_status(CRONJOBS_VOLCANO, changed)
            self._crons.learn(written.body)
            if written.outcome is not Outcome.STALE:
                return
            stored = await self._client.get(CRONJOBS_VOLCANO, name, CronJob, namespace=namespace)
            if stored.metadata.uid != cron.metadata.uid or stored.status != cron.status:
                # Another CronJob has the name, or another client wrote it: the plan is outdated.
                return

    def _report(self, cron: CronJob, type_: EventType, reason: str, message: str) -> None:
        event = ControllerEvent(type_, reason, message)
        self._events.record(CRONJOBS_VOLCANO, cron.metadata, event)
