"""The position of the tables in the logs, and the freshness of the cluster state."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.contracts.cluster import Synced


class ClusterView:
    """The epoch, log positions and newest `synced` of the cluster state."""

    def __init__(self) -> None:
        #: Epoch of the cluster state; 0 before the first snapshot.
        self.epoch = 0
        #: Newest epoch in any record; the cluster state is stale while its epoch is older.
        self.newest_epoch = 0
        self.cluster_seq = 0
        #: Sequence of CLUSTER of the first snapshot: losses before it were not seen.
        self.snapshot_seq = 0
        self.outcomes_seq = 0
        #: Outcomes up to this sequence have had their effect: the log has a cycle that read them.
        self.consumed_seq = 0
        self.decisions_seq = 0
        self.synced: Synced | None = None
        #: When `synced` arrived, on the planner's clock, as of the newest cycle.
        self.synced_ms = 0

    def arrived(self, synced_ms: int | None) -> None:
        """Set when `synced` arrived; None: use the time in the record."""
        if synced_ms is None:
            synced_ms = self.synced.at_ms if self.synced is not None else 0
        self.synced_ms = synced_ms

    def local_ms(self, watcher_ms: int) -> int:
        """Convert a time of the watcher's clock to the planner's clock, by the difference that the
        newest `synced` shows.
        """
        ahead_ms = self.synced.at_ms - self.synced_ms if self.synced is not None else 0
        return watcher_ms - ahead_ms
