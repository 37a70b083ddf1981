"""Nodes on which a host port of the pod is in use. A node holds at most one pod of a shape with
host ports.
"""

from typing import Final

import numpy as np

from services.gang_planner.core.constraints.filters import UNLIMITED, CapacityRule, OneReason
from services.gang_planner.core.state.columns import Ints, Slots
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.pod_shapes import ShapeEntry


class NodePorts(OneReason):
    """Examines only nodes with used host ports, which are few."""

    name = "NodePorts"
    reason = "node(s) didn't have free ports for the requested pod ports"

    def capacity(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Slots) -> Ints:
        all_slots = np.arange(node_capacity.nodes.size, dtype=np.int64)[slots]
        ports = shape.shape.host_ports
        if not ports:
            return np.full(len(all_slots), UNLIMITED, dtype=np.int64)
        taken = node_capacity.ports.conflicts(ports)
        return np.where(np.isin(all_slots, np.array(taken, dtype=np.int64)), 0, 1).astype(np.int64)


RULE: Final = CapacityRule(NodePorts(), switch="predicate.NodePortsEnable", position=50)
