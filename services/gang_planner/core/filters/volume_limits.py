"""Volumes that a driver can attach to a node, as its CSINode tells."""

from collections import Counter
from typing import Final

import numpy as np

from services.gang_planner.core.filters import UNLIMITED, RoomFilter
from services.gang_planner.core.tables.columns import Ints, Slots
from services.gang_planner.core.tables.ground import Ground
from services.gang_planner.core.tables.shapes import ShapeEntry


class NodeVolumeLimits:
    """The volumes of a shape are the same for all its pods: they fit, or they do not."""

    name = "NodeVolumeLimits"

    def capacity(self, shape: ShapeEntry, ground: Ground, slots: Slots) -> Ints:
        """See `RoomFilter`."""
        counts = np.full(ground.nodes.size, UNLIMITED, dtype=np.int64)
        full = ground.storage.over_limits(shape) if shape.shape.claims else None
        if full is not None:
            counts[full] = 0
        return counts[slots]

    def reasons(self, shape: ShapeEntry, ground: Ground, slots: Ints) -> Counter[str]:
        """See `RoomFilter`."""
        del shape, ground
        return Counter({"node(s) exceed max volume count": len(slots)})


FILTER: Final[RoomFilter] = NodeVolumeLimits()
