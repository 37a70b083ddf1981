"""ReadWriteOncePod: a claim that one pod uses is no other pod's. And disks without a claim that two
pods on a node may not share.
"""

from collections import Counter
from typing import Final

import numpy as np

from services.gang_planner.core.filters import UNLIMITED, RoomFilter
from services.gang_planner.core.tables.columns import Ints, Slots
from services.gang_planner.core.tables.ground import Ground
from services.gang_planner.core.tables.shapes import ShapeEntry

IN_USE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)


DISK_CONFLICT: Final = "node(s) had no available disk"


class VolumeRestrictions:
    """Of claims the same on all nodes: such a one is in use, or free for one pod."""

    name = "VolumeRestrictions"

    def capacity(self, shape: ShapeEntry, ground: Ground, slots: Slots) -> Ints:
        """See `RoomFilter`."""
        counts = np.full(ground.nodes.size, UNLIMITED, dtype=np.int64)
        exclusive = ground.storage.demand(shape).exclusive if shape.shape.claims else ()
        if exclusive:
            counts[:] = 0 if any(ground.storage.in_use(key) for key in exclusive) else 1
        disks = shape.shape.disks
        if disks:
            if not all(one.read_only for one in disks):
                np.minimum(counts, 1, out=counts)
            counts[ground.disks.conflicts(disks)] = 0
        return counts[slots]

    def reasons(self, shape: ShapeEntry, ground: Ground, slots: Ints) -> Counter[str]:
        """See `RoomFilter`."""
        mounted = np.zeros(ground.nodes.size, dtype=np.bool_)
        mounted[ground.disks.conflicts(shape.shape.disks)] = True
        conflicting = int(np.count_nonzero(mounted[slots]))
        found = {DISK_CONFLICT: conflicting, IN_USE: len(slots) - conflicting}
        return Counter({text: count for text, count in found.items() if count})


FILTER: Final[RoomFilter] = VolumeRestrictions()
