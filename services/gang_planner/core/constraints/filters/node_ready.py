"""Nodes that are not ready, unless the pod tolerates the taint `node.kubernetes.io/not-ready`.

The filter reads the condition Ready instead of the taint. Therefore the planner binds no pod to
such a node before the node controller sets the taint, or in clusters without that controller.
"""

from collections import Counter
from typing import Final

import numpy as np

from services.gang_planner.core.constraints.filters import NodeFilter, NodeRule
from services.gang_planner.core.state.columns import Bools, Ints, Slots
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.taints import NOT_READY, tolerates


class NodeReady:
    """Reads the condition Ready."""

    name = "NodeReady"

    def passes(self, shape: ShapeEntry, nodes: NodeTable, slots: Slots) -> Bools:
        """See `NodeFilter`."""
        ready = nodes.ready[slots]
        if tolerates(shape.shape.tolerations, NOT_READY):
            return np.ones(len(ready), dtype=np.bool_)
        return ready

    def reasons(self, shape: ShapeEntry, nodes: NodeTable, slots: Ints) -> Counter[str]:
        """See `NodeFilter`."""
        del shape, nodes
        return Counter({f"node(s) had untolerated taint {{{NOT_READY.key}: }}": len(slots)})


FILTER: Final[NodeFilter] = NodeReady()
RULE: Final = NodeRule(FILTER, position=20)
