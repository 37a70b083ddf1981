"""What an observer knows: the cluster state, the gangs of the report, and the decisions that stand.

Losing it loses what the report did not say yet; decisions are answered again from the log.
"""

from collections.abc import Sequence

from services.observer.core.cluster_state import ClusterState
from services.observer.core.gangs import Gangs
from services.observer.core.recount import Recount, recount
from services.observer.core.standing_decisions import Standing, Stands
from shared.contracts.cluster import ClusterRecord, SnapshotPage, StreamOpened
from shared.contracts.decisions import Act, GangDecision
from shared.contracts.observing import Observation


class ObserverState:
    """See the module's docstring; fed in the order of the logs."""

    def __init__(self, *, stand_ms: int, gone_max: int) -> None:
        """Begin knowing nothing; `stand_ms` is how long a decision to bind stands."""
        self._stand_ms = stand_ms
        self.cluster_state = ClusterState()
        self.gangs = Gangs(self.cluster_state, gone_max=gone_max)
        self.standing = Standing(self.cluster_state)
        #: Instant of the first snapshot; 0: there is none yet.
        self.since_ms = 0

    def recall(self, earlier: Observation) -> None:
        """Continue with an earlier process's report; before the first snapshot."""
        self.since_ms = earlier.since_ms
        self.gangs.recall(earlier)

    def replace(self, pages: Sequence[SnapshotPage]) -> None:
        """Take a snapshot in place of what was known."""
        at_ms, first_look = pages[0].synced.at_ms, not self.cluster_state.epoch
        self.since_ms = self.since_ms or at_ms
        pods, groups = self.cluster_state.replace(pages)
        self.gangs.groups_changed(groups, at_ms)
        self.gangs.pods_changed(pods, at_ms, first_look=first_look)
        self.gangs.forget_earlier(at_ms)
        self.standing.changed(pods)

    def apply(self, seq: int, record: ClusterRecord) -> None:
        """Take one record of CLUSTER."""
        pods, groups = self.cluster_state.apply(seq, record)
        if isinstance(record, StreamOpened):
            return
        self.gangs.groups_changed(groups, record.at_ms)
        self.gangs.pods_changed(pods, record.at_ms, first_look=False)
        self.standing.changed(pods)

    def decided(self, seq: int, decision: Act, now_ms: int) -> Recount | None:
        """Take a decision: recounted where it binds, and it stands from now on."""
        found: Recount | None = None
        due_ms = 0
        if isinstance(decision, GangDecision):
            found = recount(decision, self.cluster_state, self.standing)
            self.gangs.decided(decision, found)
            # Counted from when it was made: an earlier life may have left it.
            due_ms = min(decision.cycle.now_ms, now_ms) + self._stand_ms
        else:
            self.gangs.evicts(decision)
        self.standing.add(Stands(seq, decision, due_ms))
        return found

    def told(self, now_ms: int) -> Observation:
        """The report as of now."""
        return self.gangs.told(self.since_ms, now_ms)
