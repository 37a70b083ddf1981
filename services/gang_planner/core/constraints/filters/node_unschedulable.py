"""Cordoned nodes, unless the pod tolerates the taint `node.kubernetes.io/unschedulable`."""

from collections import Counter
from typing import Final

import numpy as np

from services.gang_planner.core.constraints.filters import NodeFilter, NodeRule
from services.gang_planner.core.state.columns import Bools, Ints, Slots
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.taints import UNSCHEDULABLE, tolerates


class NodeUnschedulable:
    """Reads `spec.unschedulable`."""

    name = "NodeUnschedulable"

    def passes(self, shape: ShapeEntry, nodes: NodeTable, slots: Slots) -> Bools:
        """See `NodeFilter`."""
        cordoned = nodes.unschedulable[slots]
        if tolerates(shape.shape.tolerations, UNSCHEDULABLE):
            return np.ones(len(cordoned), dtype=np.bool_)
        return ~cordoned

    def reasons(self, shape: ShapeEntry, nodes: NodeTable, slots: Ints) -> Counter[str]:
        """See `NodeFilter`."""
        del shape, nodes
        return Counter({"node(s) were unschedulable": len(slots)})


FILTER: Final[NodeFilter] = NodeUnschedulable()
RULE: Final = NodeRule(FILTER, position=10)
