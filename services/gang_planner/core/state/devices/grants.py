"""Devices chosen for a claim. They no longer count once CLUSTER shows that the claim is gone, or
has had allocated devices since.

The devices for extended resources of a pod are chosen for the claims that the pod owns, of which a
binder makes the one that it needs.
"""

from collections.abc import Container
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from services.gang_planner.core.state.columns import Bools
from services.gang_planner.core.state.devices.allocation_search import Pick
from services.gang_planner.core.state.devices.demand import Key
from services.gang_planner.core.state.devices.extended import pod_uid_of
from services.gang_planner.core.state.devices.selection import Device
from services.gang_planner.core.state.node_terms import matching_any
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.reference_objects import ResourceClaims
from shared.model.terms import SelectorTerm

if TYPE_CHECKING:
    from shared.model.devices import ResourceClaim


class Grant(NamedTuple):
    """Devices chosen for a claim."""

    node: str
    claim_uid: str
    picks: tuple[Pick, ...]
    #: Nodes on which the claim can be used, beside `node`; (): all; None: none.
    node_affinity: tuple[SelectorTerm, ...] | None = None
    #: `allocations` of the claim when they were chosen.
    allocations: int = 0
    #: Whether a decision without an outcome contains them.
    decided: bool = False


def is_current(claims: ResourceClaims, key: Key, grant: Grant) -> bool:
    """Whether there is the claim for which devices were chosen, or it will be made for them, and it
    has had no devices since.
    """
    if pod_uid_of(key[1]) is not None:
        return not was_allocated(claims, key, grant)
    claim = claims.by_name.get(key)
    if claim is None or claim.uid != grant.claim_uid or claim.is_allocated:
        return False
    return claims.allocations.get(claim.uid, 0) <= grant.allocations


def renewed(
    claims: ResourceClaims, key: Key, grant: Grant, allocated: Container[Device]
) -> Grant | None:
    """The same devices, chosen for the claim as it is now; None: it is gone, or another claim has
    one of them. `allocated`: devices that claims have alone.
    """
    if any(pick.device in allocated and not pick.admin for pick in grant.picks):
        return None
    found = grant._replace(allocations=allocations(claims, key, grant.claim_uid))
    return found if is_current(claims, key, found) else None


def usable_on(grant: Grant, nodes: NodeTable) -> Bools:
    """One flag per slot: whether the chosen devices are usable there."""
    if grant.node_affinity == ():
        return np.ones(nodes.size, dtype=np.bool_)
    if grant.node_affinity is not None:
        return matching_any(grant.node_affinity, nodes, slice(0, nodes.size))
    only: Bools = np.zeros(nodes.size, dtype=np.bool_)
    slot = nodes.find(grant.node)
    if slot is not None:
        only[slot] = True
    return only


def allocations(claims: ResourceClaims, key: Key, claim_uid: str) -> int:
    """How often the claim was seen with devices."""
    pod_uid = pod_uid_of(key[1])
    uids = [claim_uid] if pod_uid is None else [one.uid for one in claims.of_pod(key[0], pod_uid)]
    return sum(claims.allocations.get(uid, 0) for uid in uids)


def was_allocated(claims: ResourceClaims, key: Key, grant: Grant) -> bool:
    """Whether the claim has devices, or had some since these were chosen."""
    there = _claims_of(claims, key)
    if any(one.is_allocated for one in there):
        return True
    return sum(claims.allocations.get(one.uid, 0) for one in there) > grant.allocations


def has_devices(claims: ResourceClaims, key: Key) -> bool:
    """Whether CLUSTER shows the claim with devices."""
    return any(one.is_allocated for one in _claims_of(claims, key))


def _claims_of(claims: ResourceClaims, key: Key) -> "list[ResourceClaim]":
    pod_uid = pod_uid_of(key[1])
    if pod_uid is not None:
        return claims.of_pod(key[0], pod_uid)
    claim = claims.by_name.get(key)
    return [] if claim is None else [claim]
