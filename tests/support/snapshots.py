"""Snapshots of the cluster as a watcher answers them, for planners and observers without one."""

from collections.abc import Iterable
from typing import Any, Final, get_args, get_type_hints

from shared.contracts.cluster import ObjectChanges, SnapshotPage, Synced

#: The record of each kind of object.
CHANGES: Final[dict[type, Any]] = {
    get_args(get_type_hints(record)["changed"])[0]: record for record in get_args(ObjectChanges)
}


def snapshot_page(
    *records: ObjectChanges, at_ms: int, epoch: int = 1, cluster_seq: int = 10
) -> SnapshotPage:
    """Return the only page of a snapshot.

    Args:
        records: change records with everything in `changed`.
        at_ms: when the watcher was in sync.
        epoch: the watcher's epoch.
        cluster_seq: the sequence of CLUSTER up to which the snapshot goes.
    """
    return SnapshotPage(
        snapshot="only",
        page=0,
        pages=1,
        epoch=epoch,
        cluster_seq=cluster_seq,
        synced=Synced(epoch=epoch, at_ms=at_ms, watcher="watcher"),
        records=records,
    )


def snapshot_of(
    objects: Iterable[Any], *, at_ms: int, epoch: int = 1, cluster_seq: int = 10
) -> SnapshotPage:
    """Return the only page of a snapshot of these objects of `shared.model`, by kind."""
    by_kind: dict[type, list[Any]] = {}
    for one in objects:
        by_kind.setdefault(type(one), []).append(one)
    records = [
        CHANGES[kind](epoch=epoch, at_ms=at_ms, changed=tuple(found))
        for kind, found in by_kind.items()
    ]
    return snapshot_page(*records, at_ms=at_ms, epoch=epoch, cluster_seq=cluster_seq)
