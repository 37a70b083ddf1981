"""The garbage collector: deletes finished Jobs after their ttlSecondsAfterFinished."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from services.controller.reconciling.controller import Runtime, Wake
from services.controller.reconciling.informer import Informer
from shared.kinds.job import FINISHED_PHASES, Job
from shared.kube.errors import Invalid
from shared.kube.resources import JOBS_VOLCANO


class GarbageReconciler:
    """A Job's key is its "namespace/name"."""

    name = "gc"

    def __init__(
        self, runtime: Runtime, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._writes = runtime.writes
        self._now = now
        self._jobs = runtime.informers.of(JOBS_VOLCANO, Job)

    def watches(self, wake: Wake) -> Iterable[Informer[Any]]:
        def changed(_old: Job | None, new: Job | None) -> None:
            if new is not None and expires(new) is not None:
                wake(new.metadata.key)

        self._jobs.on_change(changed)
        return (self._jobs,)

    def keys(self) -> Iterable[str]:
        return [job.metadata.key for job in self._jobs.all() if expires(job) is not None]

    async def reconcile(self, key: str) -> float | None:
        """Delete an expired Job after all objects that it owns, or return the time until it
        expires.
        """
        job = self._jobs.get(key)
        at = expires(job) if job is not None else None
        if job is None or at is None:
            return None
        left_s = (at - self._now()).total_seconds()
        if left_s > 0:
            return left_s
        try:
            await self._writes.delete(JOBS_VOLCANO, job.metadata, propagation="Foreground")
        except Invalid:
            # The embedded cluster supports background deletion only.
            await self._writes.delete(JOBS_VOLCANO, job.metadata)
        return None


def expires(job: Job) -> datetime | None:
    """The instant at which the job may be deleted; None: it is kept.

    An Aborted job can be resumed, so it is not finished.
    """
    ttl_s = job.spec.ttl_seconds_after_finished
    state = job.status.state
    finished = state.phase in FINISHED_PHASES and job.metadata.deletion_timestamp is None
    if ttl_s is None or state.last_transition_time is None or not finished:
        return None
    return state.last_transition_time + timedelta(seconds=ttl_s)
