"""Weighted means over the resources that a pod requests; policies choose resources and weights."""

from collections.abc import Callable

import numpy as np

from services.gang_planner.core.scoring import FULL, ScoredNodes
from services.gang_planner.core.state.columns import Ints


class RequestedShares:
    """The used share of a packed resource after the pod, the free share of a spread one."""

    def __init__(self, name: str, strategy_of: Callable[[str], tuple[bool, int] | None]) -> None:
        """`strategy_of`: whether a resource is packed, and its weight; None: it does not count."""
        self.name = name
        self._strategy_of = strategy_of

    def score(self, nodes: ScoredNodes) -> Ints:
        return self._mean(nodes, slope=False)

    def slope(self, nodes: ScoredNodes) -> Ints | None:
        return self._mean(nodes, slope=True)

    def _mean(self, nodes: ScoredNodes, *, slope: bool) -> Ints:
        points: Ints = np.zeros(len(nodes.slots), dtype=np.int64)
        total = 0
        names = nodes.node_capacity.nodes.resources.names
        for row, _ in nodes.shape.pairs:
            strategy = self._strategy_of(names[row])
            if strategy is None:
                continue
            packed, weight = strategy
            free, taken = nodes.shares(names[row])
            if slope:
                points += weight * (taken if packed else -taken)
            else:
                points += weight * (FULL - free if packed else free)
            total += weight
        return points // max(total, 1)
