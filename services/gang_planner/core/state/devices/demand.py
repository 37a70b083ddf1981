"""The needs of a shape's ResourceClaims, from the current tables."""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from typing_extensions import override

from services.gang_planner.core.state.claim_ledger import Key
from services.gang_planner.core.state.devices.extended import (
    ClassesOfResources,
    name_of_pod,
    requirement_of,
)
from services.gang_planner.core.state.devices.selection import (
    Device,
    DeviceRequirement,
    Selection,
    too_long,
)
from services.gang_planner.core.state.devices.selector_limits import WAITS
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.kube.quantities import QuantityError, exact
from shared.model.devices import (
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceToleration,
    ResourceClaim,
)
from shared.model.objects import PodDevices, Shape

Content: TypeAlias = tuple[
    str, tuple[DeviceRequest, ...], tuple[DeviceConstraint, ...], tuple[str, ...]
]
"""What a claim's need depends on beside classes: namespace, requests, constraints, what is not
supported.
"""

#: The label of namespaces in which claims may have admin access.
ADMIN_LABEL: Final = ("resource.kubernetes.io/admin-access", "true")
#: Devices of one claim; Kubernetes allows no more.
DEVICES_MAX: Final = 32

Amounts: TypeAlias = tuple[tuple[str, Fraction], ...]
"""What is consumed of a shareable device, by capacity."""


class Pick(NamedTuple):
    """A device that a request gets."""

    #: As in `Alternative`.
    request: str
    device: Device
    admin: bool = False
    #: Its part of a shareable device; None: it gets the device alone.
    consumed: Amounts | None = None


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
    #: The extended resource that it is for: it is void on nodes whose device plugin has that. "":
    #: it is for none.
    resource: str = ""

    @property
    def only_number(self) -> Alternative | None:
        """The only alternative, if it asks for nothing but a number of devices."""
        (first, *others) = self.alternatives
        special = others or first.number is None or first.admin or first.capacity
        return None if special else first


@dataclass(frozen=True)
class ClaimNeed:
    """The requests of a claim without devices. Claims with equal needs are interchangeable."""

    requests: tuple[RequestNeed, ...]
    constraints: tuple[DeviceConstraint, ...] = ()

    @override
    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # Every pod looks up results for its claims' needs.
        return hash((self.requests, self.constraints))

    @cached_property
    def extended(self) -> bool:
        """Whether it is the need of a pod with extended resources."""
        return any(request.resource for request in self.requests)

    @cached_property
    def has_alternatives(self) -> bool:
        """Whether a request has several alternatives."""
        return any(len(request.alternatives) > 1 for request in self.requests)

    def without(self, is_served: Callable[[str], bool]) -> "ClaimNeed":
        """The need without the extended resources for which this is true."""
        if not self.extended:
            return self
        requests = [
            request
            for request in self.requests
            if not (request.resource and is_served(request.resource))
        ]
        return replace(self, requests=tuple(requests))


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
    #: The needs of these.
    needs: tuple[ClaimNeed, ...] = ()


def claim_keys(shape: Shape) -> list[Key]:
    """The shape's claims; `extended.name_of_pod` stands for the claim for extended resources."""
    return [
        (shape.namespace, name_of_pod(claim.pod_uid) if isinstance(claim, PodDevices) else claim)
        for claim in shape.device_claims
    ]


def claim_key(claim: ResourceClaim) -> Key:
    """The name under which `claim_keys` has this claim."""
    name = name_of_pod(claim.owner_uid) if claim.extended else claim.name
    return claim.namespace, name


def demand_of(
    shape: Shape,
    keys: Sequence[Key],
    tables: ReferenceObjects,
    classes: ClassesOfResources,
    selection: Selection,
    known: dict[Content, ClaimNeed],
    waiting_claims: Container[Key] = (),
) -> DeviceDemand:
    """Read the shape's claims. The first claim that cannot be satisfied determines the refusal.

    `keys`: `claim_keys` of the shape. `known`: needs read before from the same tables, to which new
    ones are added. `waiting_claims`: see `SelectorLimits`.
    """
    allocated: list[ResourceClaim] = []
    waiting: list[tuple[ResourceClaim, ClaimNeed]] = []
    for reference, key in zip(shape.device_claims, keys, strict=True):
        name = key[1]
        if isinstance(reference, PodDevices):
            claims = tables.resource_claims.of_pod(shape.namespace, reference.pod_uid)
            made = [claim for claim in claims if claim.is_allocated]
            if made and made[0].deleting:
                return DeviceDemand(refusal=f'resourceclaim "{made[0].name}" is being deleted')
            allocated += made
            if not made:
                waiting.append(
                    (_unmade(key, reference), _need_of_pod(reference, tables, classes, selection))
                )
            continue
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
        need = _known_need(claim, tables, selection, known, waits=key in waiting_claims)
        if isinstance(need, DeviceDemand):
            return need
        waiting.append((claim, need))
    needs = tuple([need for _, need in waiting])
    return DeviceDemand(allocated=tuple(allocated), open=tuple(waiting), needs=needs)


