"""Device classes, slices and claims, read."""

from typing import Any

import pytest

from shared.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from shared.model import devices
from shared.model.objects import Requirement, SelectorTerm
from tests.shared.dialects.test_reference_objects import read

TERM = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
ON_N1 = SelectorTerm(fields=(Requirement(key="metadata.name", operator="In", values=("n1",)),))


def cel(*expressions: str) -> dict[str, Any]:
    return {"selectors": [{"cel": {"expression": one}} for one in expressions]}


@pytest.mark.parametrize(
    ("spec", "driver"),
    [
        (cel('device.driver == "gpu.example"'), "gpu.example"),
        (cel(" device.driver=='gpu.example'\n"), "gpu.example"),
        (cel('device.driver == "a" && device.attributes["a"].x == 1'), ""),
        (cel('device.driver == "a"', "true"), ""),
        ({}, ""),
        ({**cel('device.driver == "a"'), "config": [{"opaque": {}}]}, "a"),
    ],
)
def test_a_class_has_a_driver_only_when_it_says_no_more_than_that(
    spec: dict[str, Any], driver: str
) -> None:
    assert read(DEVICE_CLASSES, {"spec": spec}).driver == driver


def test_a_slice_has_its_devices_and_everything_that_restricts_their_use() -> None:
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "max": "8Gi", "step": "1Gi"}}
    odd: list[dict[str, Any]] = [
        {"taints": [{"key": "x", "value": "y", "effect": "NoExecute"}, {"effect": "None"}]},
        {"consumesCounters": [{"counterSet": "gpu", "counters": {"slices": {"value": "2"}}}]},
        {
            "allowMultipleAllocations": True,
            "capacity": {"memory": {"value": "80Gi", "requestPolicy": policy}},
        },
        {
            "bindingConditions": ["Ready"],
            "bindingFailureConditions": ["Broken"],
            "bindsToNode": True,
        },
        {"nodeName": "n2"},
        {"nodeSelector": {"nodeSelectorTerms": [TERM]}},
        {"allNodes": True},
    ]
    devices_ = [{"name": f"odd-{i}", **one} for i, one in enumerate(odd)]
    spec = {
        "driver": "gpu.example",
        "pool": {"name": "n1", "generation": 3, "resourceSliceCount": 1},
        "perDeviceNodeSelection": True,
        "devices": devices_,
    }
    found = read(RESOURCE_SLICES, {"spec": spec})
    assert (found.per_device_nodes, found.node) == (True, "")
    assert found.devices == tuple(f"odd-{index}" for index in range(len(odd)))
    assert found.details == (
        devices.DeviceDetails(
            taints=(devices.DeviceTaint(key="x", value="y", effect="NoExecute"),)
        ),
        devices.DeviceDetails(
            consumes=(devices.Counters(counter_set="gpu", amounts=(("slices", "2"),)),)
        ),
        devices.DeviceDetails(
            shareable=True,
            capacity=(("gpu.example/memory", "80Gi"),),
            policies=(
                devices.CapacityPolicy(
                    name="memory",
                    value="80Gi",
                    default="1Gi",
                    minimum="1Gi",
                    maximum="8Gi",
                    step="1Gi",
                ),
            ),
        ),
        devices.DeviceDetails(
            binding_conditions=("Ready",),
            binding_failure_conditions=("Broken",),
            binds_to_node=True,
        ),
        devices.DeviceDetails(node="n2"),
        devices.DeviceDetails(node_affinity=(ON_N1,)),
        devices.DeviceDetails(all_nodes=True),
    )


def test_a_slice_may_have_counters_instead_of_devices() -> None:
    counters = [{"name": "gpu", "counters": {"slices": {"value": "7"}, "memory": {"value": "1Gi"}}}]
    found = read(RESOURCE_SLICES, {"spec": {"driver": "gpu.example", "sharedCounters": counters}})
    expected = (("memory", "1Gi"), ("slices", "7"))
    assert found.shared_counters == (devices.Counters(counter_set="gpu", amounts=expected),)
    assert found.devices == ()


