"""Nodes with too little free capacity for the pod's requests, or without a free pod slot."""

from collections import Counter
from typing import Final

import numpy as np

from services.gang_planner.core.constraints.filters import UNLIMITED, CapacityFilter
from services.gang_planner.core.state.columns import Ints, Slots
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.pod_shapes import PODS, ShapeEntry

TOO_MANY_PODS: Final = "Too many pods"
INSUFFICIENT: Final = "Insufficient "


class ResourcesFit:
    """`min over resources of free // request`; 0 on a node that foreign pods overcommitted."""

    name = "NodeResourcesFit"

    def capacity(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Slots) -> Ints:
        cells = node_capacity.free.cells
        least: Ints | None = None
        for row, amount in shape.pairs:
            free = cells[row, : node_capacity.nodes.size][slots]
            # Division dominates the cost; a request of one (pods, devices) needs none.
            times = free // amount if amount > 1 else free
            least = times if least is None else np.minimum(least, times)
        if least is None:
            return np.full(len(node_capacity.nodes.exists[slots]), UNLIMITED, dtype=np.int64)
        return np.clip(least, 0, UNLIMITED)

    def reasons(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Ints) -> Counter[str]:
        found: Counter[str] = Counter()
        names = node_capacity.nodes.resources.names
        for row, amount in shape.pairs:
            short = int(np.count_nonzero(node_capacity.free.cells[row, slots] < amount))
            if short:
                name = names[row]
                found[TOO_MANY_PODS if name == PODS else INSUFFICIENT + name] += short
        return found


FILTER: Final[CapacityFilter] = ResourcesFit()
