"""Gangs whose members have ResourceClaims: whole devices, each for one claim."""

from collections.abc import Iterable

import msgspec
import pytest

from services.gang_planner.core.constraints.filters import dynamic_resources
from services.gang_planner.core.state.devices.demand import DeviceDemand, Pick
from services.gang_planner.core.state.devices.grants import Grant
from services.gang_planner.core.state.devices.ledger import Devices
from services.gang_planner.core.state.devices.shortage import shortage
from shared.contracts.decisions import DeviceChoice, GangDecision
from shared.model.devices import DeviceRequest, ResourceClaim
from shared.model.objects import Node, Pod
from shared.model.terms import Requirement, SelectorTerm
from tests.services.gang_planner.core.claims import make_device_claim, make_device_class, make_slice
from tests.services.gang_planner.core.inside import state_of
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

DRIVER = "gpu.example.com"


def hosts(count: int) -> list[Node]:
    return [make_node(f"n{index}") for index in range(count)]


def members(gang: str, claims: Iterable[tuple[str, ...]], **requests: int) -> list[Pod]:
    """One pod per entry, each with these claims."""
    pods: list[Pod] = []
    for index, names in enumerate(claims):
        shape = make_shape(requests, device_claims=names, namespace="team")
        (pod,) = make_pods(gang, 1, shape)
        name = f"{gang}-{index}"
        pods.append(msgspec.structs.replace(pod, uid=name, name=name, index=index))
    return pods


def condition(scene: Scene, gang: str) -> tuple[str, str]:
    scene.step(after_ms=3000)
    why = scene.verdicts[f"group-{gang}"].why
    assert why is not None
    return why.reason, why.sentence


def test_every_member_gets_devices_of_its_own_or_none_does() -> None:
    scene = Scene(hosts(2))
    scene.put(make_device_class(), make_slice("n0", 3), make_group("g", 3))
    scene.put(*(make_device_claim(f"c{index}", 2) for index in range(3)))
    scene.put(*members("g", [("c0",), ("c1",), ("c2",)]))
    assert not scene.settle()
    reason, sentence = condition(scene, "g")
    assert reason == "NotEnoughResources"
    assert f"2 {dynamic_resources.TOO_FEW}" in sentence
    scene.put(make_slice("n1", 4))
    (decision,) = scene.settle()
    nodes = {one.uid: one.node for one in decision.bindings}
    assert sorted(nodes.values()) == ["n0", "n1", "n1"]
    devices = [device[1:] for one in decision.devices for device in one.devices]
    assert len(set(devices)) == len(devices) == 6
    for one in decision.devices:
        assert one.node == nodes[one.pod_uid]
        assert {(request, driver, pool) for request, driver, pool, _ in one.devices} == {
            ("r", DRIVER, one.node)
        }


def test_of_many_nodes_only_some_are_searched_to_say_what_a_claim_lacks_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searched: list[int] = []

    def counted(devices: Devices, demand: DeviceDemand, slot: int) -> str:
        searched.append(slot)
        return shortage(devices, demand, slot)

    monkeypatch.setattr(dynamic_resources, "shortage", counted)
    nodes = dynamic_resources.EXPLAINED_MAX + 8
    scene = Scene(hosts(nodes))
    scene.put(make_device_class(), *(make_slice(f"n{index}", 1) for index in range(nodes)))
    scene.put(make_group("g", 1), make_device_claim("c", 2), *members("g", [("c",)]))
    _, sentence = condition(scene, "g")
    assert f"{dynamic_resources.EXPLAINED_MAX} {dynamic_resources.TOO_FEW} (request" in sentence
    assert f"8 {dynamic_resources.TOO_FEW};" in f"{sentence};".replace(",", ";")
    assert len(searched) == dynamic_resources.EXPLAINED_MAX


def test_devices_that_claims_have_in_the_cluster_are_taken() -> None:
    scene = Scene(hosts(1))
    theirs = ((DRIVER, "n0", "gpu-0"),)
    scene.put(make_device_class(), make_slice("n0", 2))
    scene.put(make_device_claim("x", allocated=theirs, reserved_for=("foreign",)))
    scene.put(make_device_claim("c"), make_group("g", 1), *members("g", [("c",)]))
    (decision,) = scene.settle()
    assert [one.devices for one in decision.devices] == [(("r", DRIVER, "n0", "gpu-1"),)]
    scene.put(make_device_claim("d"), make_group("h", 1), *members("h", [("d",)]))
    assert not scene.settle()
    # The claim is deallocated: its device is free again.
    scene.remove(make_device_claim("x"))
    (decision,) = scene.settle()
    assert [one.devices for one in decision.devices] == [(("r", DRIVER, "n0", "gpu-0"),)]


