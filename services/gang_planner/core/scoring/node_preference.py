"""Prefers nodes that match preferred terms of the pod's node affinity, by weight."""

from typing import Final

import numpy as np

from services.gang_planner.core.scoring import FULL, FlatScore, ScoredNodes, ScoringRule
from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.node_terms import matching
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry


class NodePreference(FlatScore):
    """Sum of the matching weights, normalized to the largest sum of any node."""

    name = "nodeaffinity"

    def score(self, nodes: ScoredNodes) -> Ints:
        table = nodes.node_capacity.nodes
        if not nodes.shape.shape.preferred_node_affinity:
            return np.zeros(len(nodes.slots), dtype=np.int64)
        # Points are normalized over all nodes, so all nodes are evaluated.
        preferred = nodes.shape.shape.preferred_node_affinity
        weights = table.derived(preferred, lambda: _weights(nodes.shape, table))
        most = max(int(weights.max(initial=0)), 1)
        points: Ints = weights[nodes.slots] * FULL // most
        return points


def _weights(shape: ShapeEntry, nodes: NodeTable) -> Ints:
    weights: Ints = np.zeros(nodes.size, dtype=np.int64)
    for preferred in shape.shape.preferred_node_affinity:
        weights += preferred.weight * matching(preferred.term, nodes, slice(0, nodes.size))
    weights *= nodes.exists[: nodes.size]
    return weights


RULE: Final = ScoringRule(
    weight_argument="nodeaffinity.weight", default_weight=2, score=NodePreference()
)
