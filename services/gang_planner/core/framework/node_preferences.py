"""Rules about places that a shape alone does not decide: the queue, the gang's other members, how
full whole domains are. They are asked again for every batch of members, because what they read
changes with each.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from services.gang_planner.core.framework.statement import Statement
from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.needs import Structure
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.queues import QueueEntry

if TYPE_CHECKING:
    from services.gang_planner.core.state.planner_state import State


class Place(NamedTuple):
    """Members of one role and shape that are about to be placed."""

    queue: QueueEntry
    role: str
    shape: ShapeEntry
    node_capacity: NodeCapacity
    #: What is placed already of their gang by this attempt.
    statement: Statement
    #: What their gang says of places.
    structure: Structure


QueueMask: TypeAlias = Callable[[QueueEntry], Bools | None]
"""The slots that gangs of a queue may use; None: all."""

PlacePoints: TypeAlias = Callable[[Place], tuple[Ints | None, int] | None]
"""Points of every slot (None: all alike), and their change per further member on it; None: no
opinion.
"""

QueueMaskFactory: TypeAlias = Callable[["State"], QueueMask]
"""Makes a mask that looks at the planner's tables; called once per configuration."""

PlacePointsFactory: TypeAlias = Callable[["State"], PlacePoints]
"""As `QueueMaskFactory`."""
