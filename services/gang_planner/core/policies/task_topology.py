"""Prefers nodes with members of the roles in `volcano.sh/task-topology-affinity`, and avoids nodes
with members of the roles in `volcano.sh/task-topology-anti-affinity` (annotations of the gang). It
is only a preference: no gang waits for it.
"""

import numpy as np

from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.policy import Place, Policy
from services.gang_planner.core.scoring import FULL
from services.gang_planner.core.state.columns import Ints


def build(arguments: Arguments) -> Policy:
    """Argument `task-topology.weight` (1)."""
    weight = arguments.integer("task-topology.weight", 1)
    if not weight:
        return Policy(name="task-topology")

    def points(place: Place) -> tuple[Ints | None, int] | None:
        return _points(place, weight * FULL)

    return Policy(name="task-topology", place_points=points, reads_tasks=True)


def _points(place: Place, worth: int) -> tuple[Ints | None, int] | None:
    tasks = place.structure.tasks
    if tasks is None:
        return None
    beside, away = tasks.beside(place.role), tasks.away_from(place.role)
    if not beside and not away:
        return None
    points: Ints = np.zeros(place.node_capacity.nodes.size, dtype=np.int64)
    for allocation in place.statement.allocations:
        if allocation.role in beside:
            points[allocation.slots] += worth
        if allocation.role in away:
            points[allocation.slots] -= worth
    return points, worth * ((place.role in beside) - (place.role in away))
