"""Prefers nodes with little free cpu and memory: packs pods."""

from typing import Final

from services.gang_planner.core.scoring import FULL, ScoredNodes, ScoringRule
from services.gang_planner.core.scoring.least_requested import LeastRequested
from services.gang_planner.core.state.columns import Ints

_FREE: Final = LeastRequested()


class MostRequested:
    """Mean of the used shares of cpu and memory after the pod."""

    name = "mostrequested"

    def score(self, nodes: ScoredNodes) -> Ints:
        return FULL - _FREE.score(nodes)

    def slope(self, nodes: ScoredNodes) -> Ints | None:
        return -_FREE.slope(nodes)


RULE: Final = ScoringRule(
    weight_argument="mostrequested.weight", default_weight=0, score=MostRequested()
)
