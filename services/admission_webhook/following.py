"""Follows the queues: the watcher's snapshot, then CLUSTER from there on.

A new epoch of the watcher, a gap, or a CLUSTER made anew starts it again with a new snapshot. While
nothing has been heard of the watcher for `FRESH_S` the queues are as good as unknown: a queue that
somebody has made meanwhile must not be said not to exist.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Final

from services.admission_webhook.core.queue_tree import QueueTree
from services.admission_webhook.state import QueueBook
from shared.bus.connection import Bus
from shared.bus.errors import LogGap, StreamReplaced
from shared.bus.log_reader import LogReader
from shared.bus.pull import Delivery
from shared.bus.snapshots import NewEpoch, fetch_snapshot
from shared.contracts import codec, subjects
from shared.contracts.cluster import (
    NamespaceChanges,
    QueueChanges,
    StreamOpened,
)

log = logging.getLogger(__name__)

_KINDS: Final = ("queue", "namespace")

#: The watcher gives a sign of life each second; the planner too calls its view stale after this.
FRESH_S: Final = 5.0
_SNAPSHOT_TIMEOUT_S: Final = 2.0


class QueueFollower:
    """Keeps the queues current while `run` runs."""

    def __init__(self, bus: Bus, ordinal: int, on_known: Callable[[], None]) -> None:
        """Prepare; `on_known` is called after each snapshot."""
        self._bus = bus
        self._consumer = subjects.webhook_consumer(ordinal)
        self._on_known = on_known
        self._book = QueueBook()
        self._heard_s = float("-inf")
        self._changed = asyncio.Event()

    @property
    def queues(self) -> QueueTree | None:
        """The queues now; None while they are not known."""
        now_s = asyncio.get_running_loop().time()
        return self._book.tree if now_s - self._heard_s < FRESH_S else None

    @property
    def namespace_queues(self) -> Mapping[str, str]:
        """Queues that namespaces name; as they were last known."""
        return self._book.namespace_queues

    async def appeared(self, name: str, timeout_s: float) -> bool:
        """Wait a moment for a queue that should be there: this reader is some milliseconds behind
        the API server.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while (queues := self.queues) is not None and not queues.exists(name):
                    await self._changed.wait()
                return queues is not None
        return False

    async def run(self) -> None:
        """Follow until cancelled."""
        epoch = 0
        while True:
            reader = LogReader(self._bus, subjects.CLUSTER, self._consumer, filtered=True)
            pages = await fetch_snapshot(
                self._bus, epoch_min=epoch, kinds=_KINDS, timeout_s=_SNAPSHOT_TIMEOUT_S
            )
            self._book.replace(pages)
            self._heard()
            self._on_known()
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
            if isinstance(record, StreamOpened) or record.epoch < self._book.epoch:
                continue
            if record.epoch > self._book.epoch:
                raise NewEpoch(record.epoch)
            if isinstance(record, QueueChanges):
                self._book.apply(record)
            elif isinstance(record, NamespaceChanges):
                self._book.apply_namespaces(record)
            self._heard()

    def _heard(self) -> None:
        self._heard_s = asyncio.get_running_loop().time()
        self._changed.set()
        self._changed = asyncio.Event()
