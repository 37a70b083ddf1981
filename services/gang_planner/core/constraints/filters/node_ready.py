"""Nodes that are not ready, unless the pod tolerates the taint `node.kubernetes.io/not-ready`.

The filter reads the condition Ready instead of the taint. Therefore the planner binds no pod to
such a node before the node controller sets the taint, or in clusters without that controller.
"""

from typing import Final

import numpy as np

from services.gang_planner.core.constraints.filters import NodeRule, OneReason
from services.gang_planner.core.state.columns import Bools, Slots
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.taints import NOT_READY, tolerates


class NodeReady(OneReason):
    name = "NodeReady"
    reason = f"node(s) had untolerated taint {{{NOT_READY.key}: }}"

    def passes(self, shape: ShapeEntry, nodes: NodeTable, slots: Slots) -> Bools:
        ready = nodes.ready[slots]
        if tolerates(shape.shape.tolerations, NOT_READY):
            return np.ones(len(ready), dtype=np.bool_)
        return ready


RULE: Final = NodeRule(NodeReady(), position=20)
