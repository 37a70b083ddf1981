"""Device classes, slices and claims, read: whole devices, their details and selectors."""

from typing import Any

import pytest

from shared.kube.resources import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from shared.model import reference_objects
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
        ({**cel('device.driver == "a"'), "config": [{"opaque": {}}]}, ""),
    ],
)
def test_a_class_has_a_driver_only_when_it_says_no_more_than_that(
    spec: dict[str, Any], driver: str
) -> None:
    assert read(DEVICE_CLASSES, {"spec": spec}).driver == driver


def test_a_slice_offers_devices_that_any_claim_may_have_whole() -> None:
    odd: list[dict[str, Any]] = [
        {"taints": [{"key": "x"}]},
        {"consumesCounters": [{}]},
        {"allowMultipleAllocations": True},
        {"bindingConditions": ["Ready"]},
        {"nodeName": "n2"},
        {"nodeSelector": {}},
        {"allNodes": True},
    ]
    devices = [{"name": "gpu-0", "attributes": {"x": {"int": 1}}}]
    devices += [{"name": f"odd-{i}", **one} for i, one in enumerate(odd)]
    found = read(
        RESOURCE_SLICES,
        {
            "spec": {
                "driver": "gpu.example",
                "pool": {"name": "n1", "generation": 3, "resourceSliceCount": 1},
                "nodeName": "n1",
                "devices": devices,
            }
        },
    )
    assert found == reference_objects.ResourceSlice(
        uid="uid-one",
        name="one",
        resource_version=7,
        driver="gpu.example",
        pool="n1",
        generation=3,
        pool_slices=1,
        node="n1",
        devices=("gpu-0",),
        details=(
            reference_objects.DeviceDetails(
                attributes=(reference_objects.DeviceAttribute(name="gpu.example/x", value=1),)
            ),
        ),
    )


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
    assert plain == reference_objects.DeviceDetails()
    assert details.capacity == (("gpu.example/memory", "80Gi"),)
    values = {one.name: (one.value, one.version) for one in details.attributes}
    assert values == {
        "gpu.example/type": ("gpu", False),
        "gpu.example/healthy": (True, False),
        "gpu.example/cuda": ("12.4.0", True),
        "resource.kubernetes.io/pcieRoot": ("pci0", False),
        "gpu.example/links": ((1, 2), False),
    }


def test_devices_beyond_the_limit_of_details_are_left_out() -> None:
    large = {"attributes": {f"a{index}": {"string": "x" * 64} for index in range(1_400)}}
    devices = [{"name": f"gpu-{index}", **large} for index in range(3)]
    found = read(RESOURCE_SLICES, {"spec": {"driver": "gpu.example", "devices": devices}})
    assert found.devices == ("gpu-0", "gpu-1")
    assert len(found.details) == 2


def test_selectors_of_classes_and_requests_are_passed_on_as_text() -> None:
    expressions = ("device.driver == 'a' && true", "has(device.attributes['a'].x)")
    found = read(DEVICE_CLASSES, {"spec": cel(*expressions)})
    assert (found.driver, found.selectors, found.unsupported) == ("", expressions, ())
    asked = claim(requests=[exactly(**cel(*expressions))])
    assert asked.requests[0].selectors == expressions
    assert asked.unsupported == ()


def test_more_of_a_class_than_selectors_is_named() -> None:
    configured = read(DEVICE_CLASSES, {"spec": {**cel("true"), "config": [{"opaque": {}}]}})
    assert configured.unsupported == ("spec.config",)
    other = read(DEVICE_CLASSES, {"spec": {"selectors": [{"other": {}}]}})
    assert other.unsupported == ("spec.selectors[0]",)
    assert other.selectors == ()


def test_selectors_that_are_too_long_together_are_named_and_left_out() -> None:
    long = [f"device.driver == '{'x' * 10_000}'"] * 14
    found = read(DEVICE_CLASSES, {"spec": cel(*long)})
    assert found.selectors == ()
    assert "more than 131072 characters" in found.unsupported[0]
    asked = claim(requests=[exactly(**cel(*long[:7])), exactly(**cel(*long[7:]))])
    assert [one.selectors for one in asked.requests] == [(), ()]
    assert "more than 131072 characters" in asked.unsupported[0]


def test_a_slice_of_several_nodes_says_which() -> None:
    selected = read(RESOURCE_SLICES, {"spec": {"nodeSelector": {"nodeSelectorTerms": [TERM]}}})
    assert (selected.node_affinity, selected.all_nodes) == ((ON_N1,), False)
    everywhere = read(RESOURCE_SLICES, {"spec": {"allNodes": True}})
    assert (everywhere.node_affinity, everywhere.all_nodes) == (None, True)


def claim(**devices: Any) -> reference_objects.ResourceClaim:
    found = read(RESOURCE_CLAIMS, {"spec": {"devices": devices}})
    assert isinstance(found, reference_objects.ResourceClaim)
    return found


def exactly(**more: Any) -> dict[str, Any]:
    return {"name": "gpu", "exactly": {"deviceClassName": "gpu", **more}}


def test_a_claim_for_whole_devices_of_a_class_is_supported() -> None:
    found = claim(requests=[exactly(allocationMode="ExactCount", count=2), exactly()])
    assert found.unsupported == ()
    assert found.requests == (
        reference_objects.DeviceRequest(name="gpu", device_class="gpu", count=2),
        reference_objects.DeviceRequest(name="gpu", device_class="gpu", count=1),
    )


@pytest.mark.parametrize(
    ("devices", "path"),
    [
        ({"requests": [exactly(selectors=[{}])]}, "spec.devices.requests[0].exactly.selectors[0]"),
        (
            {"requests": [exactly(), exactly(allocationMode="All")]},
            "spec.devices.requests[1].exactly.allocationMode",
        ),
        ({"requests": [exactly(adminAccess=True)]}, "spec.devices.requests[0].exactly.adminAccess"),
        ({"requests": [exactly(tolerations=[{}])]}, "spec.devices.requests[0].exactly.tolerations"),
        (
            {"requests": [exactly(capacity={"requests": {"memory": "1Gi"}})]},
            "spec.devices.requests[0].exactly.capacity",
        ),
        (
            {"requests": [{"name": "x", "firstAvailable": [{}]}]},
            "spec.devices.requests[0].firstAvailable",
        ),
        ({"requests": [{"name": "x"}]}, "spec.devices.requests[0]"),
        ({"constraints": [{}]}, "spec.devices.constraints"),
        ({"config": [{}]}, "spec.devices.config"),
    ],
)
def test_what_a_claim_asks_beyond_that_is_named(devices: dict[str, Any], path: str) -> None:
    assert claim(**devices).unsupported == (path,)


def test_an_allocated_claim_holds_its_devices_and_names_its_pods() -> None:
    results = [
        {"request": "gpu", "driver": "gpu.example", "pool": "n1", "device": "gpu-0"},
        {"driver": "gpu.example", "pool": "n1", "device": "gpu-1", "adminAccess": True},
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
    assert found.node_affinity == (ON_N1,)
    assert (found.reserved_for, found.owner_uid) == (("a", "uid-b"), "uid-pod")
