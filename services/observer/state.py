"""What an observer knows: the cluster state, the gangs of the report, and the assumed decisions.

A process that loses it loses the changes since the report was last written, and answers the
decisions in the log again.
"""

from collections.abc import Sequence

from services.observer.core.assumed_decisions import AssumedDecision, AssumedDecisions
from services.observer.core.cluster_state import ClusterState
from services.observer.core.gangs import Gangs
from services.observer.core.recount import Recount, recount
from shared.contracts.cluster import ClusterRecord, SnapshotPage, StreamOpened
from shared.contracts.decisions import Act, GangDecision
from shared.contracts.observing import Observation


class ObserverState:
    """See the module's docstring; fed in the order of the logs."""

    def __init__(self, *, stand_ms: int, gone_max: int) -> None:
        """Begin knowing nothing; a decision to bind is assumed for `stand_ms`."""
        self._stand_ms = stand_ms
        self.cluster_state = ClusterState()
        self.gangs = Gangs(self.cluster_state, gone_max=gone_max)
        self.assumed = AssumedDecisions(self.cluster_state)
        #: Instant of the first snapshot; 0, as in the report: there is none yet.
        self.since_ms = 0

    def recall(self, earlier: Observation) -> None:
        """Continue with an earlier process's report; before the first snapshot."""
        self.since_ms = earlier.since_ms
        self.gangs.recall(earlier)

    def replace(self, pages: Sequence[SnapshotPage]) -> None:
        at_ms, first_snapshot = pages[0].synced.at_ms, not self.cluster_state.epoch
        self.since_ms = self.since_ms or at_ms
        pods, groups = self.cluster_state.replace(pages)
        self.gangs.groups_changed(groups, at_ms)
        self.gangs.pods_changed(pods, at_ms, first_snapshot=first_snapshot)
        self.gangs.forget_earlier(at_ms)
        self.assumed.changed(pods)

    def apply(self, seq: int, record: ClusterRecord) -> None:
        pods, groups = self.cluster_state.apply(seq, record)
        if isinstance(record, StreamOpened):
            return
        self.gangs.groups_changed(groups, record.at_ms)
        self.gangs.pods_changed(pods, record.at_ms, first_snapshot=False)
        self.assumed.changed(pods)

    def decided(self, seq: int, decision: Act, now_ms: int) -> Recount | None:
        """Assume a decision from now on; return its recount if it binds."""
        counted: Recount | None = None
        due_ms: int | None = None
        if isinstance(decision, GangDecision):
            counted = recount(decision, self.cluster_state, self.assumed)
            self.gangs.decided(decision, counted)
            # From the instant of the decision: an earlier process may have read it.
            due_ms = min(decision.cycle.now_ms, now_ms) + self._stand_ms
        else:
            self.gangs.evicts(decision)
        self.assumed.add(AssumedDecision(seq, decision, due_ms))
        return counted

    def build_report(self, now_ms: int) -> Observation:
        return self.gangs.build_report(self.since_ms, now_ms)
