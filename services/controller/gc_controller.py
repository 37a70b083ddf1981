"""The garbage collector: deletes finished Jobs whose ttlSecondsAfterFinished is over."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Literal

from services.controller.core.garbage.expiry import expires
from services.controller.reconciling.controller import Runtime, Wake
from services.controller.reconciling.informer import Informer, Informers
from shared.kinds.job import Job
from shared.kube.errors import Invalid
from shared.kube.resources import JOBS_VOLCANO


class GarbageReconciler:
    """A Job's key is its "namespace/name"."""

    name = "gc"

    def __init__(
        self, runtime: Runtime, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """Nothing is read or written before `watches` and `reconcile`."""
        self._writes = runtime.writes
        self._now = now
        self._jobs: Informer[Job]

    def watches(self, informers: Informers, wake: Wake) -> Iterable[Informer[Any]]:
        """Jobs that have a time to live after they finished."""
        self._jobs = informers.of(JOBS_VOLCANO, Job)

        def changed(_old: Job | None, new: Job | None) -> None:
            if new is not None and expires(new) is not None:
                wake(new.metadata.key)

        self._jobs.on_change(changed)
        return (self._jobs,)

    def keys(self) -> Iterable[str]:
        """Jobs that are to be deleted at some time."""
        return [job.metadata.key for job in self._jobs.all() if expires(job) is not None]

    async def reconcile(self, key: str) -> float | None:
        """Delete the Job, with all that it owns before it, or come back when it is time."""
        job = self._jobs.get(key)
        at = expires(job) if job is not None else None
        if job is None or at is None:
            return None
        left_s = (at - self._now()).total_seconds()
        if left_s > 0:
            return left_s
        try:
            await self._delete(job, "Foreground")
        except Invalid:
            # The embedded cluster knows one order only.
            await self._delete(job, "Background")
        return None

    async def _delete(self, job: Job, propagation: Literal["Background", "Foreground"]) -> None:
        metadata = job.metadata
        await self._writes.delete(
            JOBS_VOLCANO,
            metadata.name,
            uid=metadata.uid,
            namespace=metadata.namespace,
            propagation=propagation,
        )