def test_a_claim_that_has_devices_is_reserved_for_further_pods_where_they_can_be_used() -> None:
    scene = Scene(hosts(3))
    scene.put(make_device_class())
    there = Requirement(key="metadata.name", operator="In", values=("n1",))
    claim = make_device_claim(
        "c",
        allocated=((DRIVER, "n1", "gpu-0"),),
        node_affinity=(SelectorTerm(fields=(there,)),),
        reserved_for=("g-1",),
    )
    scene.put(claim, make_group("g", 3), *members("g", [("c",)] * 3, cpu=1000))
    (decision,) = scene.settle()
    assert {one.node for one in decision.bindings} == {"n1"}
    # Also for g-1: an undo that is not seen yet may have taken its reservation back.
    assert {one.pod_uid for one in decision.devices} == {"g-0", "g-1", "g-2"}
    assert not any(one.devices for one in decision.devices)


def test_logged_devices_are_kept_for_a_pod_that_is_bound_before_its_claim_is_seen_with_them() -> (
    None
):
    """A planner that takes over sees the pod on its node, and the claim as it was before."""
    scene = Scene(hosts(1))
    scene.put(make_device_class(), make_slice("n0", 2))
    scene.put(*(make_device_claim(name) for name in "abc"))
    (bound,) = members("g", [("a",)])
    scene.put(make_group("g", 1), msgspec.structs.replace(bound, node="n0", phase="Running"))
    devices = scene.state.node_capacity.devices
    devices.grants.pin(("team", "a"), Grant("n0", "rc-a", (Pick("r", (DRIVER, "n0", "gpu-1")),)))
    devices.grants.unpin(("team", "a"))  # no pod takes it up any more
    assert devices.grants.contradiction() == ""

    scene.put(make_group("h", 1), *members("h", [("b",)]))
    (decision,) = scene.settle()
    assert [one.devices for one in decision.devices] == [(("r", DRIVER, "n0", "gpu-0"),)]
    scene.put(make_group("i", 1), *members("i", [("c",)]))
    assert scene.settle() == []


@pytest.mark.parametrize("allocated", [False, True])
def test_devices_of_a_decision_are_kept_until_the_claim_of_a_pod_that_is_gone_is_known(
    allocated: bool,
) -> None:
    """Found by the simulation (seed 1135 with all features of devices): the binder had allocated
    the devices, and the watch of claims was later than that of pods.
    """
    scene = Scene(hosts(1))
    scene.put(make_device_class(), make_slice("n0", 1), *map(make_device_claim, "cd"))
    scene.put(make_group("g", 1), *members("g", [("c",)]))
    scene.settle()
    (pod,) = scene.pods_of("g")
    scene.remove(pod)
    # Of its deletion.
    version = pod.resource_version + 1
    scene.put(make_group("h", 1), *members("h", [("d",)]))
    scene.claims_known_up_to = version - 1
    assert scene.settle() == []
    if allocated:
        scene.put(make_device_claim("c", allocated=((DRIVER, "n0", "gpu-0"),)))
    scene.claims_known_up_to = version
    # Otherwise the claim has not got them.
    assert len(scene.settle()) == (not allocated)
    if allocated:
        scene.remove(make_device_claim("c"))
        assert len(scene.settle()) == 1


