"""Prefers nodes whose cpu and memory would be used to about the same share."""

from typing import Final

import numpy as np

from services.gang_planner.core.scoring import FULL, ScoredNodes, ScoringRule
from services.gang_planner.core.state.columns import Ints


class BalancedAllocation:
    """Full points minus the standard deviation of the two used shares, which is half their
    distance.
    """

    name = "balancedresource"

    def score(self, nodes: ScoredNodes) -> Ints:
        """See `NodeScore`."""
        cpu, _ = nodes.shares("cpu")
        memory, _ = nodes.shares("memory")
        distance: Ints = np.abs(cpu - memory)
        return FULL - distance // 2

    def slope(self, nodes: ScoredNodes) -> Ints | None:
        """Half of how much each pod widens the distance; 0 where pods narrow it.

        Where they narrow it the score would rise until the shares cross and fall behind, which is
        no straight line: the first pod's points stand for all.
        """
        cpu, cpu_taken = nodes.shares("cpu")
        memory, memory_taken = nodes.shares("memory")
        widens = (cpu_taken - memory_taken) * np.sign(memory - cpu)
        lost: Ints = np.maximum(widens, 0) // 2
        return -lost


RULE: Final = ScoringRule(
    weight_argument="balancedresource.weight", default_weight=1, score=BalancedAllocation()
)
