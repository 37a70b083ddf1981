"""The nodes where a volume can be provisioned for a claim: the topologies of its class, and the
storage capacity that drivers publish.
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
    """One flag per slot: whether the claim's class provisions volumes for the node."""
    found = class_of(claim, tables)
    if found is None or found.provisioner in _NO_PROVISIONER:
        return np.zeros(nodes.size, dtype=np.bool_)
    if not found.allowed_topologies:
        return np.ones(nodes.size, dtype=np.bool_)
    return matching_any(found.allowed_topologies, nodes, slice(0, nodes.size))


def enough(claim: Claim, tables: ReferenceObjects, nodes: NodeTable) -> Bools:
    """One flag per slot: whether the driver has enough capacity for the claim; all True if the
    driver publishes no capacity.
    """
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
    # If the driver reports the largest possible volume, it is a tighter limit than the capacity.
    most = one.capacity_bytes if one.volume_bytes_max < 0 else one.volume_bytes_max
    return one.storage_class == found.name and most >= request_bytes
