"""The needs of a shape's ResourceClaims, from the current tables."""

from typing import NamedTuple, TypeAlias

from services.gang_planner.core.state.devices.selection import DeviceRequirement, Selection
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.model.objects import Shape
from shared.model.reference_objects import DeviceClass, DeviceRequest, ResourceClaim

Key: TypeAlias = tuple[str, str]
"""Namespace and name of a claim."""


class Wanted(NamedTuple):
    """One request of a claim without allocated devices."""

    request: str
    requirement: DeviceRequirement
    number: int


class DeviceDemand(NamedTuple):
    """Needs of one shape; with a refusal, the other fields are empty."""

    #: Why no node is possible; "": some may be.
    refusal: str = ""
    #: The unsupported request of a claim, with the claim's name: the refusal is permanent.
    unsupported: str = ""
    #: Claims with allocated devices.
    allocated: tuple[ResourceClaim, ...] = ()
    #: Claims without allocated devices, with their requests.
    open: tuple[tuple[ResourceClaim, tuple[Wanted, ...]], ...] = ()


def claim_keys(shape: Shape) -> list[Key]:
    return [(shape.namespace, name) for name in shape.device_claims]


def demand_of(shape: Shape, tables: ReferenceObjects, selection: Selection) -> DeviceDemand:
    """Read the shape's claims. The first claim that cannot be satisfied determines the refusal."""
    allocated: list[ResourceClaim] = []
    waiting: list[tuple[ResourceClaim, tuple[Wanted, ...]]] = []
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
        if claim.allocated:
            allocated.append(claim)
            continue
        if claim.unsupported:
            return _unsupported(name, ", ".join(claim.unsupported))
        requests: list[Wanted] = []
        for one in claim.requests:
            wanted = _wanted(claim, one, tables, selection)
            if isinstance(wanted, DeviceDemand):
                return wanted
            requests.append(wanted)
        waiting.append((claim, tuple(requests)))
    return DeviceDemand(allocated=tuple(allocated), open=tuple(waiting))


def _wanted(
    claim: ResourceClaim, request: DeviceRequest, tables: ReferenceObjects, selection: Selection
) -> Wanted | DeviceDemand:
    """One request of a claim, or the refusal of the claim."""
    device_class = tables.device_classes.by_name.get(("", request.device_class))
    if device_class is None:
        missing = f"device class {request.device_class} does not exist"
        return DeviceDemand(refusal=f"request {request.name}: {missing}")
    if device_class.unsupported:
        fields = ", ".join(device_class.unsupported)
        return _unsupported(claim.name, f"device class {device_class.name} has {fields}")
    requirement = _requirement(device_class, request)
    if requirement is None:
        return _unsupported(claim.name, f"device class {device_class.name} selects by attributes")
    objection = selection.objection(requirement)
    if objection:
        return _unsupported(claim.name, f"request {request.name}: {objection}")
    return Wanted(request.name, requirement, request.count)


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
