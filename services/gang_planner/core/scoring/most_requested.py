"""Prefers nodes with little free cpu and memory: packs pods."""

from typing import Final

from services.gang_planner.core.scoring import FULL, ScoredNodes, ScoringRule
from services.gang_planner.core.state.columns import Ints


class MostRequested:
    """Mean of the used shares of cpu and memory after the pod."""

    name = "mostrequested"

    def score(self, nodes: ScoredNodes) -> Ints:
        """See `NodeScore`."""
        cpu, _ = nodes.shares("cpu")
        memory, _ = nodes.shares("memory")
        return FULL - (cpu + memory) // 2

    def slope(self, nodes: ScoredNodes) -> Ints | None:
        """See `NodeScore`."""
        _, cpu = nodes.shares("cpu")
        _, memory = nodes.shares("memory")
        return (cpu + memory + 1) // 2


RULE: Final = ScoringRule(
    weight_argument="mostrequested.weight", default_weight=0, score=MostRequested()
)
