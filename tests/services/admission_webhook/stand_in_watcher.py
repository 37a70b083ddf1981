"""A watcher's end of the bus, without a cluster behind it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from shared.bus.connection import Bus
from shared.bus.publisher import Publisher
from shared.bus.questions import serve
from shared.bus.setup import ensure_streams
from shared.contracts import codec, subjects
from shared.contracts.cluster import (
    Gone,
    NamespaceChanges,
    PriorityClassChanges,
    QueueChanges,
    SnapshotPage,
    SnapshotRequest,
    SnapshotUnavailable,
    Synced,
)
from shared.model.objects import PriorityClass, Queue
from shared.model.reference_objects import Namespace


class Watcher:
    """A watcher's end of the bus: answers snapshots in two pages, appends changes."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self._publisher = Publisher(bus)
        self.epoch = 2
        self.queues: dict[str, Queue] = {}
        self.asked: list[SnapshotRequest] = []
        self.silent = False

    async def listen(self) -> None:
        """Answer from now on."""
        await serve(self.bus, subjects.ASK_SNAPSHOT, codec.decode_snapshot_request, self._answer)

    async def change(self, *changed: Queue, removed: tuple[Gone, ...] = ()) -> None:
        """Queues appear, change and go."""
        self.queues |= {queue.name: queue for queue in changed}
        record = QueueChanges(epoch=self.epoch, at_ms=0, changed=changed, removed=removed)
        await self._append(subjects.CLUSTER_QUEUES, record)

    async def change_namespaces(self, *changed: Namespace, removed: tuple[Gone, ...] = ()) -> None:
        """Namespaces appear, change and go."""
        record = NamespaceChanges(epoch=self.epoch, at_ms=0, changed=changed, removed=removed)
        await self._append(subjects.CLUSTER_NAMESPACES, record)

    async def change_priority_classes(
        self, *changed: PriorityClass, removed: tuple[Gone, ...] = ()
    ) -> None:
        """Priority classes appear, change and go."""
        record = PriorityClassChanges(epoch=self.epoch, at_ms=0, changed=changed, removed=removed)
        await self._append(subjects.CLUSTER_PRIORITY_CLASSES, record)

    async def live(self) -> None:
        """Give a sign of life."""
        await self._append(subjects.CLUSTER_SYNCED, self._synced())

    async def _append(self, subject: str, record: msgspec.Struct) -> None:
        await (await self._publisher.publish(subject, codec.encode(record)))

    async def _answer(self, question: SnapshotRequest) -> msgspec.Struct:
        self.asked.append(question)
        if self.silent:
            return SnapshotUnavailable(reason="not synced")
        last = (await self.bus.stream_info(subjects.CLUSTER)).last_seq
        halves = [list(self.queues.values())[0::2], list(self.queues.values())[1::2]]
        record = QueueChanges(epoch=self.epoch, at_ms=0, changed=tuple(halves[question.page]))
        return SnapshotPage(
            snapshot=f"{self.epoch}-1",
            page=question.page,
            pages=2,
            epoch=self.epoch,
            cluster_seq=last,
            synced=self._synced(),
            records=(record,),
        )

    def _synced(self) -> Synced:
        return Synced(epoch=self.epoch, at_ms=0, watcher="w")


@asynccontextmanager
async def a_watcher(url: str) -> AsyncIterator[Watcher]:
    """Make the streams and answer for as long as the block runs."""
    bus = await Bus.connect(url, name="watcher")
    try:
        await ensure_streams(bus)
        watcher = Watcher(bus)
        await watcher.listen()
        yield watcher
    finally:
        await bus.close()
