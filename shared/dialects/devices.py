"""Reads devices of dynamic resource allocation (DRA): whole devices, chosen by CEL selectors.

Further requirements of a claim (constraints, parts of devices, configuration) are named in
`ResourceClaim.unsupported`, those of a class in `DeviceClass.unsupported`. The planner allocates no
such claim. Expressions are passed on as text.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from shared.dialects import selectors
from shared.dialects.protocol import cluster_identity, identity
from shared.dialects.reference_objects import TEXT_CHARACTERS_MAX, kind
from shared.kube import reference_objects as looked_up
from shared.kube.resources import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from shared.model import reference_objects

_OF_DRIVER: Final = re.compile(r"""\s*device\.driver\s*==\s*(?:"([^"\\]+)"|'([^'\\]+)')\s*""")

#: Characters of all expressions of one class or claim. Kubernetes allows 10,240 in each.
_EXPRESSIONS_CHARACTERS_MAX: Final = 128 * 1024
_TOO_MANY: Final = f" (selectors of more than {_EXPRESSIONS_CHARACTERS_MAX} characters)"
#: Characters of the details of a slice's devices, four times what 128 devices with six attributes
#: of 20 characters have; further devices are left out.
_DETAILS_CHARACTERS_MAX: Final = 256 * 1024
#: Bytes that a number or truth value counts as.
_PLAIN_CHARACTERS: Final = 9


def read_device_class(found: looked_up.DeviceClass) -> reference_objects.DeviceClass:
    unsupported = tuple(_unsupported_of_class(found.spec))
    return reference_objects.DeviceClass(
        **cluster_identity(found.metadata),
        driver="" if unsupported else _driver(found.spec)[:TEXT_CHARACTERS_MAX],
        selectors=() if unsupported else _expressions(found.spec.selectors),
        unsupported=unsupported,
    )


def read_slice(found: looked_up.ResourceSlice) -> reference_objects.ResourceSlice:
    """A ResourceSlice with the devices that any claim may get whole."""
    metadata, spec = found.metadata, found.spec
    selector = spec.node_selector
    devices = [one for one in spec.devices if _whole(one)]
    details = _details(spec.driver, devices)
    return reference_objects.ResourceSlice(
        **cluster_identity(metadata),
        driver=spec.driver,
        pool=spec.pool.name,
        generation=spec.pool.generation,
        pool_slices=spec.pool.resource_slice_count,
        node=spec.node_name,
        node_affinity=selectors.terms(selector) if selector is not None else None,
        all_nodes=spec.all_nodes,
        devices=tuple(one.name for one in devices[: len(details)]),
        details=tuple(details) if any(one != _NO_DETAILS for one in details) else (),
    )


def read_device_claim(found: looked_up.ResourceClaim) -> reference_objects.ResourceClaim:
    metadata, spec, status = found.metadata, found.spec, found.status
    allocation = status.allocation or looked_up.Allocation()
    beyond = tuple(_unsupported(spec.devices))
    selector = allocation.node_selector
    owner = metadata.controller
    return reference_objects.ResourceClaim(
        **identity(metadata),
        requests=tuple(
            reference_objects.DeviceRequest(
                name=one.name,
                device_class=one.exactly.device_class_name,
                count=one.exactly.count,
                selectors=() if beyond else _expressions(one.exactly.selectors),
            )
            for one in spec.devices.requests
            if one.exactly is not None
        ),
        unsupported=beyond,
        allocated=tuple(
            (one.driver, one.pool, one.device)
            for one in allocation.devices.results
            # A pod with admin access does not consume the device.
            if not one.admin_access
        ),
        node_affinity=selectors.terms(selector) if selector is not None else None,
        reserved_for=tuple(sorted(one.uid for one in status.reserved_for)),
        owner_uid=owner.uid if owner is not None and owner.kind == "Pod" else "",
        deleting=metadata.deletion_timestamp is not None,
    )


def _driver(spec: looked_up.DeviceClassSpec) -> str:
    """The one driver that the class requires; "" if it requires more."""
    if len(spec.selectors) != 1 or spec.selectors[0].cel is None:
        return ""
    matched = _OF_DRIVER.fullmatch(spec.selectors[0].cel.expression)
    return (matched[1] or matched[2]) if matched else ""


def _unsupported_of_class(spec: looked_up.DeviceClassSpec) -> Iterator[str]:
    """Paths of a class's requirements beyond CEL selectors."""
    if spec.config:
        yield "spec.config"
    if (beyond := _beyond_expressions(spec.selectors)) is not None:
        yield f"spec.selectors{beyond}"


