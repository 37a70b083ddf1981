"""Nodes that do not match the pod's nodeSelector or required node affinity, including
`matchFields` on metadata.name.
"""

from collections import Counter
from typing import Final

import numpy as np

from services.gang_planner.core.constraints.filters import NodeFilter, NodeRule
from services.gang_planner.core.state.columns import Bools, Ints, Slots
from services.gang_planner.core.state.node_terms import matching_any
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from shared.model.objects import Requirement


class NodeAffinity:
    """Compares the labels and names of nodes."""

    name = "NodeAffinity"

    def passes(self, shape: ShapeEntry, nodes: NodeTable, slots: Slots) -> Bools:
        """See `NodeFilter`."""
        passing: Bools = np.ones(len(nodes.exists[slots]), dtype=np.bool_)
        for key, value in shape.shape.node_selector:
            wanted = Requirement(key=key, operator="In", values=(value,))
            passing &= nodes.labels.matches(wanted, key, nodes.objects, slots)
        terms = shape.shape.node_affinity
        if terms is not None:
            passing &= matching_any(terms, nodes, slots)
        return passing

    def reasons(self, shape: ShapeEntry, nodes: NodeTable, slots: Ints) -> Counter[str]:
        """See `NodeFilter`."""
        del shape, nodes
        return Counter({"node(s) didn't match Pod's node affinity/selector": len(slots)})


FILTER: Final[NodeFilter] = NodeAffinity()
RULE: Final = NodeRule(FILTER, switch="predicate.NodeAffinityEnable", position=40)
