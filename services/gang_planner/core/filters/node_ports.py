"""Host ports: a node holds one pod of a shape that claims any, and none where a claim conflicts."""

from collections import Counter
from typing import Final

import numpy as np

from services.gang_planner.core.filters import UNLIMITED, RoomFilter
from services.gang_planner.core.tables.columns import Ints, Slots
from services.gang_planner.core.tables.ground import Ground
from services.gang_planner.core.tables.shapes import ShapeEntry


class NodePorts:
    """Few nodes have claims; only these are looked at."""

    name = "NodePorts"

    def capacity(self, shape: ShapeEntry, ground: Ground, slots: Slots) -> Ints:
        """See `RoomFilter`."""
        all_slots = np.arange(ground.nodes.size, dtype=np.int64)[slots]
        ports = shape.shape.host_ports
        if not ports:
            return np.full(len(all_slots), UNLIMITED, dtype=np.int64)
        taken = [slot for slot in ground.ports.slots() if ground.ports.conflicts(slot, ports)]
        return np.where(np.isin(all_slots, np.array(taken, dtype=np.int64)), 0, 1).astype(np.int64)

    def reasons(self, shape: ShapeEntry, ground: Ground, slots: Ints) -> Counter[str]:
        """See `RoomFilter`."""
        del shape, ground
        text = "node(s) didn't have free ports for the requested pod ports"
        return Counter({text: len(slots)})


FILTER: Final[RoomFilter] = NodePorts()
