"""Follows CLUSTER: the watcher's snapshot, then the log from there on.

A new epoch of the watcher, a gap, or a CLUSTER made anew starts it again with a new snapshot.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from services.observer.state import ObserverState
from shared.bus.connection import Bus
from shared.bus.errors import LogGap, StreamReplaced
from shared.bus.log_reader import LogReader
from shared.bus.pull import Delivery
from shared.bus.snapshots import NewEpoch, fetch_snapshot
from shared.contracts import codec, subjects
from shared.contracts.cluster import StreamOpened

log = logging.getLogger(__name__)

_KINDS: Final = ("node", "pod", "podgroup")
#: A decision is made of what CLUSTER held already: who reads beside us is milliseconds behind.
_CATCH_UP_S: Final = 5.0


class ClusterFollower:
    """Keeps the state's picture current while `run` runs."""

    def __init__(self, bus: Bus, state: ObserverState, on_change: Callable[[], None]) -> None:
        """Prepare; `on_change` is called after everything that changed the picture."""
        self._bus = bus
        self._state = state
        self._on_change = on_change
        self._moved = asyncio.Event()

    async def caught_up(self, seq: int) -> None:
        """Wait until the picture stands for record `seq` of CLUSTER; some seconds at most, since a
        CLUSTER made anew counts from one again.
        """
        try:
            async with asyncio.timeout(_CATCH_UP_S):
                while self._state.picture.seq < seq:
                    await self._moved.wait()
        except TimeoutError:
            log.warning("CLUSTER is known up to %d, not %d", self._state.picture.seq, seq)

    async def run(self) -> None:
        """Follow until cancelled."""
        epoch = 0
        while True:
            reader = LogReader(
                self._bus, subjects.CLUSTER, subjects.observer_consumer(subjects.CLUSTER)
            )
            pages = await fetch_snapshot(self._bus, epoch_min=epoch, kinds=_KINDS)
            self._state.replace(pages)
            self._tell()
            try:
                await reader.run(pages[0].cluster_seq + 1, self._take)
            except NewEpoch as new:
                epoch = new.epoch
            except LogGap as gap:
                log.warning("CLUSTER no longer reaches back, taking a snapshot: %s", gap)
            except StreamReplaced as replaced:
                log.warning("%s, taking a snapshot", replaced)
                epoch = 0

    async def _take(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            record = codec.decode_cluster(delivery.payload)
            if not isinstance(record, StreamOpened) and record.epoch > self._state.picture.epoch:
                raise NewEpoch(record.epoch)
            self._state.apply(delivery.seq, record)
        self._tell()

    def _tell(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()
        self._on_change()
