"""Snapshots of the cluster as a watcher answers them, for planners and observers without one."""

from shared.contracts.cluster import ObjectChanges, SnapshotPage, Synced


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
