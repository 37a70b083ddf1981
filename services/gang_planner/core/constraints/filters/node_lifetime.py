"""Nodes that are being added or removed, also for pods that tolerate every taint.

Cloud providers, Karpenter and cluster-autoscaler set such taints. Pods with a toleration without a
key (`operator: Exists`), which is common for jobs on GPUs, tolerate them, too: they would start on
a node without drivers, or on one that is drained a moment later. A toleration that names the key
counts, and pods that name their node (those of a DaemonSet) are not concerned.
"""

from typing import Final

import numpy as np

from services.gang_planner.core.constraints.filters import NodeRule, OneReason
from services.gang_planner.core.state.columns import Bools, Slots
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.taints import is_temporary, tolerates
from shared.model.objects import Shape

_NODE_NAME: Final = "metadata.name"


class NodeLifetime(OneReason):
    name = "NodeLifetime"
    reason = "node(s) were being added or removed"

    def passes(self, shape: ShapeEntry, nodes: NodeTable, slots: Slots) -> Bools:
        sets = nodes.taint_set[slots]
        by_name = [toleration for toleration in shape.shape.tolerations if toleration.key]
        if len(by_name) == len(shape.shape.tolerations) or _names_its_node(shape.shape):
            # TaintToleration decides.
            return np.ones(len(sets), dtype=np.bool_)
        passing = np.array(
            [
                all(tolerates(by_name, taint) for taint in taints if is_temporary(taint))
                for taints in nodes.taints.sets
            ],
            dtype=np.bool_,
        )
        return passing[sets]


def _names_its_node(shape: Shape) -> bool:
    terms = shape.node_affinity or ()
    return bool(terms) and all(
        any(
            requirement.key == _NODE_NAME and requirement.operator == "In"
            for requirement in term.fields
        )
        for term in terms
    )


RULE: Final = NodeRule(NodeLifetime(), position=35)
