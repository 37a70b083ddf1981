"""Which devices count as chosen for a claim: those of decisions, of the log, and of undone
preparations.
"""

from fractions import Fraction
from typing import Any

import msgspec
import pytest

from services.gang_planner.core.state import claim_choices
from services.gang_planner.core.state.claim_choices import choice_bytes
from services.gang_planner.core.state.devices.demand import Pick
from services.gang_planner.core.state.devices.grants import Grant
from services.gang_planner.core.state.devices.ledger import Devices
from shared.contracts.decisions import GangDecision
from shared.model.devices import DeviceDetails
from shared.model.objects import Pod
from shared.model.reference_objects import Namespace
from tests.services.gang_planner.core import claims
from tests.services.gang_planner.core.claims import (
    make_claim,
    make_class,
    make_device_claim,
    make_device_class,
    make_slice,
    make_volume,
)
from tests.services.gang_planner.core.inside import state_of
from tests.services.gang_planner.core.invariants import wrong_claims
from tests.services.gang_planner.core.scene import Scene, make_group
from tests.services.gang_planner.core.test_device_requests import (
    ADMIN,
    nic,
    numa,
    request,
    wants,
)
from tests.services.gang_planner.core.test_devices import DRIVER, hosts, members

A = ("team", "a")
HAS = ((DRIVER, "n0", "gpu-0"),)
ODD = request(selectors=(f"device.attributes['{DRIVER}'].numa == 1",))


def with_devices(count: int, nodes: int = 1) -> tuple[Scene, Devices]:
    """Nodes with so many devices each, and the claims a and b."""
    scene = Scene(hosts(nodes))
    scene.put(make_device_class(), *(make_slice(f"n{index}", count) for index in range(nodes)))
    scene.put(make_device_claim("a"), make_device_claim("b"))
    return scene, scene.state.node_capacity.devices


def bound_by_another_scheduler(gang: str, claim: str, node: str = "n0") -> Pod:
    (pod,) = members(gang, [(claim,)])
    return msgspec.structs.replace(pod, node=node, phase="Running")


def device(name: str, node: str = "n0") -> Pick:
    return Pick("r", (DRIVER, node, name))


def chosen(devices: Devices, claim: str) -> list[str]:
    """The names of the devices chosen for a claim."""
    devices.inventory()
    assert devices.grants.contradiction() == ""
    grant = devices.grants.find(("team", claim))
    return [] if grant is None else [one.device[2] for one in grant.picks]


def submit(scene: Scene, gang: str, claim: str) -> list[GangDecision]:
    scene.put(make_group(gang, 1), *members(gang, [(claim,)]))
    return scene.settle()


def test_a_claim_that_was_created_again_gets_devices_of_its_own() -> None:
    scene, devices = with_devices(2)
    scene.put(make_group("g", 1), bound_by_another_scheduler("g", "a"))
    scene.remove(make_device_claim("a"))
    scene.put(msgspec.structs.replace(make_device_claim("a"), uid="again"))
    assert chosen(devices, "a") == []
    scene.put(make_group("h", 1), bound_by_another_scheduler("h", "a"))
    assert chosen(devices, "a") == ["gpu-0"]


def test_devices_of_the_log_for_another_node_are_not_taken_up_and_no_others_are_chosen() -> None:
    scene, devices = with_devices(1, nodes=2)
    devices.grants.pin(A, Grant("n1", "rc-a", (device("gpu-0", "n1"),)))
    scene.put(make_group("g", 1), bound_by_another_scheduler("g", "a", "n0"))
    assert chosen(devices, "a") == []


def test_devices_of_the_log_for_a_claim_that_was_created_again_are_not_taken_up() -> None:
    scene, devices = with_devices(2)
    devices.grants.pin(A, Grant("n0", "of-another-life", (device("gpu-1"),)))
    scene.put(make_group("g", 1), bound_by_another_scheduler("g", "a"))
    assert chosen(devices, "a") == ["gpu-0"]


