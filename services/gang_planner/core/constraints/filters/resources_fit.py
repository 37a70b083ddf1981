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
        counts: Counter[str] = Counter()
        nodes = node_capacity.nodes
        for row, amount in shape.pairs:
            short = node_capacity.free.cells[row, slots] < amount
            name = nodes.resources.names[row]
            words = TOO_MANY_PODS if name == PODS else INSUFFICIENT + name
            of_class = nodes.device_classes.get(row)
            if of_class is not None:
                neither = short & (nodes.allocatable.cells[row, slots] == 0)
                number = int(np.count_nonzero(neither))
                counts[f"{words} (no device plugin, and {of_class})"] += number
                short &= ~neither
            counts[words] += int(np.count_nonzero(short))
        return +counts


FILTER: Final[CapacityFilter] = ResourcesFit()
