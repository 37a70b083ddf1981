"""Devices chosen for a claim. They no longer count once CLUSTER shows that the claim is gone, or
has had allocated devices since.

The devices for extended resources of a pod are chosen for the claims that the pod owns, of which a
binder makes the one that it needs.
"""

from typing import TYPE_CHECKING, NamedTuple

from services.gang_planner.core.state.devices.allocation_search import Pick
from services.gang_planner.core.state.devices.demand import Key
from services.gang_planner.core.state.devices.extended import pod_uid_of
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


def allocations(claims: ResourceClaims, key: Key, claim_uid: str) -> int:
    """How often the claim was seen with devices."""
    pod_uid = pod_uid_of(key[1])
    uids = [claim_uid] if pod_uid is None else [one.uid for one in claims.of_pod(pod_uid)]
    return sum(claims.allocations.get(uid, 0) for uid in uids)


def was_allocated(claims: ResourceClaims, key: Key, grant: Grant) -> bool:
    """Whether the claim has devices, or had some since these were chosen."""
    pod_uid = pod_uid_of(key[1])
    found: list[ResourceClaim | None] = [claims.by_name.get(key)]
    if pod_uid is not None:
        found = [*claims.of_pod(pod_uid)]
    there = [one for one in found if one is not None]
    if any(one.is_allocated for one in there):
        return True
    return sum(claims.allocations.get(one.uid, 0) for one in there) > grant.allocations