def test_devices_of_the_log_are_no_other_claims() -> None:
    scene, devices = with_devices(1)
    scene.put(make_group("g", 1), bound_by_another_scheduler("g", "b"))
    devices.grants.pin(A, Grant("n0", "rc-a", (device("gpu-0"),)))
    assert chosen(devices, "b") == []


def test_devices_of_the_log_are_free_where_the_claim_has_others() -> None:
    scene, devices = with_devices(2)
    scene.put(make_device_claim("a", allocated=((DRIVER, "n0", "gpu-1"),)))
    pin = Grant("n0", "rc-a", (device("gpu-0"),))
    devices.grants.pin(A, pin)
    scene.put(make_group("g", 1), bound_by_another_scheduler("g", "a"))
    devices.grants.unpin(A, pin)
    scene.put(make_group("h", 1), bound_by_another_scheduler("h", "b"))
    assert chosen(devices, "b") == ["gpu-0"]


def test_devices_of_a_newer_decision_outlast_the_end_of_an_older_one() -> None:
    scene, devices = with_devices(3)
    newer = (device("gpu-2"),)
    devices.grants.pin(A, Grant("n0", "rc-a", newer))
    devices.grants.unpin(A, Grant("n0", "rc-a", (device("gpu-1"),)))
    scene.put(make_group("g", 1), bound_by_another_scheduler("g", "a"))
    assert chosen(devices, "a") == ["gpu-2"]
    devices.grants.pin(("team", "b"), Grant("n0", "rc-b", (device("gpu-1"),)))
    devices.grants.unpin(("team", "b"), Grant("n0", "rc-b", (device("gpu-1"),)))
    scene.put(make_group("h", 1), bound_by_another_scheduler("h", "b"))
    assert chosen(devices, "b") == ["gpu-0"]


def test_a_device_is_taken_until_the_last_pod_of_its_claim_has_left() -> None:
    scene, _ = with_devices(1)
    scene.put(make_group("g", 2), *members("g", [("a",)] * 2, cpu=1000))
    assert len(scene.settle()) == 1
    first, second = scene.pods_of("g")
    scene.remove(first)
    assert submit(scene, "h", "b") == []
    scene.remove(second)
    assert len(scene.settle()) == 1


def test_a_pod_that_has_arrived_needs_no_devices_after_its_claim_is_released() -> None:
    scene, devices = with_devices(1)
    (first,) = submit(scene, "g", "a")
    # The pod is seen on its node before its claim is seen with the device, and then without it.
    scene.run(first)
    scene.put(make_device_claim("a", allocated=HAS, resource_version=2))
    assert chosen(devices, "a") == []
    scene.put(make_device_claim("a", resource_version=3))
    assert chosen(devices, "a") == []
    scene.change(first.bindings[0].uid, phase="Succeeded")
    assert len(submit(scene, "h", "b")) == 1


@pytest.mark.parametrize("in_use", [True, False])
def test_devices_that_an_undone_preparation_lost_are_chosen_again_for_a_claim_in_use(
    in_use: bool,
) -> None:
    scene, devices = with_devices(1)
    if in_use:
        scene.put(make_group("g", 1), bound_by_another_scheduler("g", "a"))
    scene.put(make_device_claim("a", allocated=HAS, resource_version=2))
    devices.grants.pin(A, Grant("n0", "rc-a", (device("gpu-0"),)))
    if not in_use:
        # The decision's pods are gone.
        devices.grants.unpin(A)
    assert chosen(devices, "a") == []
    scene.put(make_device_claim("a", resource_version=3))
    assert chosen(devices, "a") == (["gpu-0"] if in_use else [])