@pytest.mark.parametrize("allocated", [False, True])
def test_a_planner_that_takes_over_keeps_devices_for_a_pod_that_is_gone_until_its_claim_is_known(
    allocated: bool,
) -> None:
    scene = Scene(hosts(1))
    scene.put(make_device_class(), make_slice("n0", 1), make_device_claim("c"))
    scene.put(make_group("g", 1), *members("g", [("c",)]))
    scene.settle()
    seq, decision = scene.decisions[0]
    follower = Scene(hosts(1))
    follower.put(make_device_class(), make_slice("n0", 1), *map(make_device_claim, "cd"))
    follower.cluster_seq = max(follower.cluster_seq, decision.cycle.cluster_seq)
    follower.pods_known_up_to, follower.claims_known_up_to = 7, 6
    follower.heartbeat()
    follower.planner.apply_decision(seq, decision)
    follower.decision_seq = seq
    follower.put(make_group("h", 1), *members("h", [("d",)]))
    assert follower.settle() == []
    # Its deletion is not later than what is known of pods when it is missed.
    follower.pods_known_up_to = 8
    assert follower.settle() == []
    if allocated:
        follower.put(make_device_claim("c", allocated=((DRIVER, "n0", "gpu-0"),)))
    follower.claims_known_up_to = 7
    # Otherwise the claim has not got them.
    assert len(follower.settle()) == (not allocated)
    assert state_of(follower.planner).node_capacity.devices.grants.contradiction() == ""


def test_a_planner_that_takes_over_keeps_logged_devices_of_a_class_that_is_gone() -> None:
    scene = Scene(hosts(1))
    scene.put(make_device_class(), make_slice("n0", 1), make_device_claim("c"))
    scene.put(make_group("g", 1), *members("g", [("c",)]))
    scene.settle()
    seq, decision = scene.decisions[0]
    follower = Scene(hosts(1))
    other = DeviceRequest(name="r", device_class="other")
    follower.put(make_device_class("other"), make_slice("n0", 1), make_device_claim("c"))
    follower.put(make_group("g", 1), *members("g", [("c",)]))
    follower.planner.apply_decision(seq, decision)
    follower.decision_seq = seq
    follower.put(make_device_claim("d", requests=(other,)))
    follower.put(make_group("h", 1), *members("h", [("d",)]))
    assert follower.settle() == []


def test_a_claim_whose_devices_came_and_went_while_nothing_read_it_gets_devices_again() -> None:
    """Its pods were bound and deleted, and its devices allocated and released, before the planner
    placed another pod with a claim. The claim may use the device of another node then.
    """
    scene = Scene(hosts(2))
    scene.put(make_device_class(), make_slice("n0", 1), make_slice("n1", 1), make_device_claim("c"))
    scene.put(make_group("g", 1), *members("g", [("c",)]))
    (decision,) = scene.settle()
    ((_, _, node, _),) = decision.devices[0].devices
    (pod,) = scene.pods_of("g")
    scene.bind(decision)
    scene.outcome(decision)
    triple = (DRIVER, node, "gpu-0")
    claim = make_device_claim("c", allocated=(triple,), reserved_for=(pod.uid,), resource_version=2)
    scene.put(claim, make_device_claim("c", resource_version=3))
    scene.remove(*scene.pods_of("g"))
    scene.remove(make_node(node))

    scene.put(make_group("h", 1), *members("h", [("c",)]))
    (again,) = scene.settle()
    assert {binding.node for binding in again.bindings} == {"n0", "n1"} - {node}


def test_members_with_one_claim_share_its_devices_on_one_node() -> None:
    scene = Scene(hosts(3))
    scene.put(make_device_class(), make_slice("n1", 1), make_slice("n2", 1))
    scene.put(make_device_claim("c"), make_group("g", 3))
    scene.put(*members("g", [("c",)] * 3, cpu=1000))
    (decision,) = scene.settle()
    assert len({one.node for one in decision.bindings}) == 1
    assert len({one.devices for one in decision.devices}) == 1
    assert len(decision.devices) == 3


@pytest.mark.parametrize("cpus", [(1, 4), (4, 1)])
def test_the_devices_of_a_shared_claim_are_on_a_node_with_room_for_all_its_pods(
    cpus: tuple[int, int],
) -> None:
    nodes = [
        make_node(f"n{index}", {"cpu": 1000 * count, "memory": 8 << 30, "pods": 110})
        for index, count in enumerate(cpus)
    ]
    scene = Scene(nodes)
    scene.put(make_device_class(), make_slice("n0", 1), make_slice("n1", 1))
    scene.put(make_device_claim("c"), make_group("g", 3))
    scene.put(*members("g", [("c",)] * 3, cpu=1000))
    (decision,) = scene.settle()
    assert {one.node for one in decision.bindings} == {f"n{cpus.index(4)}"}


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    scene = Scene(hosts(1))
    scene.put(make_device_class(), make_slice("n0", 4))
    scene.put(make_slice("n0", 0, generation=2, names=("gpu-9",)))
    scene.put(make_device_claim("c"), make_group("g", 1), *members("g", [("c",)]))
    (decision,) = scene.settle()
    assert [one.devices for one in decision.devices] == [(("r", DRIVER, "n0", "gpu-9"),)]


