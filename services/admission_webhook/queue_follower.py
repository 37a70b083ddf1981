"""Follows the queues.

While nothing has been heard of the watcher for `FRESH_S` they are as good as unknown: a queue that
was created meanwhile must not be reported as missing.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from services.admission_webhook.core.queue_tree import QueueTree
from services.admission_webhook.state import QueueBook
from shared.bus.cluster_log import follow_cluster
from shared.bus.connection import Bus
from shared.contracts import subjects
from shared.contracts.cluster import (
    ClusterRecord,
    NamespaceChanges,
    PriorityClassChanges,
    QueueChanges,
    SnapshotPage,
    StreamOpened,
)
from shared.contracts.foreign_messages import OnForeign

_KINDS: Final = ("queue", "namespace", "priorityclass")

#: The watcher gives a sign of life each second; the planner too calls its view stale after this.
FRESH_S: Final = 5.0
_SNAPSHOT_TIMEOUT_S: Final = 2.0


class QueueFollower:
    """Keeps the queues current while `run` runs."""

    def __init__(
        self, bus: Bus, ordinal: int, on_known: Callable[[], None], on_foreign: OnForeign
    ) -> None:
        """Prepare; `on_known` is called after each snapshot, `on_foreign` with what no watcher
        wrote.
        """
        self._bus = bus
        self._consumer = subjects.webhook_consumer(ordinal)
        self._on_known = on_known
        self._on_foreign = on_foreign
        self._book = QueueBook()
        self._heard_s = float("-inf")
        self._changed = asyncio.Event()

    @property
    def queues(self) -> QueueTree | None:
        """The queues now; None while they are not known."""
        now_s = asyncio.get_running_loop().time()
        return self._book.tree if now_s - self._heard_s < FRESH_S else None

    @property
    def priority_classes(self) -> frozenset[str] | None:
        """Names of the priority classes; None while they are not known."""
        return None if self.queues is None else self._book.priority_classes

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
        await follow_cluster(
            self._bus,
            self._consumer,
            self,
            kinds=_KINDS,
            on_foreign=self._on_foreign,
            filtered=True,
            timeout_s=_SNAPSHOT_TIMEOUT_S,
        )

    def replace(self, pages: Sequence[SnapshotPage]) -> None:
        """As `ClusterReader`."""
        self._book.replace(pages)
        self.applied()
        self._on_known()

    def apply(self, seq: int, record: ClusterRecord) -> None:
        """As `ClusterReader`; what an older watcher still wrote is not of this cluster state."""
        del seq
        if isinstance(record, StreamOpened) or record.epoch < self._book.epoch:
            return
        if isinstance(record, QueueChanges):
            self._book.apply(record)
        elif isinstance(record, NamespaceChanges):
            self._book.apply_namespaces(record)
        elif isinstance(record, PriorityClassChanges):
            self._book.apply_priority_classes(record)

    def applied(self) -> None:
        """As `ClusterReader`."""
        self._heard_s = asyncio.get_running_loop().time()
        self._changed.set()
        self._changed = asyncio.Event()
