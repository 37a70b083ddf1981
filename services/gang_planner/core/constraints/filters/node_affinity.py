"""Nodes that do not match the pod's nodeSelector or required node affinity, including
`matchFields` on metadata.name.
"""

from typing import Final

import numpy as np

from services.gang_planner.core.constraints.filters import NodeFilter, NodeRule, OneReason
from services.gang_planner.core.state.columns import Bools, Slots
from services.gang_planner.core.state.node_terms import matching_any
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from shared.model.objects import Requirement


class NodeAffinity(OneReason):
    name = "NodeAffinity"
    reason = "node(s) didn't match Pod's node affinity/selector"

    def passes(self, shape: ShapeEntry, nodes: NodeTable, slots: Slots) -> Bools:
        passing: Bools = np.ones(len(nodes.exists[slots]), dtype=np.bool_)
        for key, value in shape.shape.node_selector:
            wanted = Requirement(key=key, operator="In", values=(value,))
            passing &= nodes.labels.matches(wanted, key, nodes.objects, slots)
        terms = shape.shape.node_affinity
        if terms is not None:
            passing &= matching_any(terms, nodes, slots)
        return passing


FILTER: Final[NodeFilter] = NodeAffinity()
RULE: Final = NodeRule(FILTER, switch="predicate.NodeAffinityEnable", position=40)
