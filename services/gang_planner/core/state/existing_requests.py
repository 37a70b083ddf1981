"""The ProvisioningRequests of gangs that exist in the cluster (ADR 0087)."""

from typing import Final

from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.model.reference_objects import ProvisioningRequest

#: The autoscaler may still add nodes for a request in these states.
UNANSWERED: Final = frozenset({"", "Accepted"})
#: No capacity is kept for a request in these states, and none will be.
LOST: Final = frozenset({"Failed", "CapacityRevoked", "BookingExpired"})


def requests_of(reference_objects: ReferenceObjects, gang: Gang) -> list[ProvisioningRequest]:
    """The existing requests of a gang, from the first attempt on."""
    known = reference_objects.provisioning_requests
    return known.of_gang(gang.gang_id, gang.namespace) if known else []


def request_of(reference_objects: ReferenceObjects, gang: Gang) -> ProvisioningRequest | None:
    """The existing request that a gang waits for, or by which it was placed; None: there is
    none.
    """
    requests = requests_of(reference_objects, gang)
    if gang.request is not None:
        requests = [request for request in requests if request.name == str(gang.request.name)]
    return requests[-1] if requests else None
