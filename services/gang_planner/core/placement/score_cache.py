"""The scores of all nodes for a shape, cached, and computed again for the nodes that changed.

A score depends on one node at a time, so only nodes that changed since the last use are scored
again: after a gang of twenty on five thousand nodes these are twenty nodes at most.
"""

import numpy as np

from services.gang_planner.core.framework.policy_set import PolicySet
from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.pod_shapes import ShapeEntry

#: Shapes whose scores are kept; all are dropped when there are more.
_CACHED_MAX = 1024


class _Rating:
    __slots__ = ("nodes_position", "position", "score", "slope")

    def __init__(self, score: Ints, slope: Ints | None, position: int, nodes_position: int) -> None:
        self.score = score
        self.slope = slope
        self.position = position
        self.nodes_position = nodes_position


class ScoreCache:
    """Scores and slopes of all nodes of one node capacity table under one set of policies."""

    def __init__(self, node_capacity: NodeCapacity, policies: PolicySet) -> None:
        self._node_capacity = node_capacity
        self._policies = policies
        self._cache: dict[bytes, _Rating] = {}

    def of(self, shape: ShapeEntry) -> tuple[Ints, Ints | None]:
        """Points of the first pod on each node, and their change per further pod (None: none).

        Not to be written to.
        """
        node_capacity = self._node_capacity
        rating = self._cache.get(shape.rated)
        position, nodes_position = (
            node_capacity.changes.position,
            node_capacity.nodes.changes.position,
        )
        if rating is not None and rating.nodes_position == nodes_position:
            if rating.position == position:
                return rating.score, rating.slope
            changed = node_capacity.changes.since(
                rating.position, max(16, node_capacity.nodes.size // 4)
            )
            if changed is not None:
                self._repair(rating, shape, changed)
                rating.position = position
                return rating.score, rating.slope
        if len(self._cache) >= _CACHED_MAX:
            self._cache.clear()
        slots = np.arange(node_capacity.nodes.size, dtype=np.int64)
        score, slope = self._policies.scores(shape, node_capacity, slots)
        self._cache[shape.rated] = _Rating(score, slope, position, nodes_position)
        return score, slope

    def _repair(self, rating: _Rating, shape: ShapeEntry, changed: Ints) -> None:
        score, slope = self._policies.scores(shape, self._node_capacity, changed)
        rating.score[changed] = score
        if rating.slope is not None and slope is not None:
            rating.slope[changed] = slope
