"""Reads ResourceClaims: their requests, constraints and allocations.

Fields that this version does not know are named in `ResourceClaim.unsupported`, and the planner
allocates nothing to such a claim. Expressions and quantities are passed on as text. The
configuration of a claim is not read: the binder copies it into the allocation.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from shared.dialects import selectors
from shared.dialects.protocol import identity
from shared.dialects.reference_objects import pod_owner_uid
from shared.kube import reference_objects as looked_up
from shared.kube.requests import EXTENDED_CLAIM
from shared.model import devices

#: Characters of all expressions of one class or claim. Kubernetes allows 10,240 in each.
_EXPRESSIONS_CHARACTERS_MAX: Final = 128 * 1024
_TOO_MANY: Final = f" (selectors of more than {_EXPRESSIONS_CHARACTERS_MAX} characters)"


def read_device_claim(found: looked_up.ResourceClaim) -> devices.ResourceClaim:
    metadata, spec, status = found.metadata, found.spec.devices, found.status
    allocation = status.allocation or looked_up.Allocation()
    unsupported = tuple(_unsupported(spec))
    selector = allocation.node_selector
    results = [one for one in allocation.devices.results if not one.admin_access]
    return devices.ResourceClaim(
        **identity(metadata),
        requests=() if unsupported else tuple(_request(one) for one in spec.requests),
        constraints=() if unsupported else tuple(_constraints(spec)),
        unsupported=unsupported,
        has_allocation=status.allocation is not None,
        # A pod with admin access does not consume the device.
        allocated=tuple(
            (one.driver, one.pool, one.device) for one in results if one.share_id is None
        ),
        shares=tuple(
            devices.SharedDevice(
                driver=one.driver,
                pool=one.pool,
                device=one.device,
                capacity=tuple(
                    (name, str(amount)) for name, amount in sorted(one.consumed_capacity.items())
                ),
            )
            for one in results
            if one.share_id is not None
        ),
        node_affinity=selectors.terms(selector) if selector is not None else None,
        reserved_for=tuple(sorted(one.uid for one in status.reserved_for if one.is_pod)),
        reserved_beyond_pods=not all(one.is_pod for one in status.reserved_for),
        owner_uid=pod_owner_uid(metadata),
        deleting=metadata.deletion_timestamp is not None,
        extended=metadata.annotations.get(EXTENDED_CLAIM) == "true",
    )


def expressions(found: Sequence[looked_up.DeviceSelector]) -> tuple[str, ...]:
    """The CEL expressions of selectors."""
    return tuple(one.cel.expression for one in found if one.cel is not None)


def beyond_expressions(found: Sequence[looked_up.DeviceSelector]) -> str | None:
    """The suffix that names selectors of another kind, or too many; None: all are CEL."""
    for index, one in enumerate(found):
        if one.cel is None:
            return f"[{index}]"
    if sum(map(len, expressions(found))) > _EXPRESSIONS_CHARACTERS_MAX:
        return _TOO_MANY
    return None


def _request(found: looked_up.DeviceRequest) -> devices.DeviceRequest:
    if found.exactly is not None:
        return _exactly(found.name, found.exactly)
    return devices.DeviceRequest(
        name=found.name,
        alternatives=tuple(_exactly(one.name, one) for one in found.first_available),
    )


def _exactly(name: str, found: looked_up.ExactDeviceRequest) -> devices.DeviceRequest:
    return devices.DeviceRequest(
        name=name,
        device_class=found.device_class_name,
        count=found.count,
        selectors=expressions(found.selectors),
        all_devices=found.allocation_mode == "All",
        admin_access=found.admin_access,
        tolerations=found.tolerations,
        capacity=tuple(
            (name, str(amount)) for name, amount in sorted(found.capacity.requests.items())
        ),
    )


def _constraints(found: looked_up.DeviceClaim) -> Iterator[devices.DeviceConstraint]:
    for one in found.constraints:
        attribute = one.match_attribute or one.distinct_attribute
        if attribute is not None:
            yield devices.DeviceConstraint(
                requests=one.requests, attribute=attribute, distinct=one.match_attribute is None
            )


def _unsupported(claim: looked_up.DeviceClaim) -> Iterator[str]:
    """Paths of the claim's requirements that this version does not know."""
    for index, constraint in enumerate(claim.constraints):
        if not constraint.match_attribute and not constraint.distinct_attribute:
            yield f"spec.devices.constraints[{index}]"
    characters = 0
    for index, request in enumerate(claim.requests):
        path = f"spec.devices.requests[{index}]"
        if request.exactly is not None:
            alternatives = [(f"{path}.exactly", request.exactly)]
        else:
            alternatives = [
                (f"{path}.firstAvailable[{number}]", one)
                for number, one in enumerate(request.first_available)
            ]
        if not alternatives:
            yield path
        for place, one in alternatives:
            yield from (f"{place}.{field}" for field in _beyond(one))
            characters += sum(map(len, expressions(one.selectors)))
    if characters > _EXPRESSIONS_CHARACTERS_MAX:
        yield f"spec.devices.requests{_TOO_MANY}"


def _beyond(request: looked_up.ExactDeviceRequest) -> Iterator[str]:
    if (beyond := beyond_expressions(request.selectors)) is not None:
        yield f"selectors{beyond}"
    if request.allocation_mode not in {"ExactCount", "All"}:
        yield "allocationMode"
