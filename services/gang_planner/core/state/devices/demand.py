"""The needs of a shape's ResourceClaims, from the current tables."""

from fractions import Fraction
from typing import Final, NamedTuple, TypeAlias

from services.gang_planner.core.state.devices.selection import DeviceRequirement, Selection
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.kube.quantities import QuantityError, exact
from shared.model.devices import (
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceToleration,
    ResourceClaim,
)
from shared.model.objects import Shape

Key: TypeAlias = tuple[str, str]
"""Namespace and name of a claim."""

#: The label of namespaces in which claims may have admin access.
ADMIN_LABEL: Final = ("resource.kubernetes.io/admin-access", "true")
#: Devices of one claim; Kubernetes allows no more.
DEVICES_MAX: Final = 32


class Alternative(NamedTuple):
    """Devices that serve a request."""

    #: The request's name, or "request/subrequest": so allocations name it.
    name: str
    requirement: DeviceRequirement
    #: None: all that match on the node, at least one.
    number: int | None = 1
    #: Devices that are in use will do, and stay available to others.
    admin: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    #: Name and amount of each requested capacity.
    capacity: tuple[tuple[str, Fraction], ...] = ()


class RequestNeed(NamedTuple):
    """One request of a claim: the first of its alternatives that can be served."""

    name: str
    alternatives: tuple[Alternative, ...]


class ClaimNeed(NamedTuple):
    """The requests of a claim without devices. Claims with equal needs are interchangeable."""

    requests: tuple[RequestNeed, ...]
    constraints: tuple[DeviceConstraint, ...] = ()


class DeviceDemand(NamedTuple):
    """Needs of one shape; with a refusal, the other fields are empty."""

    #: Why no node is possible; "": some may be.
    refusal: str = ""
    #: The unsupported request of a claim, with the claim's name: the refusal is permanent.
    unsupported: str = ""
    #: Claims with allocated devices.
    allocated: tuple[ResourceClaim, ...] = ()
    #: Claims without allocated devices, with their needs.
    open: tuple[tuple[ResourceClaim, ClaimNeed], ...] = ()


def claim_keys(shape: Shape) -> list[Key]:
    return [(shape.namespace, name) for name in shape.device_claims]


def demand_of(shape: Shape, tables: ReferenceObjects, selection: Selection) -> DeviceDemand:
    """Read the shape's claims. The first claim that cannot be satisfied determines the refusal."""
    allocated: list[ResourceClaim] = []
    waiting: list[tuple[ResourceClaim, ClaimNeed]] = []
    for key in claim_keys(shape):
        name = key[1]
        if name.startswith("?"):
            return DeviceDemand(
                refusal=f"waiting for the ResourceClaim of {name[1:]} to be created from its "
                "template"
            )
        claim = tables.resource_claims.by_name.get(key)
        if claim is None:
            return DeviceDemand(refusal=f'resourceclaim "{name}" not found')
        if claim.deleting:
            return DeviceDemand(refusal=f'resourceclaim "{name}" is being deleted')
        if claim.is_allocated:
            allocated.append(claim)
            continue
        need = _need(claim, tables, selection)
        if isinstance(need, DeviceDemand):
            return need
        waiting.append((claim, need))
    return DeviceDemand(allocated=tuple(allocated), open=tuple(waiting))


def _need(
    claim: ResourceClaim, tables: ReferenceObjects, selection: Selection
) -> ClaimNeed | DeviceDemand:
    """The need of a claim, or its refusal."""
    if claim.unsupported:
        return _unsupported(claim.name, ", ".join(claim.unsupported))
    requests: list[RequestNeed] = []
    for request in claim.requests:
        alternatives: list[Alternative] = []
        for one in request.alternatives or (request,):
            name = f"{request.name}/{one.name}" if request.alternatives else request.name
            found = _alternative(claim, name, one, tables, selection)
            if isinstance(found, DeviceDemand):
                return found
            alternatives.append(found)
        requests.append(RequestNeed(request.name, tuple(alternatives)))
    return ClaimNeed(tuple(requests), claim.constraints)


def _alternative(
    claim: ResourceClaim,
    name: str,
    request: DeviceRequest,
    tables: ReferenceObjects,
    selection: Selection,
) -> Alternative | DeviceDemand:
    device_class = tables.device_classes.by_name.get(("", request.device_class))
    if device_class is None:
        missing = f"device class {request.device_class} does not exist"
        return DeviceDemand(refusal=f"request {name}: {missing}")
    if device_class.unsupported:
        fields = ", ".join(device_class.unsupported)
        return _unsupported(claim.name, f"device class {device_class.name} has {fields}")
    requirement = _requirement(device_class, request)
    if requirement is None:
        return _unsupported(claim.name, f"device class {device_class.name} selects by attributes")
    objection = selection.objection(requirement)
    if objection:
        return _unsupported(claim.name, f"request {name}: {objection}")
    if request.admin_access and not _allows_admin(claim.namespace, tables):
        label = "=".join(ADMIN_LABEL)
        needs = f"adminAccess needs the label {label} on namespace {claim.namespace}"
        return DeviceDemand(refusal=f"request {name} of resourceclaim {claim.name}: {needs}")
    try:
        capacity = tuple((one, exact(text)) for one, text in request.capacity)
    except QuantityError as error:
        return _unsupported(claim.name, f"request {name}: capacity: {error}")
    number = None if request.all_devices else request.count
    return Alternative(
        name, requirement, number, request.admin_access, request.tolerations, capacity
    )


def _allows_admin(namespace: str, tables: ReferenceObjects) -> bool:
    found = tables.namespaces.by_name.get(("", namespace))
    return found is not None and ADMIN_LABEL in found.labels


def _requirement(device_class: DeviceClass, request: DeviceRequest) -> DeviceRequirement | None:
    """The devices that a request may get; None: the class's selectors are not known."""
    if device_class.driver:
        return DeviceRequirement(device_class.driver, request.selectors)
    if device_class.selectors is None:
        return None
    return DeviceRequirement(None, device_class.selectors + request.selectors)


def _unsupported(name: str, what: str) -> DeviceDemand:
    text = f'resourceclaim "{name}" asks for what is not supported: {what}'
    return DeviceDemand(refusal=text, unsupported=text)
