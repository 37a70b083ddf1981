"""Reads devices of dynamic resource allocation (DRA): whole devices of one driver are supported.

Further requirements of a claim (constraints, selectors, parts of devices, configuration) are named
in `ResourceClaim.unsupported`, and a class whose selectors require more than a driver has no driver
here. The planner allocates no such claim.
"""

import re
from collections.abc import Iterator
from typing import Final

from shared.dialects import selectors
from shared.dialects.protocol import cluster_identity, identity
from shared.dialects.reference_objects import TEXT_CHARACTERS_MAX, kind
from shared.kube import reference_objects as looked_up
from shared.kube.resources import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from shared.model import reference_objects

_OF_DRIVER: Final = re.compile(r"""\s*device\.driver\s*==\s*(?:"([^"\\]+)"|'([^'\\]+)')\s*""")


def read_device_class(found: looked_up.DeviceClass) -> reference_objects.DeviceClass:
    return reference_objects.DeviceClass(
        **cluster_identity(found.metadata),
        driver=_driver(found.spec)[:TEXT_CHARACTERS_MAX],
    )


def read_slice(found: looked_up.ResourceSlice) -> reference_objects.ResourceSlice:
    """A ResourceSlice with the devices that any claim may get whole."""
    metadata, spec = found.metadata, found.spec
    selector = spec.node_selector
    return reference_objects.ResourceSlice(
        **cluster_identity(metadata),
        driver=spec.driver,
        pool=spec.pool.name,
        generation=spec.pool.generation,
        pool_slices=spec.pool.resource_slice_count,
        node=spec.node_name,
        node_affinity=selectors.terms(selector) if selector is not None else None,
        all_nodes=spec.all_nodes,
        devices=tuple(one.name for one in spec.devices if _whole(one)),
    )


def read_device_claim(found: looked_up.ResourceClaim) -> reference_objects.ResourceClaim:
    metadata, spec, status = found.metadata, found.spec, found.status
    allocation = status.allocation or looked_up.Allocation()
    selector = allocation.node_selector
    owner = metadata.controller
    return reference_objects.ResourceClaim(
        **identity(metadata),
        requests=tuple(
            reference_objects.DeviceRequest(
                name=one.name,
                device_class=one.exactly.device_class_name,
                count=one.exactly.count,
            )
            for one in spec.devices.requests
            if one.exactly is not None
        ),
        unsupported=tuple(_unsupported(spec.devices)),
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
    """The one driver that the class requires; "" if it requires more, or has configuration."""
    if len(spec.selectors) != 1 or spec.config or spec.selectors[0].cel is None:
        return ""
    matched = _OF_DRIVER.fullmatch(spec.selectors[0].cel.expression)
    return (matched[1] or matched[2]) if matched else ""


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
    """Paths of the claim's requirements beyond a number of whole devices of a class."""
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


def _beyond(request: looked_up.ExactDeviceRequest) -> Iterator[str]:
    if request.selectors:
        yield "selectors"
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
