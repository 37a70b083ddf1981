"""ResourceClaims: the devices that they have can be used on the node, or there are enough for
them.
"""

from collections import Counter
from typing import Final

import numpy as np

from services.gang_planner.core.filters import UNLIMITED, RoomFilter
from services.gang_planner.core.tables.columns import Ints, Slots
from services.gang_planner.core.tables.ground import Ground
from services.gang_planner.core.tables.shapes import ShapeEntry

ELSEWHERE: Final = "resourceclaim not available on the node"
TOO_FEW: Final = "cannot allocate all claims"


class DynamicResources:
    """Always judged, whatever is configured: a pod bound without its devices never runs."""

    name = "DynamicResources"

    def capacity(self, shape: ShapeEntry, ground: Ground, slots: Slots) -> Ints:
        """See `RoomFilter`."""
        demand = ground.devices.demand(shape)
        if demand.refusal:
            return np.zeros(len(ground.nodes.exists[: ground.nodes.size][slots]), dtype=np.int64)
        mask = ground.devices.allocations_fit(demand) & ground.devices.devices_fit(demand)
        return np.where(mask, UNLIMITED, 0).astype(np.int64)[slots]

    def reasons(self, shape: ShapeEntry, ground: Ground, slots: Ints) -> Counter[str]:
        """See `RoomFilter`."""
        demand = ground.devices.demand(shape)
        if demand.refusal:
            return Counter({demand.refusal: len(slots)})
        elsewhere = ~ground.devices.allocations_fit(demand)[slots]
        found = Counter({ELSEWHERE: int(np.count_nonzero(elsewhere))})
        found[TOO_FEW] = len(slots) - found[ELSEWHERE]
        return +found


FILTER: Final[RoomFilter] = DynamicResources()