def test_a_pool_is_given_out_only_when_all_of_its_slices_are_there() -> None:
    scene = Scene(hosts(1))
    scene.put(make_device_class(), make_slice("n0", 1, pool_slices=2))
    scene.put(make_device_claim("c"), make_group("g", 1), *members("g", [("c",)]))
    assert scene.settle() == []
    second = make_slice("n0", 0, pool_slices=2, names=("gpu-1",))
    scene.put(msgspec.structs.replace(second, uid="slice-2", name="slice-2"))
    (decision,) = scene.settle()
    assert [one.devices for one in decision.devices] == [(("r", DRIVER, "n0", "gpu-0"),)]


def test_a_pool_that_names_a_device_twice_is_not_given_out() -> None:
    scene = Scene(hosts(1))
    scene.put(make_device_class(), make_slice("n0", 1))
    twice = make_slice("n0", 1)
    scene.put(msgspec.structs.replace(twice, uid="slice-2", name="slice-2"))
    scene.put(make_device_claim("c"), make_group("g", 1), *members("g", [("c",)]))
    assert scene.settle() == []


@pytest.mark.parametrize(
    ("name", "claim", "reason", "text"),
    [
        ("?c", None, "NotEnoughResources", "waiting for the ResourceClaim of c"),
        ("c", None, "NotEnoughResources", 'resourceclaim "c" not found'),
        (
            "c",
            make_device_claim("c", unsupported=("spec.devices.constraints",)),
            "UnsupportedDevice",
            "spec.devices.constraints",
        ),
        (
            "c",
            make_device_claim("c", deleting=True),
            "NotEnoughResources",
            'resourceclaim "c" is being deleted',
        ),
    ],
    ids=["no claim made of its template", "missing", "not whole devices of a class", "deleting"],
)
def test_a_claim_that_cannot_be_served_is_waited_for(
    name: str, claim: ResourceClaim | None, reason: str, text: str
) -> None:
    scene = Scene(hosts(1))
    scene.put(make_device_class(), make_slice("n0", 1), make_group("g", 1))
    if claim is not None:
        scene.put(claim)
    scene.put(*members("g", [(name,)]))
    assert not scene.settle()
    found, sentence = condition(scene, "g")
    assert found == reason
    assert text in sentence


def test_a_class_that_selects_by_attributes_is_not_served_by_count() -> None:
    scene = Scene(hosts(1))
    scene.put(make_device_class(driver=""), make_slice("n0", 1), make_group("g", 1))
    scene.put(make_device_claim("c"), *members("g", [("c",)]))
    assert not scene.settle()
    assert condition(scene, "g")[0] == "UnsupportedDevice"


def test_what_a_logged_decision_chose_is_chosen_again_by_the_next_planner() -> None:
    scene = Scene(hosts(1))
    scene.put(make_device_class(), make_slice("n0", 2), make_device_claim("c"))
    scene.put(make_group("g", 1), *members("g", [("c",)]))
    scene.settle()
    seq, decision = scene.decisions[0]
    assert [one.devices[0][3] for one in decision.devices] == ["gpu-0"]
    other = DeviceChoice(
        pod_uid="g-0",
        namespace="team",
        claim="c",
        claim_uid="rc-c",
        node="n0",
        devices=(("r", DRIVER, "n0", "gpu-1"),),
    )
    follower = Scene(hosts(1))
    follower.put(make_device_class(), make_slice("n0", 2), make_device_claim("c"))
    follower.planner.apply_decision(seq, msgspec.structs.replace(decision, devices=(other,)))
    follower.put(make_group("g", 1), *members("g", [("c",)]))
    follower.put(make_device_claim("d"), make_group("h", 1), *members("h", [("d",)]))
    follower.decision_seq = seq
    (second,) = follower.settle()
    assert [one.devices[0][3] for one in second.devices] == ["gpu-0"]


