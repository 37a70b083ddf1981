"""Prefers nodes whose cpu and memory would be used to about the same share."""

from typing import Final

import numpy as np

from services.gang_planner.core.columns import Ints
from services.gang_planner.core.scores import FULL, Candidates, NodeScore


class BalancedAllocation:
    """Full points minus the standard deviation of the two used shares, which is half their
    distance.
    """

    name = "balancedresource"

    def score(self, nodes: Candidates) -> Ints:
        """See `NodeScore`."""
        cpu, _ = nodes.shares("cpu")
        memory, _ = nodes.shares("memory")
        distance: Ints = np.abs(cpu - memory)
        return FULL - distance // 2

    def slope(self, nodes: Candidates) -> Ints | None:
        """None: balance after the first pod stands for all. It bends, and must not hide the
        straight scores.
        """
        del nodes
        return None


SCORE: Final[NodeScore] = BalancedAllocation()