def test_devices_that_the_log_gives_to_another_claim_are_not_chosen_again() -> None:
    scene, devices = with_devices(1)
    submit(scene, "g", "a")
    scene.put(make_device_claim("a", allocated=HAS, resource_version=2))
    devices.grants.pin(("team", "b"), Grant("n0", "rc-b", (device("gpu-0"),)))
    scene.put(make_device_claim("a", resource_version=3))
    assert chosen(devices, "a") == []


def test_a_node_on_which_devices_are_fixed_by_a_decision_counts_as_changed() -> None:
    """Another claim may have fitted there only because this one could get other devices."""
    scene, _ = with_devices(1)
    scene.put(make_group("g", 2), *members("g", [("a",)]))
    devices = scene.state.node_capacity.devices.copy()
    shape = scene.state.members["g-0"].shape
    devices.take(0, shape)
    assert list(devices.changed_slots()) == [0]
    assert list(devices.changed_slots()) == []
    devices.grants.settle(shape.device_keys)
    assert list(devices.changed_slots()) == [0]


def take(scene: Scene, devices: Devices, *placed: tuple[str, int]) -> None:
    """Pods with these claims come to the nodes in these slots, and no decision fixes that."""
    for claim, slot in placed:
        (pod,) = members(claim, [(claim,)])
        scene.put(pod)
        devices.take(slot, scene.state.members[pod.uid].shape)


def test_claims_exchange_devices_of_one_node_and_those_of_other_nodes_stay() -> None:
    scene, _ = with_devices(1, nodes=2)
    devices = scene.state.node_capacity.devices.copy()
    scene.put(make_slice("n1", 2, details=numa(1, 0), generation=2), wants("odd", ODD))
    take(scene, devices, ("a", 0), ("b", 1))
    assert chosen(devices, "b") == ["gpu-0"]
    take(scene, devices, ("odd", 1))
    assert (chosen(devices, "b"), chosen(devices, "odd")) == (["gpu-1"], ["gpu-0"])
    grant = devices.grants.find(A)
    assert grant is not None
    assert grant.node == "n0"


def test_claims_of_a_pod_that_another_scheduler_bound_all_get_devices() -> None:
    scene, devices = with_devices(0)
    scene.put(make_slice("n0", 2, details=numa(1, 0), generation=2), wants("odd", ODD))
    (pod,) = members("g", [("a", "odd")])
    scene.put(make_group("g", 1), msgspec.structs.replace(pod, node="n0", phase="Running"))
    assert (chosen(devices, "a"), chosen(devices, "odd")) == (["gpu-1"], ["gpu-0"])


def test_a_claim_that_pods_may_use_on_other_nodes_keeps_its_devices() -> None:
    scene, _ = with_devices(0)
    devices = scene.state.node_capacity.devices.copy()
    scene.put(make_slice("net", 0, names=("net-0",), node="", all_nodes=True, details=numa(1)))
    take(scene, devices, ("a", 0))
    scene.put(make_slice("n0", 1, details=numa(0), generation=2), wants("odd", ODD))
    take(scene, devices, ("odd", 0))
    assert (chosen(devices, "a"), chosen(devices, "odd")) == (["net-0"], [])


def test_what_claims_use_is_compared_with_pods_and_reservations() -> None:
    scene, _ = with_devices(1)
    scene.put(make_class(), make_volume("v", "n0"), make_claim("data"))
    (with_volume,) = claims.members("v", [("data",)])
    with_device = bound_by_another_scheduler("g", "a")
    state = scene.state
    for pod in (msgspec.structs.replace(with_volume, node="n0", phase="Running"), with_device):
        scene.put(pod)
        assert "are in use" in wrong_claims(state.node_capacity, [])
        shape = state.members[pod.uid].shape
        assert wrong_claims(state.node_capacity, [(0, shape)]) == ""
        scene.remove(pod)


