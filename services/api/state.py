"""What an API service knows: the gangs, the cluster's pods and nodes, and the newest decisions.

A process that loses it reads the streams again.
"""

from collections.abc import Sequence

from services.api.core.cluster_state import ClusterState
from services.api.core.decision_history import DecisionHistory
from services.api.core.gang_book import GangBook, Place
from services.api.core.gang_objects import TraceUrl, no_trace_url
from shared.contracts.cluster import ClusterRecord, PodChanges, SnapshotPage
from shared.contracts.decisions import Act, EvictionDecision, GangDecision, Note
from shared.contracts.outcomes import DecisionClaimed, Outcome, OutcomeRecord
from shared.contracts.verdicts import Verdict


class ApiState:
    """Fed in the order of each log; every change returns the places of gangs that may differ."""

    def __init__(self, trace_url: TraceUrl = no_trace_url) -> None:
        self._trace_url = trace_url
        self.cluster = ClusterState()
        self.gangs = GangBook(self.cluster, trace_url)
        self.decisions = DecisionHistory()

    def replace_cluster(self, pages: Sequence[SnapshotPage]) -> set[Place]:
        """Replace the cluster state by a snapshot."""
        self.cluster = ClusterState(pages)
        return self.gangs.replace_cluster(self.cluster)

    def apply_cluster(self, seq: int, record: ClusterRecord) -> set[Place]:
        """Apply the next record of CLUSTER."""
        if isinstance(record, PodChanges):
            self.decisions.take_changes(record)
        return self.gangs.put_cluster(seq, self.cluster.apply(seq, record))

    def take_decision(self, seq: int, decision: Act) -> None:
        """Take the next decision of DECISIONS."""
        namespace = decision.gang.partition("/")[0]
        owner = self.cluster.owner(decision.gang_id, decision.gang_id, namespace)
        self.decisions.take(seq, decision, owner)

    def take_record(self, seq: int, record: Act | Note | OutcomeRecord) -> None:
        """Take the next decision, note or outcome."""
        match record:
            case GangDecision() | EvictionDecision():
                self.take_decision(seq, record)
            case Outcome():
                self.decisions.take_outcome(record)
            case DecisionClaimed():
                pass
            case _:
                self.decisions.take_note(record)

    def take_verdict(self, seq: int, verdict: Verdict) -> set[Place]:
        """Take the next record of VERDICTS."""
        return self.gangs.put_verdict(seq, verdict)

    def forget_verdicts(self) -> None:
        """Begin again: the stream of verdicts is another one."""
        self.gangs = GangBook(self.cluster, self._trace_url)

    def forget_decisions(self) -> None:
        """Begin again: the stream of decisions is another one, or some are missing."""
        self.decisions = DecisionHistory()
