"""Gangs whose claims select devices by CEL, with devices as NVIDIA's driver publishes them."""

import pytest

from services.gang_planner.core.state.devices.allocation_search import assign
from shared.model.devices import (
    DeviceAttribute,
    DeviceClass,
    DeviceDetails,
    DeviceRequest,
    ResourceClaim,
)
from tests.services.gang_planner.core.claims import make_device_claim, make_slice
from tests.services.gang_planner.core.scene import Scene, make_group, make_node
from tests.services.gang_planner.core.test_devices import condition, members

GPU = "gpu.nvidia.com"
CHANNEL = "compute-domain.nvidia.com"
CLASSES = {
    "gpu.nvidia.com": f"device.driver == '{GPU}' && device.attributes['{GPU}'].type == 'gpu'",
    "mig.nvidia.com": f"device.driver == '{GPU}' && device.attributes['{GPU}'].type == 'mig'",
    "compute-domain-default-channel.nvidia.com": (
        f"device.driver == '{CHANNEL}' && device.attributes['{CHANNEL}'].type == 'channel' && "
        f"device.attributes['{CHANNEL}'].id == 0"
    ),
}
ABSENT = f"device.attributes['{GPU}'].?index.orValue(7)"
MIG = f"device.attributes['{GPU}'][?'type'].orValue('') == 'mig'"
LARGE = f"device.capacity['{GPU}'].memory.compareTo(quantity('40Gi')) >= 0"


def gpu(index: int, memory: str, kind: str = "gpu", product: str = "H100") -> DeviceDetails:
    texts = {"type": kind, "uuid": f"GPU-{index}", "productName": product}
    attributes = tuple(
        DeviceAttribute(name=f"{GPU}/{name}", value=value) for name, value in texts.items()
    )
    return DeviceDetails(attributes=attributes, capacity=((f"{GPU}/memory", memory),))


def request(name: str = "r", of: str = "gpu.nvidia.com", *selectors: str) -> DeviceRequest:
    return DeviceRequest(name=name, device_class=of, selectors=selectors)


def wants(name: str, *requests: DeviceRequest) -> ResourceClaim:
    return make_device_claim(name, requests=requests)


def stage() -> Scene:
    """n0: two GPUs of 80Gi; n1: one of 80Gi, one of 20Gi and a MIG slice; n2: a channel."""
    scene = Scene([make_node(f"n{index}") for index in range(3)])
    for name, expression in CLASSES.items():
        scene.put(
            DeviceClass(uid=f"dc-{name}", name=name, resource_version=1, selectors=(expression,))
        )
    first = (gpu(0, "80Gi"), gpu(1, "80Gi"))
    second = (gpu(2, "20Gi", product="T4"), gpu(3, "80Gi"), gpu(4, "10Gi", kind="mig"))
    channel = tuple(
        DeviceAttribute(name=f"{CHANNEL}/{name}", value=value)
        for name, value in (("type", "channel"), ("id", 0))
    )
    scene.put(
        make_slice("n0", 2, driver=GPU, details=first),
        make_slice("n1", 3, driver=GPU, details=second),
        make_slice("n2", 1, driver=CHANNEL, details=(DeviceDetails(attributes=channel),)),
    )
    return scene


def placed(scene: Scene) -> dict[str, list[tuple[str, str]]]:
    """Pod -> (pool, device) of its claims."""
    (decision,) = scene.settle()
    return {one.pod_uid: [two[2:] for two in one.devices] for one in decision.devices}


@pytest.mark.parametrize(
    ("claims", "devices"),
    [
        ([request(of="mig.nvidia.com")], {("n1", "gpu-2")}),
        (
            [request("r", "mig.nvidia.com", f"{ABSENT} == 7 && {MIG}")],
            {("n1", "gpu-2")},
        ),
        ([request(of="compute-domain-default-channel.nvidia.com")], {("n2", "gpu-0")}),
        (
            [request("r", GPU, LARGE)] * 3,
            {("n0", "gpu-0"), ("n0", "gpu-1"), ("n1", "gpu-1")},
        ),
        (
            [request("r", GPU, f"device.attributes['{GPU}'].productName == 'T4'")],
            {("n1", "gpu-0")},
        ),
    ],
    ids=[
        "a MIG slice",
        "a device without an attribute",
        "a channel",
        "GPUs with enough memory",
        "a product",
    ],
)
def test_members_get_devices_that_class_and_request_select(
    claims: list[DeviceRequest], devices: set[tuple[str, str]]
) -> None:
    scene = stage()
    names = [f"c{index}" for index in range(len(claims))]
    scene.put(*(wants(name, one) for name, one in zip(names, claims, strict=True)))
    scene.put(make_group("g", len(claims)), *members("g", [(name,) for name in names]))
    assert {one for found in placed(scene).values() for one in found} == devices


