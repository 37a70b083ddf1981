"""Avoids nodes with PreferNoSchedule taints that the pod does not tolerate."""

from typing import Final

import numpy as np

from services.gang_planner.core.columns import Ints
from services.gang_planner.core.scores import FULL, Candidates, NodeScore
from services.gang_planner.core.taints import preferred_against


class TaintPreference:
    """Full points without such a taint, none on the node with the most."""

    name = "tainttoleration"

    def score(self, nodes: Candidates) -> Ints:
        """See `NodeScore`."""
        taints = nodes.ground.nodes.taints
        if not taints.any_preference:
            return np.full(len(nodes.slots), FULL, dtype=np.int64)
        against = np.array(
            [preferred_against(nodes.shape.shape.tolerations, one) for one in taints.sets],
            dtype=np.int64,
        )[nodes.ground.nodes.taint_set[nodes.slots]]
        worst = int(against.max(initial=0))
        return FULL - against * FULL // max(worst, 1)

    def slope(self, nodes: Candidates) -> Ints | None:
        """None: taints do not depend on load."""
        del nodes
        return None


SCORE: Final[NodeScore] = TaintPreference()
