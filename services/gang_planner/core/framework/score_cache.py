"""Scores of nodes, kept from one use to the next."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from services.gang_planner.core.framework.policy_set import PolicySet
from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.pod_shapes import ShapeEntry

#: Shapes whose scores are kept; all are dropped when there are more.
_SCORED_SHAPES_MAX: Final = 1024


@dataclass(eq=False, slots=True)
class _Rating:
    score: Ints
    slope: Ints | None
    position: int
    nodes_position: int


class ScoreCache:
    """Scores and slopes of all nodes of one node capacity table under one set of policies.

    A score depends on one node at a time, so only nodes that changed since the last use are scored
    again: after a gang of twenty on five thousand nodes these are twenty nodes at most.
    """

    def __init__(self, node_capacity: NodeCapacity, policies: PolicySet) -> None:
        self._node_capacity = node_capacity
        self._policies = policies
        self._cache: dict[bytes, _Rating] = {}

    def of(self, shape: ShapeEntry) -> tuple[Ints, Ints | None]:
        """Points of the first pod on each node, and their change per further pod (None: none).

        Not to be written to.
        """
        changes, nodes = self._node_capacity.changes, self._node_capacity.nodes
        rating = self._cache.get(shape.rated)
        position, nodes_position = changes.position, nodes.changes.position
        if rating is not None and rating.nodes_position == nodes_position:
            if rating.position == position:
                return rating.score, rating.slope
            changed = changes.since(rating.position, max(16, nodes.size // 4))
            if changed is not None:
                score, slope = self._policies.scores(shape, self._node_capacity, changed)
                rating.score[changed] = score
                if rating.slope is not None and slope is not None:
                    rating.slope[changed] = slope
                rating.position = position
                return rating.score, rating.slope
        if len(self._cache) >= _SCORED_SHAPES_MAX:
            self._cache.clear()
        slots = np.arange(nodes.size, dtype=np.int64)
        score, slope = self._policies.scores(shape, self._node_capacity, slots)
        self._cache[shape.rated] = _Rating(score, slope, position, nodes_position)
        return score, slope

    def after(self, shape: ShapeEntry, slots: Ints, pods: int) -> Ints:
        """Points of the next pod on each of these nodes, after this many more pods there."""
        node_capacity = self._node_capacity
        cells = node_capacity.free.cells
        where = np.ix_(shape.rows, slots)
        cells[where] -= shape.column * pods
        score, _ = self._policies.scores(shape, node_capacity, slots)
        cells[where] += shape.column * pods
        return score
