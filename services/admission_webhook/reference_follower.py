"""Follows the reference objects in CLUSTER.

When the watcher has been silent for `FRESH_S`, queues and PriorityClasses count as unknown: one
that was created since then must not be reported as missing.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from services.admission_webhook.state import ReferenceChanges, ReferenceTables
from shared.admission.queue_tree import QueueTree
from shared.bus.cluster_log import follow_cluster
from shared.bus.connection import Bus
from shared.contracts import subjects
from shared.contracts.cluster import ClusterRecord, SnapshotPage
from shared.contracts.foreign_messages import OnForeign

_KINDS: Final = ("queue", "namespace", "priorityclass")

#: The watcher publishes a heartbeat each second. The planner's cluster state, too, is stale after
#: this time.
FRESH_S: Final = 5.0
_SNAPSHOT_TIMEOUT_S: Final = 2.0


class ReferenceFollower:
    """Keeps the reference objects current while `run` runs."""

    def __init__(
        self, bus: Bus, ordinal: int, on_known: Callable[[], None], on_foreign: OnForeign
    ) -> None:
        """Nothing is read before `run`. `on_known` is called after each snapshot, `on_foreign` with
        each message that no watcher wrote.
        """
        self._bus = bus
        self._consumer = subjects.webhook_consumer(ordinal)
        self._on_known = on_known
        self._on_foreign = on_foreign
        self._tables = ReferenceTables()
        self._heard_s = float("-inf")
        self._changed = asyncio.Event()

    @property
    def queues(self) -> QueueTree | None:
        """The current queues; None while they are unknown."""
        now_s = asyncio.get_running_loop().time()
        return self._tables.tree if now_s - self._heard_s < FRESH_S else None

    @property
    def priority_classes(self) -> frozenset[str] | None:
        """Names of the PriorityClasses; None while they are unknown."""
        return None if self.queues is None else self._tables.priority_classes

    @property
    def namespace_queues(self) -> Mapping[str, str]:
        """The queues that namespaces name, as last known."""
        return self._tables.namespace_queues

    async def wait_for_queue(self, name: str, timeout_s: float) -> bool:
        """Wait for a queue that may exist already: this reader is some milliseconds behind the API
        server. Returns whether the queue is known now.
        """
        return await self._wait(lambda queues: queues.exists(name), timeout_s)

    async def wait_for_classes(self, names: Collection[str], timeout_s: float) -> bool:
        """The same for PriorityClasses, all of them."""
        return await self._wait(
            lambda _: self._tables.priority_classes.issuperset(names), timeout_s
        )

    async def wait_for_no_children(self, name: str, timeout_s: float) -> bool:
        """The same for the children of a queue, which may be gone already."""
        return await self._wait(lambda queues: not queues.children(name), timeout_s)

    async def _wait(self, until: Callable[[QueueTree], bool], timeout_s: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while (queues := self.queues) is not None and not until(queues):
                    await self._changed.wait()
                return queues is not None
        return False

    async def run(self) -> None:
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
        self._tables = ReferenceTables(pages)
        self.applied()
        self._on_known()

    def apply(self, seq: int, record: ClusterRecord) -> None:
        """As `ClusterReader`; records of an earlier watcher's epoch are skipped."""
        del seq
        if isinstance(record, ReferenceChanges) and record.epoch >= self._tables.epoch:
            self._tables.apply(record)

    def applied(self) -> None:
        """As `ClusterReader`."""
        self._heard_s = asyncio.get_running_loop().time()
        self._changed.set()
        self._changed = asyncio.Event()
