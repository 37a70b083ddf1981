"""Cordoned nodes, unless the pod tolerates the taint `node.kubernetes.io/unschedulable`."""

from typing import Final

import numpy as np

from services.gang_planner.core.constraints.filters import NodeRule, OneReason
from services.gang_planner.core.state.columns import Bools, Slots
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.taints import UNSCHEDULABLE, tolerates


class NodeUnschedulable(OneReason):
    name = "NodeUnschedulable"
    reason = "node(s) were unschedulable"

    def passes(self, shape: ShapeEntry, nodes: NodeTable, slots: Slots) -> Bools:
        cordoned = nodes.unschedulable[slots]
        if tolerates(shape.shape.tolerations, UNSCHEDULABLE):
            return np.ones(len(cordoned), dtype=np.bool_)
        return ~cordoned


RULE: Final = NodeRule(NodeUnschedulable(), position=10)