def _beyond_expressions(selectors: Sequence[looked_up.DeviceSelector]) -> str | None:
    """The suffix that names selectors of another kind, or too many; None: all are CEL."""
    for index, one in enumerate(selectors):
        if one.cel is None:
            return f"[{index}]"
    characters = sum(map(len, _expressions(selectors)))
    if characters > _EXPRESSIONS_CHARACTERS_MAX:
        return _TOO_MANY
    return None


def _expressions(selectors: Sequence[looked_up.DeviceSelector]) -> tuple[str, ...]:
    return tuple(one.cel.expression for one in selectors if one.cel is not None)


_NO_DETAILS: Final = reference_objects.DeviceDetails()


def _details(driver: str, devices: list[looked_up.Device]) -> list[reference_objects.DeviceDetails]:
    """The details of the first devices, as many as the limit allows."""
    found: list[reference_objects.DeviceDetails] = []
    characters = 0
    for device in devices:
        attributes = [
            _attribute(_qualified(driver, name), one)
            for name, one in sorted(device.attributes.items())
        ]
        capacity = tuple(
            (_qualified(driver, name), str(one.value))
            for name, one in sorted(device.capacity.items())
        )
        details = reference_objects.DeviceDetails(
            attributes=tuple(one for one in attributes if one is not None), capacity=capacity
        )
        characters += sum(len(one.name) + _size(one.value) for one in details.attributes)
        characters += sum(len(name) + len(text) for name, text in capacity)
        if characters > _DETAILS_CHARACTERS_MAX:
            break
        found.append(details)
    return found


def _qualified(driver: str, name: str) -> str:
    return name if "/" in name else f"{driver}/{name}"


def _attribute(
    name: str, found: looked_up.DeviceAttribute
) -> reference_objects.DeviceAttribute | None:
    """The attribute's value; None: it has none that this version knows."""
    value = next((one for one in _values(found) if one is not None), None)
    if value is None:
        return None
    version = value is found.version or value is found.versions
    return reference_objects.DeviceAttribute(name=name, value=value, version=version)


def _values(
    found: looked_up.DeviceAttribute,
) -> Iterator[bool | int | str | tuple[bool | int | str, ...] | None]:
    """Every possible value, lists first, as kube-scheduler reads them."""
    yield found.int_values
    yield found.bool_values
    yield found.strings
    yield found.versions
    yield found.int_value
    yield found.bool_value
    yield found.string
    yield found.version


def _size(value: bool | int | str | tuple[bool | int | str, ...]) -> int:
    if isinstance(value, tuple):
        return sum(map(_size, value))
    return len(value) if isinstance(value, str) else _PLAIN_CHARACTERS


def _whole(device: looked_up.Device) -> bool:
    return not (
        device.taints
        or device.consumes_counters
        or device.allow_multiple_allocations
        or device.binding_conditions
        or device.node_name
        or device.node_selector is not None
        or device.all_nodes
    )


def _unsupported(claim: looked_up.DeviceClaim) -> Iterator[str]:
    """Paths of the claim's requirements beyond a number of whole devices that selectors match."""
    if claim.constraints:
        yield "spec.devices.constraints"
    if claim.config:
        yield "spec.devices.config"
    for index, request in enumerate(claim.requests):
        path = f"spec.devices.requests[{index}]"
        exactly = request.exactly
        if request.first_available:
            yield f"{path}.firstAvailable"
        elif exactly is None:
            yield path
        else:
            yield from (f"{path}.exactly.{field}" for field in _beyond(exactly))
    characters = sum(
        len(one)
        for request in claim.requests
        if request.exactly is not None
        for one in _expressions(request.exactly.selectors)
    )
    if characters > _EXPRESSIONS_CHARACTERS_MAX:
        yield f"spec.devices.requests{_TOO_MANY}"


def _beyond(request: looked_up.ExactDeviceRequest) -> Iterator[str]:
    if (beyond := _beyond_expressions(request.selectors)) is not None:
        yield f"selectors{beyond}"
    if request.allocation_mode != "ExactCount":
        yield "allocationMode"
    if request.admin_access:
        yield "adminAccess"
    if request.tolerations:
        yield "tolerations"
    if request.capacity.requests:
        yield "capacity"


KINDS: Final = (
    kind(DEVICE_CLASSES, "deviceclass", looked_up.DeviceClass, read_device_class),
    kind(RESOURCE_SLICES, "resourceslice", looked_up.ResourceSlice, read_slice),
    kind(RESOURCE_CLAIMS, "resourceclaim", looked_up.ResourceClaim, read_device_claim),
)
