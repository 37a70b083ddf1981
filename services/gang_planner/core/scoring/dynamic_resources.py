"""Prefers nodes on which earlier alternatives of the pod's ResourceClaims are available."""

from typing import Final

import numpy as np

from services.gang_planner.core.scoring import FULL, ClaimScore, ScoredNodes, ScoringRule
from services.gang_planner.core.state.columns import Ints


class AlternativePreference(ClaimScore):
    """kube-scheduler's points: 8 for each request that its first alternative serves, 7 for the
    second and so on, normalized to the largest sum of any candidate.
    """

    name = "dynamicresources"

    def score(self, nodes: ScoredNodes) -> Ints:
        points = nodes.node_capacity.devices.points_of_alternatives(nodes.shape, nodes.slots)
        if points is None:
            return np.zeros(len(nodes.slots), dtype=np.int64)
        normalized: Ints = points * FULL // max(int(points.max(initial=0)), 1)
        return normalized


RULE: Final = ScoringRule(
    weight_argument="dynamicresources.weight", default_weight=2, score=AlternativePreference()
)
