"""One reconciling controller: informers wake keys, workers reconcile the keys of this replica.

    change of an object ──watches──▶ key ──owned here?──▶ work queue ──▶ reconcile(key) ──▶ writes

`Runtime` has the parts that all controllers of a process share: caches, writes and Events.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, runtime_checkable

from services.controller.core.events import COMMAND_REFUSED, ControllerEvent
from services.controller.reconciling.events import Recorder
from services.controller.reconciling.informer import Informer, Informers
from services.controller.reconciling.work_queue import WorkQueue
from services.controller.reconciling.writes import Writes
from shared.kinds.command import Command
from shared.kube.client import KubeClient
from shared.kube.resources import COMMANDS

logger = logging.getLogger(__name__)

Wake = Callable[[str], bool | None]
"""Queues a key; returns False when the key belongs to another replica."""


class Reconciler(Protocol):
    """One controller's caches, keys and work."""

    @property
    def name(self) -> str:
        """The name in `--controllers`."""
        ...

    def watches(self, wake: Wake) -> Iterable[Informer[Any]]:
        """Register which change of a cache wakes which key.

        Called once, before anything runs. Returns the caches that must be synced before the first
        `reconcile`.
        """
        ...

    def keys(self) -> Iterable[str]:
        """All present keys. Those that this replica gains are woken."""
        ...

    async def reconcile(self, key: str) -> float | None:
        """Bring the key's objects closer to their desired state.

        Idempotent, and correct after a kill at any point. Not called twice at a time for one key.
        Raises KubeError to be called again after a backoff.

        Returns:
            Seconds until the next call; None: the next call follows a change.
        """
        ...


@runtime_checkable
class Preparing(Protocol):
    """A reconciler that creates objects on which users rely from the start."""

    async def prepared(self) -> None:
        """Return once these objects exist, whichever client created them."""
        ...


class Share(Protocol):
    """The keys of this replica: see `sharding`."""

    def owns(self, key: str, /) -> bool:
        """Whether this replica may act on the key now."""
        ...

    def join(self, queue: WorkQueue, keys: Callable[[], Iterable[str]]) -> None:
        """Divide this queue's keys: wake keys that this replica gains, and give up a lost key only
        when no worker of the queue is handling it.
        """
        ...


#: Keys reconciled at the same time. Each waits for the API server most of the time; writes in
#: flight are limited for all of them together (`writes.IN_FLIGHT`).
_WORKERS: Final = 16


class Controller:
    def __init__(self, reconciler: Reconciler, share: Share) -> None:
        """Register with the caches. Nothing is reconciled before `run`."""
        self._reconciler = reconciler
        self._share = share
        self._queue = WorkQueue(reconciler.name, self._work, workers=_WORKERS)
        self._needed = list(reconciler.watches(self._wake))
        share.join(self._queue, reconciler.keys)

    async def run(self) -> None:
        await self.synced()
        await self._queue.run()

    async def synced(self) -> None:
        """Wait until all needed caches are filled."""
        for informer in self._needed:
            await informer.synced.wait()

    async def ready(self) -> None:
        """Wait until the caches are filled and the reconciler is prepared."""
        await self.synced()
        if isinstance(self._reconciler, Preparing):
            await self._reconciler.prepared()

    async def stop_taking(self) -> None:
        self._queue.stop()

    async def finish(self) -> None:
        await self._queue.quiet()

    def _wake(self, key: str) -> bool:
        owned = self._share.owns(key)
        if owned:
            self._queue.add(key)
        return owned

    async def _work(self, key: str) -> float | None:
        # A queued key may belong to another replica by now.
        if not self._share.owns(key):
            self._queue.forget(key)
            return None
        return await self._reconciler.reconcile(key)


class Runtime:
    """The parts that all reconciling controllers of a process share."""

    def __init__(self, client: KubeClient, *, writes_per_s: int) -> None:
        """Nothing is read or written before `run`."""
        self.client = client
        self.informers = Informers(client)
        self.writes = Writes(client, per_s=writes_per_s)
        # Events have a limit of their own, so that no pod waits behind an Event.
        self.events = Recorder(Writes(client, per_s=max(10, writes_per_s // 10), in_flight=2))

    async def refuse(self, command: Command, why: str) -> None:
        """Delete a Command that is not carried out, and report it in the Command's namespace."""
        if (await self.writes.delete(COMMANDS, command.metadata)).done:
            event = ControllerEvent("Warning", COMMAND_REFUSED, why)
            self.events.record(COMMANDS, command.metadata, event)

    async def run(self) -> None:
        """Keep caches current and write Events until cancelled. Start it after all controllers have
        been constructed.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self.informers.run(), name="informers")
            group.create_task(self.events.run(), name="controller-events")
