"""Gangs whose members compete for the devices of several nodes: what fits is found."""

import itertools
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.gang_planner.core.placement import attempt
from services.gang_planner.core.placement.attempt import Attempt
from services.gang_planner.core.state.devices.allocation_search import assign
from services.gang_planner.core.state.devices.ledger import Devices
from shared.contracts.decisions import GangDecision
from shared.model.devices import (
    DeviceAttribute,
    DeviceConstraint,
    DeviceDetails,
    DeviceRequest,
    ResourceClaim,
)
from tests.services.gang_planner.core.claims import make_device_claim, make_device_class, make_slice
from tests.services.gang_planner.core.invariants import validate
from tests.services.gang_planner.core.scene import Scene, make_group, make_node
from tests.services.gang_planner.core.test_devices import DRIVER, condition, members

NIC = "nic.example.com"
SAME_DRIVER = DeviceConstraint(attribute=f"{DRIVER}/kind", requests=("r",))


def kind_of(kind: str) -> DeviceDetails:
    return DeviceDetails(attributes=(DeviceAttribute(name=f"{DRIVER}/kind", value=kind),))


def fabric() -> Scene:
    """n0 has two GPUs and the only NIC, n1 has two GPUs."""
    scene = Scene([make_node("n0"), make_node("n1")])
    details = (kind_of("x"), kind_of("x"))
    scene.put(
        make_device_class(),
        make_device_class("nic", NIC),
        make_slice("n0", 2, details=details),
        make_slice("n1", 2, details=details),
        make_slice("n0", 1, driver=NIC, uid="nics", name="nics"),
    )
    return scene


def two_gpus(name: str, *constraints: DeviceConstraint) -> ResourceClaim:
    return make_device_claim(name, 2, constraints=constraints)


def gpu_and_nic(name: str) -> ResourceClaim:
    requests = (
        DeviceRequest(name="r", device_class="gpu"),
        DeviceRequest(name="nic", device_class="nic"),
    )
    return make_device_claim(name, requests=requests)


def nodes_of(decisions: Sequence[GangDecision]) -> dict[str, str]:
    (decision,) = decisions
    devices = [one[1:] for choice in decision.devices for one in choice.devices]
    assert len(devices) == len(set(devices))
    return {one.uid: one.node for one in decision.bindings}


def test_a_member_leaves_the_only_node_of_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first member would take both GPUs of the node with the NIC."""
    scene = fabric()
    scene.put(two_gpus("a"), gpu_and_nic("b"), make_group("g", 2))
    scene.put(*members("g", [("a",), ("b",)]))
    with monkeypatch.context() as patched:
        patched.setattr(attempt, "_is_searchable", lambda _: False)
        assert not scene.settle()
        reason, sentence = condition(scene, "g")
        assert (reason, "1 of 2" in sentence) == ("NotEnoughResources", True)
    scene.put(make_node("n2"))
    assert nodes_of(scene.settle()) == {"g-0": "n1", "g-1": "n0"}


def test_equal_members_leave_the_devices_of_others() -> None:
    """n0 has two GPUs that only its NICs' users can have, n1 two for all."""
    scene = fabric()
    scene.put(make_slice("n0", 2, driver=NIC, uid="nics", name="nics", generation=2))
    names = [("a0",), ("a1",), ("b0",), ("b1",)]
    scene.put(*(make_device_claim(name) for name in ("a0", "a1")))
    scene.put(*(gpu_and_nic(name) for name in ("b0", "b1")), make_group("g", 4))
    scene.put(*members("g", names))
    expected = {"g-0": "n1", "g-1": "n1", "g-2": "n0", "g-3": "n0"}
    assert nodes_of(scene.settle()) == expected