def test_a_slice_has_the_attributes_and_capacities_of_its_devices() -> None:
    attributes = {
        "type": {"string": "gpu"},
        "healthy": {"bool": True},
        "cuda": {"version": "12.4.0"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0"},
        "links": {"ints": [1, 2]},
        "newer": {"complex": {}},
    }
    device = {"name": "a", "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}}
    spec = {"driver": "gpu.example", "devices": [{"name": "b"}, device]}
    found = read(RESOURCE_SLICES, {"spec": spec})
    assert found.devices == ("b", "a")
    plain, details = found.details
    assert plain == devices.DeviceDetails()
    assert details.capacity == (("gpu.example/memory", "80Gi"),)
    values = {one.name: (one.value, one.version) for one in details.attributes}
    assert values == {
        "gpu.example/type": ("gpu", False),
        "gpu.example/healthy": (True, False),
        "gpu.example/cuda": ("12.4.0", True),
        "resource.kubernetes.io/pcieRoot": ("pci0", False),
        "gpu.example/links": ((1, 2), False),
    }


def test_selectors_of_classes_and_requests_are_passed_on_as_text() -> None:
    expressions = ("device.driver == 'a' && true", "has(device.attributes['a'].x)")
    found = read(DEVICE_CLASSES, {"spec": cel(*expressions)})
    assert (found.driver, found.selectors, found.unsupported) == ("", expressions, ())
    asked = claim(requests=[exactly(**cel(*expressions))])
    assert asked.requests[0].selectors == expressions
    assert asked.unsupported == ()


def test_a_class_says_whether_it_has_configuration() -> None:
    configured = read(DEVICE_CLASSES, {"spec": {**cel("true"), "config": [{"opaque": {}}]}})
    assert (configured.configured, configured.selectors) == (True, ("true",))
    assert not read(DEVICE_CLASSES, {"spec": cel("true")}).configured


def test_a_class_may_serve_an_extended_resource_and_has_an_age() -> None:
    spec = {"extendedResourceName": "nvidia.com/gpu"}
    found = read(DEVICE_CLASSES, {"spec": spec}, creationTimestamp="1970-01-01T00:00:01Z")
    assert (found.extended_resource, found.created_ms) == ("nvidia.com/gpu", 1000)
    assert read(DEVICE_CLASSES, {"spec": {}}).extended_resource == ""


def test_a_claim_for_extended_resources_is_marked() -> None:
    note = {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert read(RESOURCE_CLAIMS, {}, annotations=note).extended
    assert not read(RESOURCE_CLAIMS, {}).extended


def test_selectors_of_another_kind_are_named() -> None:
    other = read(DEVICE_CLASSES, {"spec": {"selectors": [{"other": {}}]}})
    assert other.unsupported == ("spec.selectors[0]",)
    assert other.selectors == ()


def test_selectors_that_are_too_long_together_are_named_and_left_out() -> None:
    long = [f"device.driver == '{'x' * 10_000}'"] * 14
    found = read(DEVICE_CLASSES, {"spec": cel(*long)})
    assert found.selectors == ()
    assert "more than 131072 characters" in found.unsupported[0]
    asked = claim(requests=[exactly(**cel(*long[:7])), exactly(**cel(*long[7:]))])
    assert asked.requests == ()
    assert "more than 131072 characters" in asked.unsupported[0]


def test_a_slice_of_several_nodes_says_which() -> None:
    selected = read(RESOURCE_SLICES, {"spec": {"nodeSelector": {"nodeSelectorTerms": [TERM]}}})
    assert (selected.node_affinity, selected.all_nodes) == ((ON_N1,), False)
    everywhere = read(RESOURCE_SLICES, {"spec": {"allNodes": True}})
    assert (everywhere.node_affinity, everywhere.all_nodes) == (None, True)


def test_a_taint_rule_selects_devices_by_all_that_it_names() -> None:
    taint = {"key": "broken", "effect": "NoSchedule"}
    found = read(
        DEVICE_TAINT_RULES,
        {"spec": {"deviceSelector": {"driver": "gpu.example", "pool": "n1"}, "taint": taint}},
    )
    assert (found.driver, found.pool, found.device) == ("gpu.example", "n1", None)
    assert found.taint == devices.DeviceTaint(key="broken", effect="NoSchedule")
    for spec in ({"deviceSelector": {}, "taint": taint}, {"taint": taint}):
        every = read(DEVICE_TAINT_RULES, {"spec": spec})
        assert (every.driver, every.pool, every.device) == (None, None, None)


def test_a_taint_rule_that_only_shows_what_it_would_do_is_left_out() -> None:
    taint = {"key": "broken", "effect": "None"}
    assert read(DEVICE_TAINT_RULES, {"spec": {"deviceSelector": {}, "taint": taint}}) is None


def claim(**spec: Any) -> devices.ResourceClaim:
    found = read(RESOURCE_CLAIMS, {"spec": {"devices": spec}})
    assert isinstance(found, devices.ResourceClaim)
    return found


def exactly(**more: Any) -> dict[str, Any]:
    return {"name": "gpu", "exactly": {"deviceClassName": "gpu", **more}}


def test_a_claim_for_a_number_of_devices_is_read() -> None:
    found = claim(requests=[exactly(allocationMode="ExactCount", count=2), exactly()])
    assert found.unsupported == ()
    assert found.requests == (
        devices.DeviceRequest(name="gpu", device_class="gpu", count=2),
        devices.DeviceRequest(name="gpu", device_class="gpu", count=1),
    )


def test_requests_have_their_mode_tolerations_and_capacity() -> None:
    tolerations = [{"key": "x", "operator": "Exists", "effect": "NoExecute"}]
    found = claim(
        requests=[
            exactly(allocationMode="All", adminAccess=True, tolerations=tolerations),
            exactly(capacity={"requests": {"memory": "1Gi"}}),
        ]
    )
    every, part = found.requests
    assert (every.all_devices, every.admin_access) == (True, True)
    assert every.tolerations == (
        devices.DeviceToleration(key="x", operator="Exists", effect="NoExecute"),
    )
    assert part == devices.DeviceRequest(
        name="gpu", device_class="gpu", capacity=(("memory", "1Gi"),)
    )
    assert found.unsupported == ()


def test_a_request_may_have_alternatives() -> None:
    subs = [
        {"name": "large", "deviceClassName": "a", **cel("true")},
        {"name": "small", "deviceClassName": "b", "count": 2},
    ]
    (found,) = claim(requests=[{"name": "gpu", "firstAvailable": subs}]).requests
    assert found == devices.DeviceRequest(
        name="gpu",
        alternatives=(
            devices.DeviceRequest(name="large", device_class="a", selectors=("true",)),
            devices.DeviceRequest(name="small", device_class="b", count=2),
        ),
    )


def test_constraints_are_passed_on() -> None:
    constraints = [{"matchAttribute": "a/x"}, {"requests": ["r"], "distinctAttribute": "a/y"}]
    found = claim(requests=[exactly()], constraints=constraints)
    assert found.constraints == (
        devices.DeviceConstraint(attribute="a/x"),
        devices.DeviceConstraint(attribute="a/y", requests=("r",), distinct=True),
    )


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"requests": [exactly(selectors=[{}])]}, "spec.devices.requests[0].exactly.selectors[0]"),
        (
            {"requests": [exactly(), exactly(allocationMode="Some")]},
            "spec.devices.requests[1].exactly.allocationMode",
        ),
        (
            {"requests": [{"name": "x", "firstAvailable": [{"allocationMode": "Some"}]}]},
            "spec.devices.requests[0].firstAvailable[0].allocationMode",
        ),
        ({"requests": [{"name": "x"}]}, "spec.devices.requests[0]"),
        ({"constraints": [{"newer": {}}]}, "spec.devices.constraints[0]"),
    ],
)
def test_what_this_version_does_not_know_is_named(fields: dict[str, Any], path: str) -> None:
    found = claim(**fields)
    assert (found.unsupported, found.requests, found.constraints) == ((path,), (), ())


