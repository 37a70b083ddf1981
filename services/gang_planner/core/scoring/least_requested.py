"""Prefers nodes with much free cpu and memory: spreads pods."""

from typing import Final

from services.gang_planner.core.scoring import ScoredNodes, ScoringRule
from services.gang_planner.core.state.columns import Ints


class LeastRequested:
    """Mean of the free shares of cpu and memory after the pod."""

    name = "leastrequested"

    def score(self, nodes: ScoredNodes) -> Ints:
        cpu, _ = nodes.shares("cpu")
        memory, _ = nodes.shares("memory")
        return (cpu + memory) // 2

    def slope(self, nodes: ScoredNodes) -> Ints:
        _, cpu = nodes.shares("cpu")
        _, memory = nodes.shares("memory")
        return -((cpu + memory + 1) // 2)


RULE: Final = ScoringRule(
    weight_argument="leastrequested.weight", default_weight=1, score=LeastRequested()
)
