"""ProvisioningRequests, by which Tutti asks cluster-autoscaler, or another autoscaler that serves
the kind, for the capacity of a gang (ADR 0087).

No gang is declared by them: the kind is a dialect so that the watcher reports whether it is served.
"""

from typing import Final

from shared.contracts.provisioning import PROVISIONING_DIALECT, parse_request_name
from shared.dialects.protocol import Dialect, identity
from shared.dialects.reference_objects import TEXT_CHARACTERS_MAX, kind
from shared.kube import reference_objects as looked_up
from shared.kube.objects import Condition
from shared.kube.resources import PROVISIONING_REQUESTS
from shared.model.reference_objects import ProvisioningRequest, ProvisioningState

#: The conditions with a state, the most significant first: the first True one counts.
_STATES: Final[tuple[ProvisioningState, ...]] = (
    "Failed",
    "CapacityRevoked",
    "BookingExpired",
    "Provisioned",
    "Accepted",
)
_REASON_CHARACTERS_MAX: Final = 128


def read_provisioning_request(
    request: looked_up.ProvisioningRequest,
) -> ProvisioningRequest | None:
    """A request of a gang; None for other requests, and for one that is being deleted."""
    metadata = request.metadata
    name = parse_request_name(metadata.name)
    if name is None or metadata.deletion_timestamp is not None:
        return None
    conditions = {condition.type: condition for condition in request.status.conditions}
    state: ProvisioningState = ""
    for candidate in reversed(_STATES):
        if candidate in conditions and conditions[candidate].status == "True":
            state = candidate
    shown = conditions.get(state, Condition())
    if state in {"", "Accepted"}:
        # While it is False, its message says what the autoscaler waits for.
        shown = conditions.get("Provisioned", shown)
    return ProvisioningRequest(
        **identity(metadata),
        gang_id=name.gang_id,
        digest=name.digest,
        attempt=name.attempt,
        state=state,
        reason=shown.reason[:_REASON_CHARACTERS_MAX],
        message=shown.message[:TEXT_CHARACTERS_MAX],
    )


DIALECT: Final = Dialect(
    name=PROVISIONING_DIALECT,
    precedence=96,
    kinds=(
        kind(
            PROVISIONING_REQUESTS,
            "provisioningrequest",
            looked_up.ProvisioningRequest,
            read_provisioning_request,
        ),
    ),
)
