"""Nodes where the pod's ResourceClaims cannot be satisfied: their allocated devices are not usable
there, or too few devices are free.
"""

from collections import Counter
from typing import Final

import numpy as np

from services.gang_planner.core.constraints.filters import UNLIMITED, CapacityFilter
from services.gang_planner.core.state.columns import Ints, Slots
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.pod_shapes import ShapeEntry

ELSEWHERE: Final = "resourceclaim not available on the node"
TOO_FEW: Final = "cannot allocate all claims"


class DynamicResources:
    """Applies in every configuration: a pod that is bound without its devices never runs."""

    name = "DynamicResources"

    def capacity(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Slots) -> Ints:
        devices = node_capacity.devices
        demand = devices.demand(shape)
        if demand.refusal:
            return np.zeros(node_capacity.nodes.size, dtype=np.int64)[slots]
        mask = devices.allocations_fit(demand) & devices.devices_fit(demand)
        return np.where(mask, UNLIMITED, 0).astype(np.int64)[slots]

    def reasons(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Ints) -> Counter[str]:
        demand = node_capacity.devices.demand(shape)
        if demand.refusal:
            return Counter({demand.refusal: len(slots)})
        elsewhere = ~node_capacity.devices.allocations_fit(demand)[slots]
        found = Counter({ELSEWHERE: int(np.count_nonzero(elsewhere))})
        found[TOO_FEW] = len(slots) - found[ELSEWHERE]
        return +found


FILTER: Final[CapacityFilter] = DynamicResources()
