"""Prefers nodes that have the pod's images, weighted by image size and by the fraction of nodes
that have the image.

An image that few nodes have gets few points, so that pods do not pile up on those nodes.
"""

from typing import Final

import numpy as np

from services.gang_planner.core.scoring import FULL, FlatScore, ScoredNodes, ScoringRule
from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.nodes import NodeTable

_MIB: Final = 1024 * 1024
#: Below the first size images get no points; above the second, per image, no more points.
_LEAST_BYTES: Final = 23 * _MIB
_MOST_BYTES: Final = 1000 * _MIB


class ImageLocality(FlatScore):
    """kube-scheduler's points, scaled by the number of distinct images instead of containers."""

    name = "imagelocality"

    def score(self, nodes: ScoredNodes) -> Ints:
        table = nodes.node_capacity.nodes
        names = nodes.shape.shape.images
        if not names or not table.images.any:
            return np.zeros(len(nodes.slots), dtype=np.int64)
        have = table.derived(("images", names), lambda: _have(names, table))
        most = _MOST_BYTES * len(names)
        counted = np.clip(have[nodes.slots], _LEAST_BYTES, most) - _LEAST_BYTES
        points: Ints = counted * FULL // (most - _LEAST_BYTES)
        return points


def _have(names: tuple[str, ...], nodes: NodeTable) -> Ints:
    """Bytes of the named images on each node, scaled by the fraction of nodes that have them."""
    have: Ints = np.zeros(nodes.size, dtype=np.int64)
    for name in names:
        sizes_by_slot = nodes.images.of(name)
        slots = np.fromiter(sizes_by_slot.keys(), dtype=np.int64, count=len(sizes_by_slot))
        sizes = np.fromiter(sizes_by_slot.values(), dtype=np.int64, count=len(sizes_by_slot))
        have[slots] += sizes * len(sizes_by_slot) // max(nodes.count, 1)
    return have


RULE: Final = ScoringRule(
    weight_argument="imagelocality.weight", default_weight=1, score=ImageLocality()
)
