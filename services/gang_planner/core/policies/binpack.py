"""Prefers nodes with a high utilization after the pod: the weighted mean over the resources that
the pod requests.

It outweighs the spreading of `nodeorder` when its weight is larger. With equal weights the two
cancel out and the order of node names decides, as in Volcano.
"""

import numpy as np

from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.scoring import FULL, ScoredNodes
from services.gang_planner.core.state.columns import Ints


class _Binpack:
    """Weighted mean of the used shares after the pod, over the resources that it requests."""

    name = "binpack"

    def __init__(self, weights: dict[str, int]) -> None:
        self._weights = weights

    def score(self, nodes: ScoredNodes) -> Ints:
        total, used = self._sum(nodes, slope=False)
        return used // max(total, 1)

    def slope(self, nodes: ScoredNodes) -> Ints | None:
        total, taken = self._sum(nodes, slope=True)
        return taken // max(total, 1)

    def _sum(self, nodes: ScoredNodes, *, slope: bool) -> tuple[int, Ints]:
        amounts: Ints = np.zeros(len(nodes.slots), dtype=np.int64)
        total = 0
        for resource, weight in self._weights.items():
            row = nodes.node_capacity.nodes.resources.find(resource)
            if row not in nodes.shape.by_row:
                continue
            free, taken = nodes.shares(resource)
            amounts += weight * (taken if slope else FULL - free)
            total += weight
        return total, amounts


def build(arguments: Arguments) -> Policy:
    """Arguments `binpack.weight`, `.cpu`, `.memory` (1 each), `.resources` (names of further
    resources), `.resources.<name>` (1).
    """
    weights = {
        name: weight for name, weight in arguments.resource_weights("binpack").items() if weight
    }
    weight = arguments.integer("binpack.weight", 1)
    scores = ((weight, _Binpack(weights)),) if weight and weights else ()
    return Policy(name="binpack", scores=scores)