def test_a_gang_of_which_one_member_finds_no_device_waits_and_names_the_selector() -> None:
    scene = stage()
    scene.put(*(wants(f"c{index}", request("big", GPU, LARGE)) for index in range(4)))
    scene.put(make_group("g", 4), *members("g", [(f"c{index}",) for index in range(4)]))
    assert not scene.settle()
    reason, sentence = condition(scene, "g")
    assert reason == "NotEnoughResources"
    assert "3 of 4" in sentence
    assert "request big of resourceclaim c" in sentence
    assert LARGE in sentence


def test_requests_of_one_claim_that_may_use_the_same_device_get_different_ones() -> None:
    """The first request alone would take the only device of the second one."""
    scene = stage()
    scene.remove(make_slice("n0", 2, driver=GPU))
    scene.put(wants("c", request("any"), request("small", GPU, f"!({LARGE})")))
    scene.put(make_group("g", 1), *members("g", [("c",)]))
    assert placed(scene) == {"g-0": [("n1", "gpu-1"), ("n1", "gpu-0")]}
    # Both need the same one: there is no such node.
    scene.put(wants("d", request("one", GPU, f"!({LARGE})"), request("two", GPU, "true")))
    scene.put(make_group("h", 1), *members("h", [("d",)]))
    assert not scene.settle()


def test_claims_of_one_pod_that_may_use_the_same_device_get_different_ones() -> None:
    scene = stage()
    scene.remove(make_slice("n0", 2, driver=GPU))
    scene.put(wants("a", request()), wants("b", request("r", GPU, f"!({LARGE})")))
    scene.put(make_group("g", 1), *members("g", [("a", "b")]))
    (decision,) = scene.settle()
    given = {one.claim: one.devices[0][3] for one in decision.devices}
    assert given == {"a": "gpu-1", "b": "gpu-0"}


def test_a_selector_that_fails_on_a_device_does_not_match_it_and_is_quoted() -> None:
    scene = stage()
    selector = f"device.attributes['{GPU}'].noSuchName == 'x'"
    scene.put(wants("c", request("odd", GPU, selector)))
    scene.put(make_group("g", 1), *members("g", [("c",)]))
    assert not scene.settle()
    reason, sentence = condition(scene, "g")
    assert reason == "NotEnoughResources"
    assert f"selector `{selector}` failed: no such key: noSuchName" in sentence
    assert "request odd of resourceclaim c" in sentence


def test_a_selector_that_is_not_supported_is_refused_with_its_position() -> None:
    scene = stage()
    selector = f"[?device.attributes['{GPU}'].?type] == ['gpu']"
    scene.put(wants("c", request("odd", GPU, selector)))
    scene.put(make_group("g", 1), *members("g", [("c",)]))
    assert not scene.settle()
    reason, sentence = condition(scene, "g")
    assert reason == "UnsupportedDevice"
    assert selector in sentence
    assert "an optional element is not supported at 1:2" in sentence


def test_a_device_whose_attributes_change_is_selected_by_the_new_ones() -> None:
    scene = stage()
    scene.put(wants("c", request("r", GPU, f"device.attributes['{GPU}'].productName == 'B200'")))
    scene.put(make_group("g", 1), *members("g", [("c",)]))
    assert not scene.settle()
    newer = (gpu(0, "80Gi", product="B200"), gpu(1, "80Gi"))
    scene.put(make_slice("n0", 2, driver=GPU, details=newer, generation=2))
    assert placed(scene) == {"g-0": [("n0", "gpu-0")]}


def test_an_assignment_is_found_if_there_is_one() -> None:
    a, b, c = (("d", "p", name) for name in "abc")
    assert assign([(1, [a, b]), (1, [a, c]), (1, [a])]) == [[b], [c], [a]]
    assert assign([(2, [a, b]), (1, [b, c]), (1, [b])]) is None
    assert assign([(2, [a, b, c]), (1, [a])]) == [[c, b], [a]]
    assert assign([]) == []