def _unmade(key: Key, devices: PodDevices) -> ResourceClaim:
    """Stands for the claim of a pod's extended resources, whether it exists without devices or not:
    the binder determines its name.
    """
    namespace, name = key
    return ResourceClaim(
        uid="",
        namespace=namespace,
        name=name,
        resource_version=0,
        owner_uid=devices.pod_uid,
        extended=True,
    )


def _need_of_pod(
    devices: PodDevices,
    tables: ReferenceObjects,
    classes: ClassesOfResources,
    selection: Selection,
) -> ClaimNeed:
    """The need of a pod's extended resources. Resources whose class cannot be used are left out: no
    node without a device plugin has any of them.
    """
    requests: list[RequestNeed] = []
    for request in classes.need_of(devices.containers).requests:
        device_class = tables.device_classes.by_name[("", request.device_class)]
        requirement = requirement_of(device_class)
        if requirement is not None and not class_objection(device_class, selection):
            alternative = Alternative(request.name, requirement, request.number)
            requests.append(RequestNeed(request.name, (alternative,), request.resource))
    return ClaimNeed(tuple(requests))


def class_objection(device_class: DeviceClass, selection: Selection) -> str:
    """Why no device can be found for a class; "": one can."""
    if device_class.unsupported:
        return f"device class {device_class.name} has {', '.join(device_class.unsupported)}"
    requirement = requirement_of(device_class)
    if requirement is None:
        return f"device class {device_class.name} selects by attributes"
    return selection.objection(requirement)


def _known_need(
    claim: ResourceClaim,
    tables: ReferenceObjects,
    selection: Selection,
    known: dict[Content, ClaimNeed],
    *,
    waits: bool,
) -> ClaimNeed | DeviceDemand:
    if waits:
        return DeviceDemand(refusal=f'resourceclaim "{claim.name}" waits: {WAITS}')
    content = claim.namespace, claim.requests, claim.constraints, claim.unsupported
    cached = known.get(content)
    if cached is not None:
        return cached
    need = _need(claim, tables, selection)
    if isinstance(need, ClaimNeed):
        known[content] = need
    return need


def _need(
    claim: ResourceClaim, tables: ReferenceObjects, selection: Selection
) -> ClaimNeed | DeviceDemand:
    """The need of a claim, or its refusal."""
    if claim.unsupported:
        return _unsupported(claim.name, ", ".join(claim.unsupported))
    if excess := too_long(claim):
        return _unsupported(claim.name, excess)
    requests: list[RequestNeed] = []
    for request in claim.requests:
        alternatives: list[Alternative] = []
        for alternative in request.alternatives or (request,):
            name = f"{request.name}/{alternative.name}" if request.alternatives else request.name
            outcome = _alternative(claim, name, alternative, tables, selection)
            if isinstance(outcome, DeviceDemand):
                return outcome
            alternatives.append(outcome)
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
    requirement = requirement_of(device_class, request.selectors, claim.namespace)
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
        capacity = tuple((name, exact(text)) for name, text in request.capacity)
    except QuantityError as error:
        return _unsupported(claim.name, f"request {name}: capacity: {error}")
    number = None if request.all_devices else request.count
    return Alternative(
        name, requirement, number, request.admin_access, request.tolerations, capacity
    )


def _allows_admin(namespace: str, tables: ReferenceObjects) -> bool:
    namespace_object = tables.namespaces.by_name.get(("", namespace))
    return namespace_object is not None and ADMIN_LABEL in namespace_object.labels


def _unsupported(name: str, what: str) -> DeviceDemand:
    text = f'resourceclaim "{name}" asks for what is not supported: {what}'
    return DeviceDemand(refusal=text, unsupported=text)
