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


def read_device_claim(claim: looked_up.ResourceClaim) -> devices.ResourceClaim:
    metadata, spec, status = claim.metadata, claim.spec.devices, claim.status
    allocation = status.allocation or looked_up.Allocation()
    unsupported = tuple(_unsupported(spec))
    selector = allocation.node_selector
    results = [result for result in allocation.devices.results if not result.admin_access]
    return devices.ResourceClaim(
        **identity(metadata),
        requests=() if unsupported else tuple(_request(request) for request in spec.requests),
        constraints=() if unsupported else tuple(_constraints(spec)),
        unsupported=unsupported,
        has_allocation=status.allocation is not None,
        # A pod with admin access does not consume the device.
        allocated=tuple(
            (result.driver, result.pool, result.device)
            for result in results
            if result.share_id is None
        ),
        shares=tuple(
            devices.SharedDevice(
                driver=result.driver,
                pool=result.pool,
                device=result.device,
                capacity=tuple(
                    (name, str(amount)) for name, amount in sorted(result.consumed_capacity.items())
                ),
            )
            for result in results
            if result.share_id is not None
        ),
        node_affinity=selectors.terms(selector) if selector is not None else None,
        reserved_for=tuple(
            sorted(consumer.uid for consumer in status.reserved_for if consumer.is_pod)
        ),
        reserved_beyond_pods=not all(consumer.is_pod for consumer in status.reserved_for),
        owner_uid=pod_owner_uid(metadata),
        deleting=metadata.deletion_timestamp is not None,
        extended=metadata.annotations.get(EXTENDED_CLAIM) == "true",
    )


def expressions(selectors: Sequence[looked_up.DeviceSelector]) -> tuple[str, ...]:
    """The CEL expressions of selectors."""
    return tuple(selector.cel.expression for selector in selectors if selector.cel is not None)


def beyond_expressions(selectors: Sequence[looked_up.DeviceSelector]) -> str | None:
    """The suffix that names selectors of another kind, or too many; None: all are CEL."""
    for index, selector in enumerate(selectors):
        if selector.cel is None:
            return f"[{index}]"
    if sum(map(len, expressions(selectors))) > _EXPRESSIONS_CHARACTERS_MAX:
        return _TOO_MANY
    return None


def _request(request: looked_up.DeviceRequest) -> devices.DeviceRequest:
    if request.exactly is not None:
        return _exactly(request.name, request.exactly)
    return devices.DeviceRequest(
        name=request.name,
        alternatives=tuple(
            _exactly(alternative.name, alternative) for alternative in request.first_available
        ),
    )


def _exactly(name: str, request: looked_up.ExactDeviceRequest) -> devices.DeviceRequest:
    return devices.DeviceRequest(
        name=name,
        device_class=request.device_class_name,
        count=request.count,
        selectors=expressions(request.selectors),
        all_devices=request.allocation_mode == "All",
        admin_access=request.admin_access,
        tolerations=request.tolerations,
        capacity=tuple(
            (name, str(amount)) for name, amount in sorted(request.capacity.requests.items())
        ),
    )


def _constraints(claim: looked_up.DeviceClaim) -> Iterator[devices.DeviceConstraint]:
    for constraint in claim.constraints:
        attribute = constraint.match_attribute or constraint.distinct_attribute
        if attribute is not None:
            yield devices.DeviceConstraint(
                requests=constraint.requests,
                attribute=attribute,
                distinct=constraint.match_attribute is None,
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
                (f"{path}.firstAvailable[{number}]", alternative)
                for number, alternative in enumerate(request.first_available)
            ]
        if not alternatives:
            yield path
        for place, alternative in alternatives:
            yield from (f"{place}.{field}" for field in _beyond(alternative))
            characters += sum(map(len, expressions(alternative.selectors)))
    if characters > _EXPRESSIONS_CHARACTERS_MAX:
        yield f"spec.devices.requests{_TOO_MANY}"


def _beyond(request: looked_up.ExactDeviceRequest) -> Iterator[str]:
    if (beyond := beyond_expressions(request.selectors)) is not None:
        yield f"selectors{beyond}"
    if request.allocation_mode not in {"ExactCount", "All"}:
        yield "allocationMode"
