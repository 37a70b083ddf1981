"""Members that differ only in the names of their claims are placed as one group (ADR 0081)."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.gang_planner.core.state.devices import ledger
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from shared.contracts.decisions import GangDecision
from shared.model.devices import DeviceDetails, DeviceRequest
from tests.services.gang_planner.core.claims import make_device_claim, make_device_class, make_slice
from tests.services.gang_planner.core.scene import Scene, make_group, make_node
from tests.services.gang_planner.core.test_devices import members

_AMOUNTS = st.sampled_from((1_000, 3_000, 7_000))


def decide(
    devices: list[int], cpu: list[int], gangs: list[tuple[int, int, int, int]]
) -> list[GangDecision]:
    """The decisions about gangs of (members, minimum, devices of the first half, of the rest)."""
    nodes = [
        make_node(f"n{at}", {"cpu": amount, "memory": 64 << 30, "pods": 110})
        for at, amount in enumerate(cpu)
    ]
    scene = Scene(nodes)
    scene.put(make_device_class())
    scene.put(*(make_slice(f"n{at}", count) for at, count in enumerate(devices)))
    for gang, (size, least, first, second) in enumerate(gangs):
        counts = [first if member < size // 2 else second for member in range(size)]
        scene.put(
            *(make_device_claim(f"c{gang}-{at}", number) for at, number in enumerate(counts)),
            make_group(f"g{gang}", min(least, size), created_ms=gang),
            *members(f"g{gang}", [(f"c{gang}-{at}",) for at in range(size)], cpu=900),
        )
    scene.settle()
    return [decision for _, decision in scene.decisions]


@given(
    st.lists(st.integers(0, 8), min_size=4, max_size=4),
    st.lists(_AMOUNTS, min_size=4, max_size=4),
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 2), st.integers(1, 2)),
        min_size=1,
        max_size=3,
    ),
)
@settings(deadline=None, max_examples=60)
def test_whole_gangs_get_the_nodes_and_devices_that_they_get_one_by_one(
    devices: list[int], cpu: list[int], gangs: list[tuple[int, int, int, int]]
) -> None:
    whole = [(size, size, first, second) for size, _, first, second in gangs]
    together = decide(devices, cpu, whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NodeCapacity, "alike", unlike)
        assert decide(devices, cpu, whole) == together


@given(
    st.lists(st.integers(0, 8), min_size=4, max_size=4),
    st.lists(_AMOUNTS, min_size=4, max_size=4),
    st.tuples(st.integers(2, 9), st.integers(1, 9), st.integers(1, 2)),
)
@settings(deadline=None, max_examples=30)
def test_as_many_members_are_placed_as_one_by_one(
    devices: list[int], cpu: list[int], gang: tuple[int, int, int]
) -> None:
    size, least, number = gang
    one = [(size, least, number, number)]
    together = decide(devices, cpu, one)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NodeCapacity, "alike", unlike)
        singly = decide(devices, cpu, one)
    assert [len(each.bindings) for each in together] == [len(each.bindings) for each in singly]


def unlike(_capacity: NodeCapacity, shapes: Sequence[ShapeEntry]) -> list[None]:
    """No shape is like another one."""
    return [None] * len(shapes)


def test_members_that_share_a_claim_stay_on_its_node() -> None:
    scene = Scene([make_node(f"n{at}") for at in range(3)])
    scene.put(make_device_class(), *(make_slice(f"n{at}", 4) for at in range(3)))
    scene.put(*(make_device_claim(name) for name in ("own0", "own1", "own2", "shared")))
    pairs = [(f"own{at}", "shared") for at in range(2)]
    scene.put(make_group("g", 3), *members("g", [*pairs, ("own2",)]))
    (decision,) = scene.settle()
    nodes = {one.uid: one.node for one in decision.bindings}
    assert nodes["g-0"] == nodes["g-1"]
    given_ = [device for one in decision.devices for device in one.devices if one.claim != "shared"]
    assert len(set(given_)) == 3


def test_requests_for_different_devices_of_one_claim_are_counted_together() -> None:
    """Two GPUs and one network card each: the cards decide how many members a node takes."""
    scene = Scene([make_node(f"n{at}") for at in range(2)])
    scene.put(make_device_class(), make_device_class("nic", "nic.example.com"))
    for at, cards in enumerate((1, 3)):
        scene.put(make_slice(f"n{at}", 8))
        scene.put(
            make_slice(f"n{at}", cards, driver="nic.example.com", uid=f"nic-{at}", name=f"nic-{at}")
        )
    requests = (
        DeviceRequest(name="gpu", device_class="gpu", count=2),
        DeviceRequest(name="card", device_class="nic"),
    )
    scene.put(*(make_device_claim(f"c{at}", requests=requests) for at in range(4)))
    scene.put(make_group("g", 4), *members("g", [(f"c{at}",) for at in range(4)]))
    (decision,) = scene.settle()
    assert sorted(one.node for one in decision.bindings) == ["n0", "n1", "n1", "n1"]
    devices = [device[1:] for one in decision.devices for device in one.devices]
    assert len(set(devices)) == len(devices) == 12


def test_a_decided_claim_keeps_its_device_also_from_a_gang_with_equal_claims() -> None:
    """While a gang is placed, its wide claim could change its device for a narrow one, so that the
    node counted as fit for the narrow claim. Once the gang is decided it cannot.
    """
    scene = Scene([make_node("n0")])
    large = "device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi')) >= 0"
    scene.put(make_device_class())
    details = tuple(_memory(text) for text in ("80Gi", "20Gi"))
    scene.put(make_slice("n0", 2, details=details))
    narrow = (DeviceRequest(name="r", device_class="gpu", selectors=(large,)),)
    # The wide claim takes the large device, because the narrow member does not fit beside another
    # one that needs it.
    scene.put(make_device_claim("wide"), make_device_claim("narrow", requests=narrow))
    scene.put(make_group("g", 1), *members("g", [("wide",), ("narrow",)], cpu=3_000))
    first = scene.settle()
    placed = sum(len(one.bindings) for one in first)
    assert placed == 1
    scene.put(make_device_claim("later", requests=narrow))
    scene.put(make_group("h", 1), *members("h", [("later",)], cpu=100))
    for decision in scene.settle():
        assert all(one.devices for one in decision.devices)


def _memory(text: str) -> DeviceDetails:
    return DeviceDetails(capacity=(("gpu.example.com/memory", text),))


def test_members_get_devices_with_binding_conditions_after_all_others() -> None:
    scene = Scene([make_node("n0")])
    waits = DeviceDetails(binding_conditions=("Attached",))
    details = (waits, DeviceDetails(), DeviceDetails())
    scene.put(make_device_class(), make_slice("n0", 3, details=details), make_group("g", 2))
    scene.put(make_device_claim("c0"), make_device_claim("c1"))
    scene.put(*members("g", [("c0",), ("c1",)]))
    (decision,) = scene.settle()
    names = sorted(name for choice in decision.devices for *_, name in choice.devices)
    assert names == ["gpu-1", "gpu-2"]


def test_claims_without_requests_need_no_device() -> None:
    scene = Scene([make_node("n0")])
    scene.put(make_device_class(), make_group("g", 2))
    scene.put(*(make_device_claim(name, requests=()) for name in ("c0", "c1")))
    scene.put(*members("g", [("c0",), ("c1",)]))
    (decision,) = scene.settle()
    assert len(decision.bindings) == 2


def test_a_claim_with_devices_of_a_pod_that_has_left_gets_no_others() -> None:
    """Its first pod left before CLUSTER showed the claim with a device, which it still has."""
    scene = Scene([make_node("n0")])
    scene.put(make_device_class(), make_slice("n0", 2), make_device_claim("c"))
    scene.put(make_group("g", 1), *members("g", [("c",)]))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.remove(*scene.pods_of("g"))
    scene.put(make_device_claim("d"), make_group("h", 2), *members("h", [("c",), ("d",)]))
    (second,) = scene.settle()
    given_ = {one.claim: [name for *_, name in one.devices] for one in second.devices}
    assert given_ == {"c": ["gpu-0"], "d": ["gpu-1"]}


def test_equal_needs_are_the_same_objects_while_more_shapes_are_known_than_cached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cached counts of members are found by the identity of their needs."""
    monkeypatch.setattr(ledger, "_DEMANDS_MAX", 1)
    scene = Scene([make_node("n0")])
    scene.put(make_device_class(), make_device_claim("c"), make_device_claim("d"))
    scene.put(make_slice("n0", 1))
    state = scene.state
    shapes = [state.shapes.intern(one.shape) for one in members("g", [("c",), ("d",)])]
    first, second = map(state.node_capacity.devices.plain_needs, shapes)
    assert first is not None
    assert second is not None
    assert first[0] is second[0]
