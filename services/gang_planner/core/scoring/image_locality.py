"""Prefers nodes that have the pod's images, by their size and by how many nodes have them.

An image that few nodes have counts for little: not all pods are to end on those few.
"""

from typing import Final

import numpy as np

from services.gang_planner.core.scoring import FULL, ScoredNodes, ScoringRule
from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.nodes import NodeTable

_MIB: Final = 1024 * 1024
#: What is smaller is pulled in no time; beyond the second nothing is gained, per image.
_LEAST_BYTES: Final = 23 * _MIB
_MOST_BYTES: Final = 1000 * _MIB


class ImageLocality:
    """kube-scheduler's points; it counts containers where this counts distinct images."""

    name = "imagelocality"

    def score(self, nodes: ScoredNodes) -> Ints:
        """See `NodeScore`."""
        table = nodes.node_capacity.nodes
        names = nodes.shape.shape.images
        if not names or not table.images.any:
            return np.zeros(len(nodes.slots), dtype=np.int64)
        have = table.derived(("images", names), lambda: _have(names, table))
        most = _MOST_BYTES * len(names)
        counted = np.clip(have[nodes.slots], _LEAST_BYTES, most) - _LEAST_BYTES
        points: Ints = counted * FULL // (most - _LEAST_BYTES)
        return points

    def slope(self, nodes: ScoredNodes) -> Ints | None:
        """None: images do not depend on load."""
        del nodes
        return None


def _have(names: tuple[str, ...], nodes: NodeTable) -> Ints:
    """Bytes of the images that each node has, less where few have them."""
    have: Ints = np.zeros(nodes.size, dtype=np.int64)
    for name in names:
        found = nodes.images.of(name)
        slots = np.fromiter(found.keys(), dtype=np.int64, count=len(found))
        sizes = np.fromiter(found.values(), dtype=np.int64, count=len(found))
        have[slots] += sizes * len(found) // max(nodes.count, 1)
    return have


RULE: Final = ScoringRule(
    weight_argument="imagelocality.weight", default_weight=1, score=ImageLocality()
)
