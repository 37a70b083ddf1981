"""Prefers nodes with a similar utilization of cpu and memory after the pod."""

from typing import Final

import numpy as np

from services.gang_planner.core.scoring import FULL, ScoredNodes, ScoringRule
from services.gang_planner.core.state.columns import Ints


class BalancedAllocation:
    """Full points minus the standard deviation of the two used shares: half their difference."""

    name = "balancedresource"

    def score(self, nodes: ScoredNodes) -> Ints:
        cpu, _ = nodes.shares("cpu")
        memory, _ = nodes.shares("memory")
        distance: Ints = np.abs(cpu - memory)
        return FULL - distance // 2

    def slope(self, nodes: ScoredNodes) -> Ints | None:
        """Minus half of the increase of the difference per pod; 0 where pods reduce it.

        Where pods reduce the difference, the score rises until the shares cross and then falls.
        That is not linear, so all pods get the points of the first.
        """
        cpu, cpu_taken = nodes.shares("cpu")
        memory, memory_taken = nodes.shares("memory")
        widens = (cpu_taken - memory_taken) * np.sign(memory - cpu)
        lost: Ints = np.maximum(widens, 0) // 2
        return -lost


RULE: Final = ScoringRule(
    weight_argument="balancedresource.weight", default_weight=1, score=BalancedAllocation()
)
