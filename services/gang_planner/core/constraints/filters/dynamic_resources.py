"""Nodes where the pod's ResourceClaims cannot be satisfied: their allocated devices are not usable
there, or too few devices are free.
"""

from collections import Counter
from typing import Final

import numpy as np

from services.gang_planner.core.constraints.filters import UNLIMITED, CapacityFilter
from services.gang_planner.core.state.columns import Bools, Ints, Slots
from services.gang_planner.core.state.devices.demand import DeviceDemand
from services.gang_planner.core.state.devices.shortage import shortage
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.node_terms import matching_any
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry

ELSEWHERE: Final = "resourceclaim not available on the node"
TOO_FEW: Final = "cannot allocate all claims"
#: Nodes for which a message says what is missing. Each is a search, in a cycle that all share.
EXPLAINED_MAX: Final = 32


class DynamicResources:
    """Applies in every configuration: a pod that is bound without its devices never runs."""

    name = "DynamicResources"

    def capacity(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Slots) -> Ints:
        devices = node_capacity.devices
        demand = devices.demand(shape)
        if demand.refusal:
            return np.zeros(node_capacity.nodes.size, dtype=np.int64)[slots]
        if shape.alike:
            return devices.times_served(demand, slots)
        mask = _allocations_fit(demand, node_capacity.nodes)[slots]
        mask &= devices.devices_fit(demand, slots)
        return np.where(mask, UNLIMITED, 0).astype(np.int64)

    def reasons(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Ints) -> Counter[str]:
        demand = node_capacity.devices.demand(shape)
        if demand.refusal:
            return Counter({demand.refusal: len(slots)})
        devices = node_capacity.devices
        elsewhere = ~_allocations_fit(demand, node_capacity.nodes)[slots]
        counts = Counter({ELSEWHERE: int(np.count_nonzero(elsewhere))})
        lacking = slots[~elsewhere]
        for slot in lacking[:EXPLAINED_MAX].tolist():
            missing = shortage(devices, demand, slot)
            counts[f"{TOO_FEW} ({missing})" if missing else TOO_FEW] += 1
        counts[TOO_FEW] += len(lacking[EXPLAINED_MAX:])
        return +counts


def _allocations_fit(demand: DeviceDemand, nodes: NodeTable) -> Bools:
    """One flag per slot: whether the allocated devices of all claims are usable there."""
    mask: Bools = np.ones(nodes.size, dtype=np.bool_)
    for claim in demand.allocated:
        if claim.node_affinity is not None:
            mask &= matching_any(claim.node_affinity, nodes, slice(0, nodes.size))
    return mask


FILTER: Final[CapacityFilter] = DynamicResources()
