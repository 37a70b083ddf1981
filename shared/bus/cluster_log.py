"""Follows CLUSTER: the watcher's snapshot, then the log from there on.

Foreign messages are skipped, and prove nothing about the watcher: neither changes nor that it
lives.

A new epoch of the watcher, a gap, or a CLUSTER made again starts it again with a new snapshot. For
readers that only keep a cluster state of their own; the planner, which has to put the log in order
with others, does it itself.
"""

import logging
from collections.abc import Sequence
from typing import Final, NoReturn, Protocol

from shared.bus.connection import Bus
from shared.bus.errors import LogGap, StreamReplaced
from shared.bus.log_reader import LogReader
from shared.bus.pull import Delivery
from shared.bus.snapshots import NewEpoch, fetch_snapshot
from shared.contracts import codec, subjects
from shared.contracts.cluster import ClusterRecord, SnapshotPage, StreamOpened
from shared.contracts.foreign_messages import OnForeign, unless_foreign

log = logging.getLogger(__name__)

_decode: Final = unless_foreign(subjects.CLUSTER, codec.decode_cluster)


class ClusterReader(Protocol):
    """The owner of the cluster state."""

    def replace(self, pages: Sequence[SnapshotPage]) -> None:
        """Forget everything and take over a snapshot."""
        ...

    def apply(self, seq: int, record: ClusterRecord) -> None:
        """Take the next record; none of a newer epoch than the snapshot's."""
        ...

    def applied(self) -> None:
        """All that had come is taken."""
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
    """Follow until cancelled.

    Args:
        bus: The connection.
        consumer: Name of the durable consumer, which setup made.
        reader: It is called with each change.
        kinds: What of the snapshot is wanted.
        on_foreign: Called with messages that no watcher wrote.
        filtered: The consumer delivers some kinds only.
        timeout_s: For the watcher's answer to one question.
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
            log.warning("CLUSTER no longer reaches back, taking a snapshot: %s", gap)
        except StreamReplaced as replaced:
            log.warning("%s, taking a snapshot", replaced)
            epoch = 0
