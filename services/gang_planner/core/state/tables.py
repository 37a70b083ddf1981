"""The tables on which decisions are based: nodes, pods, gangs, queues and reservations.

They never leave the planner; its results are frozen messages.
"""

from typing import TYPE_CHECKING

from services.gang_planner.core.state.backlog import Backlog
from services.gang_planner.core.state.cluster_view import ClusterView
from services.gang_planner.core.state.columns import ResourceIndex
from services.gang_planner.core.state.gang_table import GangTable
from services.gang_planner.core.state.inter_pod.label_index import LabelIndex
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeTable
from services.gang_planner.core.state.queues import QueueTable
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from services.gang_planner.core.state.reservations import ReservationTable

if TYPE_CHECKING:
    from services.gang_planner.core.state.gangs import Member


class Tables:
    """The observed cluster objects, and the reservations on its nodes."""

    def __init__(self) -> None:
        self.resources = ResourceIndex()
        self.shapes = ShapeTable(self.resources)
        self.reference_objects = ReferenceObjects()
        self.nodes = NodeTable(self.resources)
        self.node_capacity = NodeCapacity(self.nodes, self.reference_objects)
        self.reservations = ReservationTable(self.node_capacity)
        self.queues = QueueTable(self.resources)
        self.labels = LabelIndex(self.reference_objects.namespaces)
        self.node_capacity.pairs.attracting = self.shapes.terms.attracting
        self.gangs = GangTable(self.queues, self.shapes)
        self.backlog = Backlog()
        self.gangs.leave_backlog = self.backlog.take
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
