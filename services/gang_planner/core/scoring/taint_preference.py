"""Avoids nodes with PreferNoSchedule taints that the pod does not tolerate."""

from typing import Final

import numpy as np

from services.gang_planner.core.scoring import FULL, FlatScore, ScoredNodes, ScoringRule
from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.taints import preferred_against


class TaintPreference(FlatScore):
    """Full points without such a taint, 0 points for the largest number of any set of taints."""

    name = "tainttoleration"

    def score(self, nodes: ScoredNodes) -> Ints:
        taints = nodes.node_capacity.nodes.taints
        if not taints.any_preference:
            return np.full(len(nodes.slots), FULL, dtype=np.int64)
        tolerations = nodes.shape.shape.tolerations
        against = [preferred_against(tolerations, taint_set) for taint_set in taints.sets]
        points = [FULL - count * FULL // max(*against, 1) for count in against]
        by_set: Ints = np.array(points, dtype=np.int64)
        return by_set[nodes.node_capacity.nodes.taint_set[nodes.slots]]


RULE: Final = ScoringRule(
    weight_argument="tainttoleration.weight", default_weight=3, score=TaintPreference()
)