def test_devices_given_back_with_their_pod_are_free_for_others() -> None:
    scene = Scene(hosts(1))
    scene.put(make_device_class(), make_slice("n0", 1))
    for gang in ("g", "h"):
        scene.put(make_device_claim(gang), make_group(gang, 1), *members(gang, [(gang,)]))
    (first,) = scene.settle()
    scene.outcome(first, {first.bindings[0].uid: "gone"})
    scene.remove(scene.pods[first.bindings[0].uid])
    (second,) = scene.settle()
    assert second.devices[0].devices == first.devices[0].devices


def ended_right_after_its_binding() -> tuple[Scene, GangDecision]:
    """One node with one device, whose pod is gone before its claim `a` is seen with the device."""
    scene = Scene(hosts(1))
    scene.claims_known_up_to = 0
    scene.put(make_device_class(), make_slice("n0", 1), make_device_claim("a"))
    scene.put(make_group("g", 1), *members("g", [("a",)]))
    (first,) = scene.settle()
    scene.bind(first)
    scene.outcome(first)
    scene.remove(scene.pods[first.bindings[0].uid])
    return scene, first


def test_devices_of_a_bound_pod_that_ends_before_its_claim_is_seen_with_them_stay_taken() -> None:
    """CLUSTER shows the pod's end before the binder's write to its claim."""
    scene, first = ended_right_after_its_binding()
    scene.put(make_device_claim("b"), make_group("h", 1), *members("h", [("b",)]))
    assert scene.settle() == []
    # An older write to the claim arrives, then the one that allocated the device.
    scene.put(make_device_claim("a", resource_version=8))
    assert scene.settle() == []
    has = ((DRIVER, "n0", "gpu-0"),)
    scene.put(make_device_claim("a", allocated=has, resource_version=9))
    assert scene.settle() == []
    scene.remove(make_device_claim("a", resource_version=9))
    (second,) = scene.settle()
    assert second.devices[0].devices == first.devices[0].devices
    assert scene.state.node_capacity.devices.grants.contradiction() == ""


def test_devices_of_a_bound_pod_that_ends_with_its_claim_are_free() -> None:
    scene, first = ended_right_after_its_binding()
    scene.remove(make_device_claim("a"))
    scene.put(make_device_claim("b"), make_group("h", 1), *members("h", [("b",)]))
    (second,) = scene.settle()
    assert second.devices[0].devices == first.devices[0].devices


def undone(scene: Scene, claim: str, *, observed: bool) -> None:
    """CLUSTER shows that a binder has given its device to the claim, and has undone that."""
    has = ((DRIVER, "n0", "gpu-0"),)
    scene.put(make_device_claim(claim, allocated=has, resource_version=2))
    if observed:
        assert scene.settle() == []
    scene.put(make_device_claim(claim, resource_version=3))


@pytest.mark.parametrize("observed", [True, False])
def test_devices_of_an_undone_preparation_stay_taken_until_the_outcome(observed: bool) -> None:
    """The binder may be killed before it publishes one, and the next one would prepare the claim
    again. Found by the simulation, seed 1011 with all features of devices.
    """
    scene = Scene(hosts(1))
    scene.put(make_device_class(), make_slice("n0", 1), make_device_claim("a"))
    scene.put(make_group("g", 1), *members("g", [("a",)]))
    (first,) = scene.settle()
    undone(scene, "a", observed=observed)
    scene.put(make_device_claim("b"), make_group("h", 1), *members("h", [("b",)]))
    assert scene.settle() == []
    assert scene.state.node_capacity.devices.grants.contradiction() == ""
    scene.outcome(first, {first.bindings[0].uid: "gone"})
    scene.remove(scene.pods[first.bindings[0].uid])
    (second,) = scene.settle()
    assert [one.devices[0][3] for one in second.devices] == ["gpu-0"]


@pytest.mark.parametrize("shown", [True, False])
def test_a_planner_that_takes_over_keeps_devices_of_an_undone_preparation(shown: bool) -> None:
    scene = Scene(hosts(1))
    scene.put(make_device_class(), make_slice("n0", 1), make_device_claim("a"))
    scene.put(make_group("g", 1), *members("g", [("a",)]))
    scene.settle()
    seq, decision = scene.decisions[0]
    has = ((DRIVER, "n0", "gpu-0"),)
    follower = Scene(hosts(1))
    follower.put(make_device_class(), make_slice("n0", 1))
    # The claim has its device when the planner reads the decision.
    follower.put(make_device_claim("a", allocated=has, resource_version=2))
    follower.put(make_group("g", 1), *members("g", [("a",)]))
    follower.planner.apply_decision(seq, decision)
    follower.decision_seq = seq
    if shown:
        assert follower.settle() == []
    follower.put(make_device_claim("a", resource_version=3))
    follower.put(make_device_claim("b"), make_group("h", 1), *members("h", [("b",)]))
    assert follower.settle() == []
    assert state_of(follower.planner).node_capacity.devices.grants.contradiction() == ""


