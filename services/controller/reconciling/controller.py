"""One reconciling controller: informers wake keys, workers reconcile them, a share says which.

    change of an object ──watches──▶ key ──owned here?──▶ work queue ──▶ reconcile(key) ──▶ writes

`Runtime` holds what the controllers of a process share: one client's caches, writes and Events.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, runtime_checkable

from services.controller.reconciling.events import Recorder
from services.controller.reconciling.informer import Informer, Informers
from services.controller.reconciling.work_queue import WorkQueue
from services.controller.reconciling.writes import Writes
from shared.kube.client import KubeClient
from shared.kube.listwatch import Pace

logger = logging.getLogger(__name__)

Wake = Callable[[str], bool | None]
"""Has a key reconciled soon; False: it is another replica's."""


class Reconciler(Protocol):
    """What makes a controller this controller."""

    @property
    def name(self) -> str:
        """As in `--controllers`."""
        ...

    def watches(self, informers: Informers, wake: Wake) -> Iterable[Informer[Any]]:
        """Ask for the caches that are needed and register what of their changes wakes which key.

        Called once, before anything runs. Returns the caches that must be synced before the first
        `reconcile`.
        """
        ...

    def keys(self) -> Iterable[str]:
        """Every key there is now: those of a share that falls to this replica are woken."""
        ...

    async def reconcile(self, key: str) -> float | None:
        """Bring the key's objects to what they should be, or closer.

        Idempotent, and correct from whatever point it was killed at before. Never called twice at a
        time for one key. Raises KubeError to be called again after a backoff.

        Returns:
            Seconds until it wants to be called again; None: only when something changes.
        """
        ...


@runtime_checkable
class Preparing(Protocol):
    """A reconciler that makes what others count on from the start."""

    async def prepared(self) -> None:
        """Return once it is there, whichever client made it."""
        ...


class Share(Protocol):
    """Which keys are this replica's: see `sharding`."""

    def owns(self, key: str, /) -> bool:
        """Whether this replica may act on the key now."""
        ...

    def join(self, queue: WorkQueue, keys: Callable[[], Iterable[str]]) -> None:
        """Wake the keys that fall to this replica, and wait for this queue before others act on
        those that it loses.
        """
        ...


class Alone:
    """The share of a replica that is the only one: everything."""

    def owns(self, _key: str) -> bool:
        """Always."""
        return True

    def join(self, queue: WorkQueue, keys: Callable[[], Iterable[str]]) -> None:
        """Nothing ever changes."""


#: Keys worked at together: each waits for the API server most of the time, and how many writes are
#: in flight is bounded for all of them (`writes.IN_FLIGHT`).
_WORKERS: Final = 16


class Controller:
    """Runs one reconciler."""

    def __init__(self, reconciler: Reconciler, informers: Informers, share: Share) -> None:
        """Register with the caches; nothing runs before `run`."""
        self._reconciler = reconciler
        self._share = share
        self._queue = WorkQueue(reconciler.name, self._work, workers=_WORKERS)
        self._needed = list(reconciler.watches(informers, self._wake))
        share.join(self._queue, reconciler.keys)

    async def run(self) -> None:
        """Reconcile until cancelled."""
        await self.synced()
        await self._queue.run()

    async def synced(self) -> None:
        """Wait until every cache that is needed is filled."""
        for informer in self._needed:
            await informer.synced.wait()

    async def ready(self) -> None:
        """Wait until the reconciler does its work, and what others count on is there."""
        await self.synced()
        if isinstance(self._reconciler, Preparing):
            await self._reconciler.prepared()

    async def stop_taking(self) -> None:
        """Begin nothing more."""
        self._queue.stop()

    async def finish(self) -> None:
        """Let what is in flight end."""
        await self._queue.quiet()

    def _wake(self, key: str) -> bool:
        owned = self._share.owns(key)
        if owned:
            self._queue.add(key)
        return owned

    async def _work(self, key: str) -> float | None:
        # A key that was queued may have gone to another replica since.
        if not self._share.owns(key):
            self._queue.forget(key)
            return None
        return await self._reconciler.reconcile(key)


class Runtime:
    """What all reconciling controllers of a process share."""

    def __init__(self, client: KubeClient, *, writes_per_s: int, pace: Pace | None = None) -> None:
        """Nothing is read or written before `run`."""
        self.client = client
        self.informers = Informers(client, pace)
        self.writes = Writes(client, per_s=writes_per_s)
        # Events have writes of their own: they never wait before a pod, nor a pod behind them.
        self.events = Recorder(Writes(client, per_s=max(10, writes_per_s // 10), in_flight=2))

    async def run(self) -> None:
        """Keep caches current and write Events until cancelled. Start it after the controllers
        have registered.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self.informers.run(), name="informers")
            group.create_task(self.events.run(), name="controller-events")
