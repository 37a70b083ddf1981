"""How much of CLUSTER the tables stand for, and how fresh that is."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shared.contracts.cluster import Synced


class ClusterView:
    """How much of CLUSTER the cluster state contains."""

    def __init__(self) -> None:
        #: Epoch of the cluster state; 0 before the first snapshot.
        self.epoch = 0
        #: Newest epoch that any record named; cluster state is stale while it is older.
        self.newest_epoch = 0
        self.cluster_seq = 0
        self.outcomes_seq = 0
        #: Outcomes up to here have led to whatever they lead to: a cycle that had read them is in
        #: the log.
        self.consumed_seq = 0
        self.decisions_seq = 0
        self.synced: Synced | None = None
        #: When that record had arrived, on the planner's clock, as of the newest cycle.
        self.synced_ms = 0

    def arrived(self, synced_ms: int | None) -> None:
        """Note when `synced` arrived; None: at the instant that it names."""
        if synced_ms is None:
            synced_ms = self.synced.at_ms if self.synced is not None else 0
        self.synced_ms = synced_ms

    def local_ms(self, watcher_ms: int) -> int:
        """An instant of the watcher's clock on the planner's clock: the newest `synced` shows how
        far one is ahead of the other.
        """
        ahead_ms = self.synced.at_ms - self.synced_ms if self.synced is not None else 0
        return watcher_ms - ahead_ms