def test_devices_of_an_undone_preparation_are_free_once_the_pod_has_arrived_and_ended() -> None:
    """A claim of a user's own stays without devices: nothing is kept for it."""
    scene = Scene(hosts(1))
    scene.put(make_device_class(), make_slice("n0", 1), make_device_claim("a"))
    scene.put(make_group("g", 1), *members("g", [("a",)]))
    (first,) = scene.settle()
    has = ((DRIVER, "n0", "gpu-0"),)
    scene.put(make_device_claim("a", allocated=has, resource_version=2))
    scene.settle()
    scene.run(first)
    scene.settle()
    # The controller of claims has released it, before CLUSTER shows the end of the pod.
    scene.put(make_device_claim("a", resource_version=3))
    scene.settle()
    scene.change(first.bindings[0].uid, phase="Succeeded")
    scene.put(make_device_claim("b"), make_group("h", 1), *members("h", [("b",)]))
    (second,) = scene.settle()
    assert [one.devices[0][3] for one in second.devices] == ["gpu-0"]


def test_a_planner_that_takes_over_has_the_devices_of_the_newest_of_two_decisions() -> None:
    """It reads two decisions for one pod before it reads the outcome of the first, which chose
    another node. Found by the simulation, seed 1032 with all features of devices.
    """
    scene = Scene(hosts(1))
    scene.put(make_device_class(), make_slice("n0", 1), make_device_claim("a"))
    scene.put(make_group("g", 1), *members("g", [("a",)]))
    (first,) = scene.settle()
    scene.outcome(first, {first.bindings[0].uid: "unprepared"})
    scene.remove(make_slice("n0", 1))
    scene.put(*hosts(2)[1:], make_slice("n1", 1))
    while len(scene.decisions) < 2:
        assert scene.wakeup_ms is not None
        scene.step(after_ms=max(scene.wakeup_ms - scene.now_ms, 0))
    second = scene.decisions[1][1]
    assert second.devices[0].devices == (("r", DRIVER, "n1", "gpu-0"),)

    # The second one's node was deleted, and comes back.
    follower = Scene(hosts(1))
    follower.put(make_device_class(), make_device_claim("a"))
    for seq, decision in scene.decisions:
        follower.planner.apply_decision(seq, decision)
        follower.decision_seq = seq
    follower.put(make_group("g", 1), *members("g", [("a",)]))
    follower.put(*hosts(2)[1:], make_slice("n1", 1))
    follower.put(make_device_claim("b"), make_group("h", 1), *members("h", [("b",)]))
    assert follower.settle() == []
    assert state_of(follower.planner).node_capacity.devices.grants.contradiction() == ""


def test_a_decision_is_resolved_when_its_pods_are_seen_with_their_claims() -> None:
    """The decision is read before the record by which the pod names its claim. Found by the
    simulation, seed 37.
    """
    scene = Scene(hosts(1))
    scene.put(make_device_class(), make_slice("n0", 1), make_device_claim("a"))
    (pod,) = members("g", [("a",)])
    scene.put(make_group("g", 1), pod)
    scene.settle()
    seq, decision = scene.decisions[0]
    follower = Scene(hosts(1))
    follower.put(make_device_class(), make_slice("n0", 1), make_device_claim("a"))
    (early,) = make_pods("g", 1, make_shape(namespace="team"))
    follower.put(make_group("g", 1), msgspec.structs.replace(early, uid=pod.uid, name=pod.name))
    later = msgspec.structs.replace(decision.cycle, cluster_seq=follower.cluster_seq + 1)
    follower.planner.apply_decision(seq, msgspec.structs.replace(decision, cycle=later))
    follower.decision_seq = seq
    follower.put(msgspec.structs.replace(pod, resource_version=2))
    follower.put(make_device_claim("b"), make_group("h", 1), *members("h", [("b",)]))
    assert follower.settle() == []
    assert state_of(follower.planner).node_capacity.devices.grants.contradiction() == ""
