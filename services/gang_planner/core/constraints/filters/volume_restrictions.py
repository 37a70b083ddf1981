"""Nodes where another pod uses the pod's ReadWriteOncePod claim, or mounts a disk without a claim
that two pods on a node cannot share.
"""

from collections import Counter
from typing import Final

import numpy as np

from services.gang_planner.core.constraints.filters import UNLIMITED, CapacityFilter
from services.gang_planner.core.state.columns import Ints, Slots
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.pod_shapes import ShapeEntry

IN_USE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)


DISK_CONFLICT: Final = "node(s) had no available disk"


class VolumeRestrictions:
    """An exclusive claim admits one pod, or none while it is in use, on all nodes alike."""

    name = "VolumeRestrictions"

    def capacity(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Slots) -> Ints:
        counts = np.full(node_capacity.nodes.size, UNLIMITED, dtype=np.int64)
        exclusive = node_capacity.storage.demand(shape).exclusive if shape.shape.claims else ()
        if exclusive:
            counts[:] = 0 if any(node_capacity.storage.in_use(key) for key in exclusive) else 1
        disks = shape.shape.disks
        if disks:
            if not all(disk.read_only for disk in disks):
                np.minimum(counts, 1, out=counts)
            counts[node_capacity.disks.conflicts(disks)] = 0
        return counts[slots]

    def reasons(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Ints) -> Counter[str]:
        mounted = np.zeros(node_capacity.nodes.size, dtype=np.bool_)
        mounted[node_capacity.disks.conflicts(shape.shape.disks)] = True
        conflicting = int(np.count_nonzero(mounted[slots]))
        counts = {DISK_CONFLICT: conflicting, IN_USE: len(slots) - conflicting}
        return Counter({text: count for text, count in counts.items() if count})


FILTER: Final[CapacityFilter] = VolumeRestrictions()
