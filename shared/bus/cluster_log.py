"""Follows CLUSTER: the watcher's snapshot, then the later records of the log.

Foreign messages are skipped, and do not count as a sign that the watcher lives. After a new epoch
of the watcher, a gap, or a CLUSTER that was created again, the reader begins again with a new
snapshot.

`follow_cluster` is for services that keep nothing but a cluster state. The planner has to order
CLUSTER with other logs, so it only fetches snapshots here.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, NoReturn, Protocol

from shared.bus.connection import Bus
from shared.bus.errors import LogGap, NoAnswer, StreamReplaced
from shared.bus.log_reader import LogReader
from shared.bus.pull import Delivery
from shared.bus.questions import ask
from shared.contracts import codec, subjects
from shared.contracts.cluster import ClusterRecord, SnapshotPage, SnapshotRequest, StreamOpened
from shared.contracts.foreign_messages import OnForeign, unless_foreign

log = logging.getLogger(__name__)

#: Between two requests for a snapshot that no watcher could answer yet.
_RETRY_S: Final = 0.1
_decode: Final = unless_foreign(subjects.CLUSTER, codec.decode_cluster)


class NewEpoch(Exception):
    """Another watcher writes CLUSTER: its snapshot replaces the cluster state."""

    def __init__(self, epoch: int) -> None:
        """Name the epoch."""
        super().__init__(f"watcher epoch {epoch}")
        self.epoch = epoch


async def fetch_snapshot(
    bus: Bus, *, epoch_min: int = 0, kinds: tuple[str, ...] = (), timeout_s: float = 5.0
) -> tuple[SnapshotPage, ...]:
    """Request the whole cluster state from the watcher, and repeat that until it arrives; each
    answer may take `timeout_s` seconds.

    Snapshots of epochs before `epoch_min` are discarded. `kinds` are the neutral kinds to include;
    () for all.

    Returns:
        All pages of one frozen snapshot, in order. When the watcher drops a snapshot before its
        last page is read, a new one is requested.
    """
    while True:
        pages = await _try_snapshot(bus, kinds, timeout_s)
        if pages and pages[0].epoch >= epoch_min:
            return tuple(pages)
        await asyncio.sleep(_RETRY_S)


async def _try_snapshot(bus: Bus, kinds: tuple[str, ...], timeout_s: float) -> list[SnapshotPage]:
    pages: list[SnapshotPage] = []
    while not pages or len(pages) < pages[0].pages:
        name = pages[0].snapshot if pages else ""
        question = SnapshotRequest(snapshot=name, page=len(pages), kinds=kinds)
        try:
            answer = await ask(
                bus,
                subjects.ASK_SNAPSHOT,
                question,
                codec.decode_snapshot_answer,
                timeout_s=timeout_s,
            )
        except NoAnswer:
            return []
        if not isinstance(answer, SnapshotPage):
            return []
        pages.append(answer)
    return pages


class ClusterReader(Protocol):
    """The owner of a cluster state."""

    def replace(self, pages: Sequence[SnapshotPage]) -> None:
        """Replace the whole state by a snapshot."""
        ...

    def apply(self, seq: int, record: ClusterRecord) -> None:
        """Apply the next record, which is never of a newer epoch than the snapshot."""
        ...

    def applied(self) -> None:
        """Every record that has arrived is applied."""
        ...


async def follow_cluster(
    bus: Bus,
    consumer: str,
    reader: ClusterReader,
    *,
    kinds: tuple[str, ...],
    on_foreign: OnForeign,
    filtered: bool = False,
    timeout_s: float = 5.0,
) -> NoReturn:
    """Follow CLUSTER until cancelled, through the durable consumer `consumer`, which setup made;
    `filtered`: it delivers some kinds only.

    The snapshot includes the neutral `kinds`; each answer of the watcher may take `timeout_s`
    seconds. `on_foreign` is called with messages that no watcher wrote.

    Raises:
        BusError: The log cannot be read for another reason than an outage.
    """
    epoch = 0

    async def take(deliveries: list[Delivery]) -> None:
        some = False
        for delivery in deliveries:
            record = _decode(delivery.payload)
            if record is None:
                on_foreign(subjects.CLUSTER, delivery.seq, delivery.subject, delivery.payload)
                continue
            if not isinstance(record, StreamOpened) and record.epoch > epoch:
                raise NewEpoch(record.epoch)
            reader.apply(delivery.seq, record)
            some = True
        if some:
            reader.applied()

    while True:
        records = LogReader(bus, subjects.CLUSTER, consumer, filtered=filtered)
        pages = await fetch_snapshot(bus, epoch_min=epoch, kinds=kinds, timeout_s=timeout_s)
        epoch = pages[0].epoch
        reader.replace(pages)
        try:
            await records.run(pages[0].cluster_seq + 1, take)
        except NewEpoch as new:
            epoch = new.epoch
        except LogGap as gap:
            log.warning("CLUSTER no longer has the next record, loading a snapshot: %s", gap)
        except StreamReplaced as replaced:
            log.warning("%s, loading a snapshot", replaced)
            epoch = 0