def test_an_allocated_claim_holds_its_devices_and_names_its_pods() -> None:
    results = [
        {"request": "gpu", "driver": "gpu.example", "pool": "n1", "device": "gpu-0"},
        {"driver": "gpu.example", "pool": "n1", "device": "gpu-1", "adminAccess": True},
        {
            "driver": "gpu.example",
            "pool": "n1",
            "device": "gpu-2",
            "shareID": "s",
            "consumedCapacity": {"memory": "1Gi"},
        },
    ]
    found = read(
        RESOURCE_CLAIMS,
        {
            "spec": {"devices": {"requests": [exactly()]}},
            "status": {
                "allocation": {
                    "devices": {"results": results},
                    "nodeSelector": {"nodeSelectorTerms": [TERM]},
                },
                "reservedFor": [{"resource": "pods", "name": "b", "uid": "uid-b"}, {"uid": "a"}],
            },
        },
        ownerReferences=[{"kind": "Pod", "uid": "uid-pod", "controller": True}],
    )
    assert found.allocated == (("gpu.example", "n1", "gpu-0"),)
    (share,) = found.shares
    assert (share.device, share.capacity) == ("gpu-2", (("memory", "1Gi"),))
    assert found.is_allocated
    assert found.node_affinity == (ON_N1,)
    assert (found.reserved_for, found.owner_uid) == (("a", "uid-b"), "uid-pod")
    assert not found.reserved_beyond_pods


def test_a_claim_that_is_reserved_for_a_podgroup_says_so() -> None:
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "g"}
    pod = {"resource": "pods", "name": "p", "uid": "uid-p"}
    found = read(
        RESOURCE_CLAIMS,
        {
            "spec": {"devices": {"requests": [exactly()]}},
            "status": {"reservedFor": [group, pod]},
        },
    )
    assert found.reserved_for == ("uid-p",)
    assert found.reserved_beyond_pods
