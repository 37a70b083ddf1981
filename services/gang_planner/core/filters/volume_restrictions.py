"""ReadWriteOncePod: a claim that one pod uses is no other pod's."""

from collections import Counter
from typing import Final

import numpy as np

from services.gang_planner.core.columns import Ints, Slots
from services.gang_planner.core.filters import UNLIMITED, RoomFilter
from services.gang_planner.core.ground import Ground
from services.gang_planner.core.shapes import ShapeEntry

IN_USE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)


class VolumeRestrictions:
    """The same on all nodes: such a claim is in use, or free for one pod."""

    name = "VolumeRestrictions"

    def capacity(self, shape: ShapeEntry, ground: Ground, slots: Slots) -> Ints:
        """See `RoomFilter`."""
        size = len(ground.nodes.exists[: ground.nodes.size][slots])
        exclusive = ground.storage.demand(shape).exclusive
        if not exclusive:
            return np.full(size, UNLIMITED, dtype=np.int64)
        used = any(ground.storage.in_use(key) for key in exclusive)
        return np.full(size, 0 if used else 1, dtype=np.int64)

    def reasons(self, shape: ShapeEntry, ground: Ground, slots: Ints) -> Counter[str]:
        """See `RoomFilter`."""
        del shape, ground
        return Counter({IN_USE: len(slots)})


FILTER: Final[RoomFilter] = VolumeRestrictions()
