"""Reads device classes, slices and taint rules of dynamic resource allocation (DRA).

Fields of a class that this version does not know are named in `DeviceClass.unsupported`.
Expressions and quantities are passed on as text.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, get_args

from shared.dialects import selectors
from shared.dialects.device_claims import beyond_expressions, expressions, read_device_claim
from shared.dialects.protocol import cluster_identity
from shared.dialects.reference_objects import TEXT_CHARACTERS_MAX, kind
from shared.kube import reference_objects as looked_up
from shared.kube.objects import NodeSelector, Quantity
from shared.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from shared.model import devices
from shared.model.terms import SelectorTerm

_OF_DRIVER: Final = re.compile(r"""\s*device\.driver\s*==\s*(?:"([^"\\]+)"|'([^'\\]+)')\s*""")


def read_device_class(device_class: looked_up.DeviceClass) -> devices.DeviceClass:
    beyond = beyond_expressions(device_class.spec.selectors)
    unsupported = () if beyond is None else (f"spec.selectors{beyond}",)
    return devices.DeviceClass(
        **cluster_identity(device_class.metadata),
        driver="" if unsupported else _driver(device_class.spec)[:TEXT_CHARACTERS_MAX],
        selectors=() if unsupported else expressions(device_class.spec.selectors),
        unsupported=unsupported,
        configured=bool(device_class.spec.config),
        extended_resource=device_class.spec.extended_resource_name[:TEXT_CHARACTERS_MAX],
        created_ms=device_class.metadata.created_ms,
    )


def read_slice(resource_slice: looked_up.ResourceSlice) -> devices.ResourceSlice:
    metadata, spec = resource_slice.metadata, resource_slice.spec
    details = tuple(_detail(spec.driver, device) for device in spec.devices)
    return devices.ResourceSlice(
        **cluster_identity(metadata),
        driver=spec.driver,
        pool=spec.pool.name,
        generation=spec.pool.generation,
        pool_slices=spec.pool.resource_slice_count,
        node=spec.node_name,
        node_affinity=_terms(spec.node_selector),
        all_nodes=spec.all_nodes,
        per_device_nodes=spec.per_device_node_selection,
        devices=tuple(device.name for device in spec.devices),
        details=details if any(detail != _NO_DETAILS for detail in details) else (),
        shared_counters=tuple(
            _counters(counter_set.name, counter_set.counters)
            for counter_set in spec.shared_counters
        ),
    )


def read_taint_rule(rule: looked_up.DeviceTaintRule) -> devices.DeviceTaintRule | None:
    """A rule that keeps devices from being allocated; None: it has no such effect.

    One without a selector selects all devices, as in kube-scheduler 1.36; its API says none.
    """
    selector = rule.spec.device_selector or looked_up.DeviceTaintSelector()
    taints = tuple(_taints((rule.spec.taint,)))
    if not taints:
        return None
    return devices.DeviceTaintRule(
        **cluster_identity(rule.metadata),
        taint=taints[0],
        driver=selector.driver,
        pool=selector.pool,
        device=selector.device,
    )


def _driver(spec: looked_up.DeviceClassSpec) -> str:
    """The one driver that the class requires; "" if it requires more."""
    if len(spec.selectors) != 1 or spec.selectors[0].cel is None:
        return ""
    matched = _OF_DRIVER.fullmatch(spec.selectors[0].cel.expression)
    return (matched[1] or matched[2]) if matched else ""


_NO_DETAILS: Final = devices.DeviceDetails()


def _detail(driver: str, device: looked_up.Device) -> devices.DeviceDetails:
    attributes = [
        _attribute(_qualified(driver, name), attribute)
        for name, attribute in sorted(device.attributes.items())
    ]
    return devices.DeviceDetails(
        attributes=tuple(attribute for attribute in attributes if attribute is not None),
        capacity=tuple(
            (_qualified(driver, name), str(capacity.value))
            for name, capacity in sorted(device.capacity.items())
        ),
        taints=tuple(_taints(device.taints)),
        consumes=tuple(
            _counters(consumption.counter_set, consumption.counters)
            for consumption in device.consumes_counters
        ),
        shareable=device.allow_multiple_allocations,
        policies=tuple(
            _policy(name, capacity)
            for name, capacity in sorted(device.capacity.items())
            if device.allow_multiple_allocations
        ),
        node=device.node_name,
        node_affinity=_terms(device.node_selector),
        all_nodes=device.all_nodes,
        binds_to_node=device.binds_to_node,
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
    )


def _taints(taints: Iterable[looked_up.DeviceTaint]) -> Iterator[devices.DeviceTaint]:
    """Those that keep devices from being allocated."""
    for taint in taints:
        for effect in get_args(devices.TaintEffect):
            if taint.effect == effect:
                yield devices.DeviceTaint(key=taint.key, value=taint.value, effect=effect)


def _terms(selector: NodeSelector | None) -> tuple[SelectorTerm, ...] | None:
    return selectors.terms(selector) if selector is not None else None


def _counters(name: str, counters: dict[str, looked_up.CounterValue]) -> devices.Counters:
    amounts = tuple((counter, str(value.value)) for counter, value in sorted(counters.items()))
    return devices.Counters(counter_set=name, amounts=amounts)


def _policy(name: str, capacity: looked_up.CapacityValue) -> devices.CapacityPolicy:
    policy = capacity.request_policy or looked_up.CapacityRequestPolicy()
    limits = policy.valid_range or looked_up.CapacityRange()
    return devices.CapacityPolicy(
        name=name,
        value=str(capacity.value),
        default=_text(policy.default),
        values=tuple(map(str, policy.valid_values)),
        minimum=_text(limits.minimum),
        maximum=_text(limits.maximum),
        step=_text(limits.step),
    )


def _text(quantity: Quantity | None) -> str:
    return "" if quantity is None else str(quantity)


def _qualified(driver: str, name: str) -> str:
    return name if "/" in name else f"{driver}/{name}"


def _attribute(name: str, attribute: looked_up.DeviceAttribute) -> devices.DeviceAttribute | None:
    """The attribute's value; None: it has none that this version knows."""
    value = next((candidate for candidate in _values(attribute) if candidate is not None), None)
    if value is None:
        return None
    version = value is attribute.version or value is attribute.versions
    return devices.DeviceAttribute(name=name, value=value, version=version)


def _values(
    attribute: looked_up.DeviceAttribute,
) -> Iterator[bool | int | str | tuple[bool | int | str, ...] | None]:
    """Every possible value, lists first, as kube-scheduler reads them."""
    yield attribute.int_values
    yield attribute.bool_values
    yield attribute.strings
    yield attribute.versions
    yield attribute.int_value
    yield attribute.bool_value
    yield attribute.string
    yield attribute.version


KINDS: Final = (
    kind(DEVICE_CLASSES, "deviceclass", looked_up.DeviceClass, read_device_class),
    kind(RESOURCE_SLICES, "resourceslice", looked_up.ResourceSlice, read_slice),
    kind(DEVICE_TAINT_RULES, "devicetaintrule", looked_up.DeviceTaintRule, read_taint_rule),
    kind(RESOURCE_CLAIMS, "resourceclaim", looked_up.ResourceClaim, read_device_claim),
)