def test_the_bound_for_a_decision_covers_the_names_of_its_devices() -> None:
    scene = Scene(hosts(1))
    names = tuple(f"{index:0200}" for index in range(20))
    scene.put(make_device_class(), make_slice("n0", 0, names=names), make_device_claim("a", 20))
    (decision,) = submit(scene, "g", "a")
    state = scene.state
    (bound,) = choice_bytes(state.node_capacity, [state.members["g-0"]], len("n0"))
    assert len(msgspec.msgpack.encode(decision.devices)) <= bound


def read_by_another(scene: Scene, objects: list[Any]) -> Scene:
    """A planner that has read the scene's last decision, and its objects but for its pods."""
    ((_, decision),) = scene.decisions
    follower = Scene(hosts(1))
    follower.put(*objects)
    claim_choices.recall(state_of(follower.planner).node_capacity, decision)
    return follower


def test_devices_of_the_log_with_administrative_access_are_taken_from_no_claim() -> None:
    objects: list[Any] = [
        Namespace(uid="ns", name="team", resource_version=1, labels=(ADMIN,)),
        make_device_class(),
        make_slice("n0", 1),
        wants("a", request(admin_access=True)),
        wants("b"),
    ]
    scene = Scene(hosts(1))
    scene.put(*objects)
    assert submit(scene, "g", "a")
    assert len(submit(read_by_another(scene, objects), "h", "b")) == 1


@pytest.mark.parametrize(("wanted", "decisions"), [("4", 1), ("6", 0)])
def test_a_part_of_a_device_in_the_log_takes_its_amount_only(wanted: str, decisions: int) -> None:
    objects: list[Any] = [
        make_device_class(),
        make_slice("n0", 1, details=nic("gpu-0")),
        wants("a", request(capacity=(("bandwidth", "6"),))),
        wants("b", request(capacity=(("bandwidth", wanted),))),
    ]
    scene = Scene(hosts(1))
    scene.put(*objects)
    assert submit(scene, "g", "a")
    assert len(submit(read_by_another(scene, objects), "h", "b")) == decisions


def test_a_part_of_a_device_that_a_copy_takes_is_free_in_its_original() -> None:
    scene, devices = with_devices(0)
    scene.put(make_slice("n0", 1, details=nic("gpu-0"), generation=2))
    part = device("gpu-0")._replace(consumed=(("bandwidth", Fraction(4)),))
    devices.grants.pin(A, Grant("n0", "rc-a", (part,)))
    devices.copy().grants.pin(("team", "b"), Grant("n0", "rc-b", (part,)))
    assert devices.grants.contradiction() == ""


def test_devices_of_the_log_are_kept_for_the_pod_that_is_gone_and_for_no_other() -> None:
    scene, _ = with_devices(2)
    scene.put(make_group("g", 2), *members("g", [("a",), ("b",)]))
    (decision,) = scene.settle()
    follower, devices = with_devices(2)
    state = state_of(follower.planner)
    claim_choices.recall(state.node_capacity, decision)
    claim_choices.keep(state.node_capacity, decision, "g-0")
    claim_choices.forget(state.node_capacity, decision)
    assert (len(chosen(devices, "a")), chosen(devices, "b")) == (1, [])


def test_devices_of_the_log_that_no_pod_takes_up_become_free() -> None:
    scene, _ = with_devices(1)
    (decision,) = submit(scene, "g", "a")
    assert decision.devices
    follower, _ = with_devices(1)
    claim_choices.recall(state_of(follower.planner).node_capacity, decision)
    claim_choices.forget(state_of(follower.planner).node_capacity, decision)
    assert len(submit(follower, "h", "b")) == 1


def test_a_device_that_claims_share_without_amounts_is_named_as_shared() -> None:
    scene = Scene(hosts(1))
    scene.put(make_device_class(), make_device_claim("a"))
    scene.put(make_slice("n0", 1, details=(DeviceDetails(shareable=True),)))
    (decision,) = submit(scene, "g", "a")
    assert [one.shares[0].index for one in decision.devices] == [0]
