"""Keeps the observer's cluster state current, and waits until it has reached a given record."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from services.observer.state import ObserverState
from shared.bus.cluster_log import follow_cluster
from shared.bus.connection import Bus
from shared.contracts import subjects
from shared.contracts.cluster import ClusterRecord, SnapshotPage
from shared.contracts.foreign_messages import OnForeign

log = logging.getLogger(__name__)

_KINDS: Final = ("node", "pod", "podgroup")
#: A decision follows from records that CLUSTER already holds: this reader is milliseconds behind.
_CATCH_UP_S: Final = 5.0


class ClusterFollower:
    """Keeps the cluster state current while `run` runs."""

    def __init__(
        self,
        bus: Bus,
        state: ObserverState,
        on_change: Callable[[], None],
        on_foreign: OnForeign,
    ) -> None:
        """`on_change` is called after each change of the cluster state, `on_foreign` with messages
        that no watcher wrote.
        """
        self._bus = bus
        self._state = state
        self._on_change = on_change
        self._on_foreign = on_foreign
        self._moved = asyncio.Event()

    async def caught_up(self, seq: int) -> None:
        """Wait until the cluster state contains record `seq` of CLUSTER, a few seconds at most: a
        CLUSTER that was created again counts from one.
        """
        try:
            async with asyncio.timeout(_CATCH_UP_S):
                while self._state.cluster_state.seq < seq:
                    await self._moved.wait()
        except TimeoutError:
            log.warning(
                "the cluster state is read up to record %d of CLUSTER, not %d",
                self._state.cluster_state.seq,
                seq,
            )

    async def run(self) -> None:
        """Follow until cancelled."""
        consumer = subjects.observer_consumer(subjects.CLUSTER)
        await follow_cluster(self._bus, consumer, self, kinds=_KINDS, on_foreign=self._on_foreign)

    def replace(self, pages: Sequence[SnapshotPage]) -> None:
        """As `ClusterReader`."""
        self._state.replace(pages)
        self.applied()

    def apply(self, seq: int, record: ClusterRecord) -> None:
        """As `ClusterReader`."""
        self._state.apply(seq, record)

    def applied(self) -> None:
        """As `ClusterReader`."""
        self._moved.set()
        self._moved = asyncio.Event()
        self._on_change()