def test_members_with_constraints_leave_the_only_node_of_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More than numbers decides, so members that fit on the fewest nodes are placed first."""
    scene = fabric()
    scene.put(two_gpus("a", SAME_DRIVER), gpu_and_nic("b"), make_group("g", 2))
    scene.put(*members("g", [("a",), ("b",)]))
    with monkeypatch.context() as patched:
        patched.setattr(Attempt, "_place_by_nodes", lambda *_: False)
        assert not scene.settle()
    scene.put(make_node("n2"))
    assert nodes_of(scene.settle()) == {"g-0": "n1", "g-1": "n0"}


def test_a_placement_whose_devices_cannot_be_chosen_is_undone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = fabric()
    scene.put(two_gpus("a"), gpu_and_nic("b"), make_group("g", 2))
    scene.put(*members("g", [("a",), ("b",)]))
    with monkeypatch.context() as patched:
        patched.setattr(Devices, "is_served", lambda *_: False)
        assert not scene.settle()
    scene.put(make_node("n2"))
    assert nodes_of(scene.settle()) == {"g-0": "n1", "g-1": "n0"}


def test_a_gang_with_many_kinds_of_devices_is_not_searched() -> None:
    """Five selections have 31 sets: the greedy search decides alone, and the gang waits."""
    scene = fabric()
    selectors = [f"device.attributes['{DRIVER}'].kind != '{name}'" for name in "abcde"]
    kinds = [
        make_device_claim(
            f"a{at}", requests=(DeviceRequest(name="r", device_class="gpu", selectors=(one,)),)
        )
        for at, one in enumerate(selectors[:4])
    ]
    scene.put(*kinds, two_gpus("b"), make_group("g", 5))
    names = [*((one.name,) for one in kinds), ("b",)]
    scene.put(*members("g", names))
    assert not scene.settle()
    # Six GPUs are requested, and there are four.
    assert condition(scene, "g")[0] == "NotEnoughResources"


class Case(msgspec.Struct, frozen=True):
    """Kinds of the devices of each node; selected kinds and numbers of the members."""

    nodes: tuple[tuple[str, ...], ...]
    members: tuple[tuple[str, int], ...]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Small clusters, and gangs of two or three sorts of members that nearly fill them."""
    nodes = draw(st.lists(st.lists(st.sampled_from("xy"), max_size=4), min_size=2, max_size=3))
    sort = st.tuples(st.sampled_from(["x", "y", "xy"]), st.integers(1, 2))
    sorts = draw(st.lists(sort, min_size=2, max_size=3, unique=True))
    each = [draw(st.integers(1, 2)) for _ in sorts]
    found = [one for one, count in zip(sorts, each, strict=True) for _ in range(count)]
    return Case(tuple(map(tuple, nodes)), tuple(draw(st.permutations(found))))


def possible(case: Case) -> bool:
    """Whether any nodes of the members have devices for all of them: all are tried."""
    for places in itertools.product(range(len(case.nodes)), repeat=len(case.members)):
        if all(
            assign(
                [
                    (
                        number,
                        [("", str(at), str(i)) for i, one in enumerate(kinds) if one in wanted],
                    )
                    for place, (wanted, number) in zip(places, case.members, strict=True)
                    if place == at
                ]
            )
            is not None
            for at, kinds in enumerate(case.nodes)
        ):
            return True
    return False


@settings(max_examples=60, deadline=None)
@given(cases())
def test_a_gang_with_claims_is_placed_exactly_when_it_fits(case: Case) -> None:
    scene = Scene([make_node(f"n{at}") for at in range(len(case.nodes))])
    scene.put(make_device_class(), make_group("g", len(case.members)))
    for at, kinds in enumerate(case.nodes):
        scene.put(make_slice(f"n{at}", len(kinds), details=tuple(map(kind_of, kinds))))
    for at, (wanted, number) in enumerate(case.members):
        selector = f"device.attributes['{DRIVER}'].kind in {list(wanted)}"
        request = DeviceRequest(name="r", device_class="gpu", selectors=(selector,), count=number)
        scene.put(make_device_claim(f"c{at}", requests=(request,)))
    scene.put(*members("g", [(f"c{at}",) for at in range(len(case.members))]))
    decisions = scene.settle()
    assert bool(decisions) == possible(case)
    if not decisions:
        return
    nodes = nodes_of(decisions)
    for choice in decisions[0].devices:
        at = int(choice.pod_uid.removeprefix("g-"))
        wanted, number = case.members[at]
        assert len(choice.devices) == number
        for _, _, pool, device in choice.devices:
            assert pool == nodes[choice.pod_uid]
            kinds = case.nodes[int(pool.removeprefix("n"))]
            assert kinds[int(device.removeprefix("gpu-"))] in wanted
    validate(scene.planner)
