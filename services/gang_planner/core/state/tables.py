"""The tables on which decisions are based: nodes, pods, gangs, queues and reservations.

They never leave the planner; its results are frozen messages.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from services.gang_planner.core.state.backlog import Backlog
from services.gang_planner.core.state.columns import ResourceIndex
from services.gang_planner.core.state.extended_resources import ExtendedResources
from services.gang_planner.core.state.gang_table import GangTable
from services.gang_planner.core.state.inter_pod.label_index import LabelIndex
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeTable
from services.gang_planner.core.state.queues import QueueTable
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from services.gang_planner.core.state.reservations import ReservationTable
from shared.model.gang_keys import GangKey

if TYPE_CHECKING:
    from services.gang_planner.core.state.gangs import Member
    from shared.contracts.cluster import Synced


#: Cluster state is stale when the newest `synced` arrived longer ago than this. The watcher sends
#: one each second.
FRESH_MS: Final = 5_000


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

    @property
    def is_newest(self) -> bool:
        """Whether the cluster state is of the newest watcher epoch in any record."""
        return self.synced is not None and self.epoch == self.newest_epoch

    def shows(self, cluster_seq: int) -> bool:
        """Whether the cluster state has what was in CLUSTER up to this sequence."""
        return self.epoch > 0 and self.cluster_seq >= cluster_seq

    def is_fresh(self, now_ms: int) -> bool:
        """Whether the cluster state is new enough for placement decisions."""
        return self.is_newest and now_ms - self.synced_ms <= FRESH_MS

    def local_ms(self, watcher_ms: int) -> int:
        """A time of the watcher's clock on the planner's, by the newest `synced`'s difference."""
        ahead_ms = self.synced.at_ms - self.synced_ms if self.synced is not None else 0
        return watcher_ms - ahead_ms


class Tables:
    """The observed cluster objects, and the reservations on its nodes."""

    def __init__(self, owes: Callable[[GangKey], bool]) -> None:
        self.resources = ResourceIndex()
        self.shapes = ShapeTable(self.resources)
        self.reference_objects = ReferenceObjects()
        self.nodes = NodeTable(self.resources)
        self.node_capacity = NodeCapacity(self.nodes, self.reference_objects)
        self.extended_resources = ExtendedResources(self.node_capacity, self.reference_objects)
        self.reservations = ReservationTable(self.node_capacity)
        self.queues = QueueTable(self.resources)
        self.labels = LabelIndex(self.reference_objects.namespaces)
        self.node_capacity.pairs.attracting = self.shapes.terms.attracting
        self.backlog = Backlog()
        namespaces = self.reference_objects.namespaces
        self.gangs = GangTable(self.queues, self.shapes, namespaces, self.backlog, owes)
        self.members: dict[str, Member] = {}
        #: Members accounted on a node, by slot.
        self.residents: dict[int, dict[str, Member]] = {}
        self.view = ClusterView()

    def drop_phantom(self, slot: int) -> None:
        """Forget a node that does not exist and on which nothing is accounted."""
        if (
            self.nodes.names[slot]
            and not self.nodes.exists[slot]
            and slot not in self.residents
            and not self.reservations.on(slot)
        ):
            self.nodes.drop_phantom(slot)

    def relabel_lost(self) -> None:
        """Recount lost pods under their successors' profiles after a new inter-pod term."""
