"""Nodes where the pod's volumes would exceed the CSI driver's attach limit (CSINode)."""

from typing import Final

import numpy as np

from services.gang_planner.core.constraints.filters import UNLIMITED, CapacityRule, OneReason
from services.gang_planner.core.state.columns import Ints, Slots
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.pod_shapes import ShapeEntry


class NodeVolumeLimits(OneReason):
    """All pods of a shape share its volumes, so the limit admits any number of them or none."""

    name = "NodeVolumeLimits"
    reason = "node(s) exceed max volume count"

    def capacity(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Slots) -> Ints:
        counts = np.full(node_capacity.nodes.size, UNLIMITED, dtype=np.int64)
        full = node_capacity.storage.over_limits(shape) if shape.shape.claims else None
        if full is not None:
            counts[full] = 0
        return counts[slots]


RULE: Final = CapacityRule(
    NodeVolumeLimits(), switch="predicate.NodeVolumeLimitsEnable", position=60
)
