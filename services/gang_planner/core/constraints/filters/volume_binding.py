"""Nodes where the pod's PersistentVolumeClaims cannot be satisfied: a bound volume is not usable
there, or an unbound claim finds no volume and none can be provisioned.
"""

from collections import Counter
from typing import Final

import numpy as np

from services.gang_planner.core.constraints.filters import UNLIMITED, CapacityFilter
from services.gang_planner.core.state.columns import Ints, Slots
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.pod_shapes import ShapeEntry

NOT_THERE: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
ELSEWHERE: Final = "node(s) didn't match PersistentVolume's node affinity"
NONE_FOUND: Final = "node(s) didn't find available persistent volumes to bind"
NO_SPACE: Final = "node(s) did not have enough free storage"


class VolumeBinding:
    """Applies in every configuration: a pod that is bound away from its volume never runs."""

    name = "VolumeBinding"

    def capacity(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Slots) -> Ints:
        storage = node_capacity.storage
        demand = storage.demand(shape)
        if demand.refusal or demand.astray:
            return np.zeros(node_capacity.nodes.size, dtype=np.int64)[slots]
        mask = storage.volumes_fit(demand)
        if demand.delayed:
            available, capable = storage.claims_fit(demand)
            mask &= available & capable
        return np.where(mask, UNLIMITED, 0).astype(np.int64)[slots]

    def reasons(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Ints) -> Counter[str]:
        storage = node_capacity.storage
        demand = storage.demand(shape)
        if demand.refusal:
            return Counter({demand.refusal: len(slots)})
        if demand.astray:
            return Counter({NOT_THERE: len(slots)})
        refused = {ELSEWHERE: ~storage.volumes_fit(demand)}
        if demand.delayed:
            available, capable = storage.claims_fit(demand)
            refused[NONE_FOUND] = ~available
            refused[NO_SPACE] = available & ~capable
        counts = {text: int(np.count_nonzero(mask[slots])) for text, mask in refused.items()}
        return Counter({text: count for text, count in counts.items() if count})


FILTER: Final[CapacityFilter] = VolumeBinding()
