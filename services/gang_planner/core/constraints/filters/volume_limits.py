"""Nodes where the pod's volumes would exceed the CSI driver's attach limit (CSINode)."""

from collections import Counter
from typing import Final

import numpy as np

from services.gang_planner.core.constraints.filters import UNLIMITED, CapacityFilter, CapacityRule
from services.gang_planner.core.state.columns import Ints, Slots
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.pod_shapes import ShapeEntry


class NodeVolumeLimits:
    """All pods of a shape share its volumes, so the limit admits any number of them or none."""

    name = "NodeVolumeLimits"

    def capacity(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Slots) -> Ints:
        """See `CapacityFilter`."""
        counts = np.full(node_capacity.nodes.size, UNLIMITED, dtype=np.int64)
        full = node_capacity.storage.over_limits(shape) if shape.shape.claims else None
        if full is not None:
            counts[full] = 0
        return counts[slots]

    def reasons(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Ints) -> Counter[str]:
        """See `CapacityFilter`."""
        del shape, node_capacity
        return Counter({"node(s) exceed max volume count": len(slots)})


FILTER: Final[CapacityFilter] = NodeVolumeLimits()
RULE: Final = CapacityRule(FILTER, switch="predicate.NodeVolumeLimitsEnable", position=60)
