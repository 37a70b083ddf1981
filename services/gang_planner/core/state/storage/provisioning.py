"""Where a volume can be made for a claim: its class's topologies, and what drivers say they have
left.
"""

from typing import Final

import numpy as np

from services.gang_planner.core.state.columns import Bools
from services.gang_planner.core.state.node_terms import matching_any, selected
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from services.gang_planner.core.state.storage.demand import class_of
from shared.model.reference_objects import Claim, StorageCapacity, StorageClass

_NO_PROVISIONER: Final = frozenset({"", "kubernetes.io/no-provisioner"})


def allowed(claim: Claim, tables: ReferenceObjects, nodes: NodeTable) -> Bools:
    """Slots for which its class makes volumes at all."""
    found = class_of(claim, tables)
    if found is None or found.provisioner in _NO_PROVISIONER:
        return np.zeros(nodes.size, dtype=np.bool_)
    if not found.allowed_topologies:
        return np.ones(nodes.size, dtype=np.bool_)
    return matching_any(found.allowed_topologies, nodes, slice(0, nodes.size))


def enough(claim: Claim, tables: ReferenceObjects, nodes: NodeTable) -> Bools:
    """Slots with capacity for it, where its driver publishes any; else all."""
    found = class_of(claim, tables)
    driver = tables.csi_drivers.by_name.get(("", found.provisioner)) if found is not None else None
    if found is None or driver is None or not driver.storage_capacity:
        return np.ones(nodes.size, dtype=np.bool_)
    mask: Bools = np.zeros(nodes.size, dtype=np.bool_)
    for one in tables.storage_capacities.values():
        if _serves(one, found, claim.request_bytes):
            mask |= selected(one.node_topology, nodes)
    return mask


def _serves(one: StorageCapacity, found: StorageClass, request_bytes: int) -> bool:
    # The largest single volume, where the driver reports it, limits more than the sum.
    most = one.capacity_bytes if one.volume_bytes_max < 0 else one.volume_bytes_max
    return one.storage_class == found.name and most >= request_bytes
