"""Node rules and preferences that depend on more than the shape: on the queue, on the gang's other
members, or on the utilization of domains. They are evaluated again for every batch of members,
because each batch changes their input.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from services.gang_planner.core.framework.statement import Statement
from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.needs import Structure
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.queues import QueueEntry


class Place(NamedTuple):
    """The next batch of members to place: one role and shape, with its context."""

    queue: QueueEntry
    role: str
    shape: ShapeEntry
    node_capacity: NodeCapacity
    #: Members of the gang that this attempt has placed.
    statement: Statement
    #: Topology, sub-gangs and roles of the gang.
    structure: Structure


QueueMask: TypeAlias = Callable[[QueueEntry, NodeTable], Bools | None]
"""Returns one flag per slot: whether gangs of the queue may use the node; None: all."""

PlacePoints: TypeAlias = Callable[[Place], tuple[Ints | None, int] | None]
"""Returns (points per slot, change per further member on the same node). Points None: equal for all
slots. Result None: no preference.
"""
