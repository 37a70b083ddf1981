"""Pods that request an extended resource which some nodes have from a device plugin, and others as
devices of a DeviceClass.
"""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.gang_planner.core.state.devices.extended import ClassesOfResources, claim_name
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.contracts.cluster import Synced
from shared.contracts.decisions import DeviceChoice, GangDecision
from shared.contracts.questions import FitAnswer, FitRequest
from shared.kube.resources import RESOURCE_CLAIMS
from shared.model.devices import DeviceClass, DeviceDetails, DeviceRequest, ResourceClaim
from shared.model.objects import ContainerDevices, Node, Pod, Queue
from shared.model.terms import Requirement, SelectorTerm
from tests.services.gang_planner.core.claims import (
    assert_counts_are_current,
    make_device_claim,
    make_device_class,
    make_slice,
)
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.services.gang_planner.core.test_devices import condition

DRIVER = "gpu.example.com"
#: The resource that every class has.
OF_CLASS = "deviceclass.resource.kubernetes.io/gpu"
NIC = "example.com/nic"


def gpu_class(**fields: Any) -> DeviceClass:
    return msgspec.structs.replace(make_device_class(), extended_resource=GPU, **fields)


def plain(name: str, **amounts: int) -> Node:
    """A node with 4 CPUs, and GPUs only if it has a device plugin."""
    allocatable = {"cpu": 4000, "pods": 110, GPU: amounts.get("gpus", 0)}
    if "nics" in amounts:
        allocatable[NIC] = amounts["nics"]
    return make_node(name, allocatable)


def requesting(**amounts: int) -> tuple[ContainerDevices, ...]:
    """One container that requests these amounts of resources, by their names in `_`."""
    names = {"gpu": GPU, "of_class": OF_CLASS, "nic": NIC}
    found = [(names[name], number) for name, number in amounts.items()]
    requests = tuple((name, index, number) for index, (name, number) in enumerate(sorted(found)))
    return (ContainerDevices(container="train", index=0, requests=requests),)


def members(gang: str, count: int, **amounts: int) -> list[Pod]:
    devices = requesting(**(amounts or {"gpu": 1}))
    requests = {name: number for name, _, number in devices[0].requests}
    return make_pods(gang, count, make_shape(requests), extended=devices)


def submit(scene: Scene, gang: str, count: int = 1, **amounts: int) -> GangDecision | None:
    """Place a gang of pods with one container; None: it waits."""
    scene.put(make_group(gang, count), *members(gang, count, **amounts))
    decisions = scene.settle()
    assert scene.state.node_capacity.devices.grants.contradiction() == ""
    return decisions[0] if decisions else None


def placed(scene: Scene, gang: str, count: int = 1, **amounts: int) -> GangDecision:
    found = submit(scene, gang, count, **amounts)
    assert found is not None
    return found


def devices(decision: GangDecision) -> dict[str, list[str]]:
    """The names of the devices by pod."""
    return {one.pod_uid: [name for *_, name in one.devices] for one in decision.devices}


def claim_of(choice: DeviceChoice, *, allocated: bool = True) -> ResourceClaim:
    """The claim that a binder makes of a choice."""
    assert choice.extended is not None
    there = Requirement(key="metadata.name", operator="In", values=(choice.node,))
    return ResourceClaim(
        uid=f"uid-{choice.claim}",
        namespace=choice.namespace,
        name=choice.claim,
        resource_version=5,
        requests=tuple(
            DeviceRequest(name=name, device_class=of, count=count)
            for name, of, count in choice.extended.requests
        ),
        has_allocation=allocated,
        allocated=tuple(device[1:] for device in choice.devices) if allocated else (),
        node_affinity=(SelectorTerm(fields=(there,)),) if allocated else None,
        reserved_for=(choice.pod_uid,) if allocated else (),
        owner_uid=choice.pod_uid,
        extended=True,
    )


class TestPlacement:
    def test_each_member_gets_a_claim_of_its_own_with_devices_of_its_node(self) -> None:
        scene = Scene([plain("n0"), plain("n1")])
        scene.put(gpu_class(configured=True), make_slice("n0", 2), make_slice("n1", 2))
        decision = placed(scene, "g", 2, gpu=2)
        nodes = {one.uid: one.node for one in decision.bindings}
        assert sorted(nodes.values()) == ["n0", "n1"]
        assert devices(decision) == {uid: ["gpu-0", "gpu-1"] for uid in nodes}
        first, second = decision.devices
        assert first.claim != second.claim
        assert first.claim.startswith("g-worker-0-extended-resources-")
        assert (first.claim_uid, first.node, first.classes) == ("", nodes[first.pod_uid], ("gpu",))
        assert first.extended is not None
        assert first.extended.requests == (("container-0-request-0", "gpu", 2),)
        assert first.extended.mappings == (("train", GPU, "container-0-request-0"),)

    def test_nodes_with_a_device_plugin_serve_the_same_gang_without_devices(self) -> None:
        scene = Scene([plain("n0", gpus=1), plain("n1")])
        scene.put(gpu_class(), make_slice("n1", 2))
        decision = placed(scene, "g", 3)
        nodes = {one.uid: one.node for one in decision.bindings}
        assert sorted(nodes.values()) == ["n0", "n1", "n1"]
        assert devices(decision).keys() == {uid for uid, node in nodes.items() if node == "n1"}
        names = [name for found in devices(decision).values() for name in found]
        assert sorted(names) == ["gpu-0", "gpu-1"]

    def test_the_plugin_of_a_node_counts_even_if_its_devices_are_published_too(self) -> None:
        scene = Scene([plain("n0", gpus=1)])
        scene.put(gpu_class(), make_slice("n0", 4))
        assert placed(scene, "g").devices == ()
        assert submit(scene, "h") is None

    def test_a_gang_that_does_not_fit_whole_gets_nothing_and_nodes_with_neither_are_named(
        self,
    ) -> None:
        scene = Scene([plain("n0", gpus=1), plain("n1"), plain("n2")])
        scene.put(gpu_class(), make_slice("n1", 1))
        assert submit(scene, "g", 3) is None
        reason, sentence = condition(scene, "g")
        assert reason == "NotEnoughResources"
        assert sentence.startswith("2 of 3 pods fit; 1 more nvidia.com/gpu needed")
        assert f"2 Insufficient {GPU}" in sentence
        assert f"1 Insufficient {GPU} (no device plugin, and no device of class gpu)" in sentence
        assert placed(scene, "h", 2).devices

    def test_devices_that_ordinary_claims_have_are_named_as_missing(self) -> None:
        scene = Scene([plain("n0")])
        theirs = ((DRIVER, "n0", "gpu-0"),)
        scene.put(gpu_class(), make_slice("n0", 1))
        scene.put(make_device_claim("x", allocated=theirs, reserved_for=("foreign",)))
        assert submit(scene, "g") is None
        words = f"cannot allocate all claims ({GPU}: too few free devices match"
        assert words in condition(scene, "g")[1]

    def test_every_class_has_a_resource_of_its_own(self) -> None:
        scene = Scene([plain("n0")])
        scene.put(make_device_class(), make_slice("n0", 1))
        decision = placed(scene, "g", of_class=1)
        assert list(devices(decision).values()) == [["gpu-0"]]
        assert submit(scene, "h", gpu=1) is None

    def test_the_newest_class_serves_a_resource_that_several_have(self) -> None:
        old, new = gpu_class(), gpu_class(uid="dc-2", name="new", created_ms=9, driver="new")
        scene = Scene([plain("n0"), plain("n1")])
        scene.put(new, old, make_slice("n0", 1), make_slice("n1", 1, driver="new"))
        assert placed(scene, "g").bindings[0].node == "n1"

    def test_each_resource_of_a_pod_comes_from_a_plugin_or_from_devices(self) -> None:
        """One request of the claim is void on the node whose plugin has that resource."""
        scene = Scene([plain("n0", gpus=1, nics=0)])
        nic = make_device_class("nic", "nic.example.com")
        nic = msgspec.structs.replace(nic, extended_resource=NIC)
        scene.put(gpu_class(), nic, make_slice("n0", 1, driver="nic.example.com", uid="nics"))
        (choice,) = placed(scene, "g", gpu=1, nic=1).devices
        assert choice.extended is not None
        assert choice.extended.requests == (("container-0-request-0", "nic", 1),)
        assert choice.extended.mappings == (("train", NIC, "container-0-request-0"),)
        assert [device[0] for device in choice.devices] == ["container-0-request-0"]

    def test_a_class_that_cannot_be_evaluated_leaves_the_nodes_with_a_plugin(self) -> None:
        scene = Scene([plain("n0", gpus=1), plain("n1")])
        scene.put(gpu_class(driver="", selectors=None), make_slice("n1", 1))
        assert placed(scene, "g").bindings[0].node == "n0"
        assert submit(scene, "h") is None
        words = "no device plugin, and device class gpu selects by attributes"
        assert words in condition(scene, "h")[1]

    def test_shared_devices_serve_as_many_pods_as_have_a_share(self) -> None:
        scene = Scene([plain("n0")])
        details = (DeviceDetails(shareable=True),)
        scene.put(gpu_class(), make_slice("n0", 1, details=details))
        assert len(devices(placed(scene, "g", 5))) == 5

    def test_devices_on_the_network_count_on_every_node_that_reaches_them(self) -> None:
        scene = Scene([plain("n0"), plain("n1")])
        scene.put(gpu_class(), make_slice("any", 2, node="", all_nodes=True))
        assert len(devices(placed(scene, "g", 2))) == 2
        assert submit(scene, "h") is None


class TestChanges:
    def test_devices_on_the_network_count_on_nodes_that_come_into_their_reach(self) -> None:
        """Both a new node, and one that gets the label later."""
        scene = Scene([plain("n0")])
        near = SelectorTerm(expressions=(Requirement(key="fabric", operator="Exists"),))
        scene.put(gpu_class(), make_slice("any", 2, node="", node_affinity=(near,)))
        assert submit(scene, "g") is None
        with_label = {"labels": (("fabric", "x"),)}
        scene.put(msgspec.structs.replace(plain("n1"), **with_label))
        (first,) = scene.settle()
        assert first.bindings[0].node == "n1"
        scene.remove(plain("n1"))
        assert submit(scene, "h") is None
        scene.put(msgspec.structs.replace(plain("n0"), resource_version=2, **with_label))
        (second,) = scene.settle()
        assert second.bindings[0].node == "n0"

    @given(
        st.lists(
            st.one_of(
                st.tuples(st.just("node"), st.integers(0, 2), st.integers(0, 2)),
                st.tuples(st.just("slice"), st.integers(0, 2), st.integers(0, 2)),
                st.tuples(st.just("claim"), st.integers(0, 2), st.booleans()),
                st.tuples(st.just("gang"), st.integers(1, 2), st.booleans()),
            ),
            max_size=12,
        )
    )
    @settings(deadline=None, max_examples=40)
    def test_cached_results_follow_nodes_slices_and_claims(
        self, changes: list[tuple[str, int, int]]
    ) -> None:
        """Nodes gain and lose the resource of a device plugin, while its class serves it too."""
        scene = Scene([plain(f"n{at}") for at in range(3)])
        scene.put(gpu_class(), *(make_slice(f"n{at}", 1) for at in range(3)))
        waiting = members("w", 1, gpu=2) + members("v", 1, gpu=1)
        scene.put(make_group("w", 9), make_group("v", 9), *waiting)
        for version, (kind, at, number) in enumerate(changes, 2):
            if kind == "node":
                node = plain(f"n{at}", gpus=number)
                scene.put(msgspec.structs.replace(node, resource_version=version))
            elif kind == "slice":
                scene.put(make_slice(f"n{at}", number))
            elif kind == "claim":
                theirs = ((DRIVER, f"n{at}", "gpu-0"),) if number else ()
                claim = make_device_claim(
                    f"c{at}", allocated=theirs, reserved_for=("foreign",), resource_version=version
                )
                scene.put(claim)
            else:
                scene.put(make_group(f"g{version}", 1), *members(f"g{version}", 1, gpu=at))
            scene.settle()
            assert_counts_are_current(scene, waiting)

    def test_a_gang_that_waits_is_placed_when_its_class_appears(self) -> None:
        scene = Scene([plain("n0")])
        scene.put(make_slice("n0", 1))
        assert submit(scene, "g") is None
        scene.put(gpu_class())
        (decision,) = scene.settle()
        assert list(devices(decision).values()) == [["gpu-0"]]

    def test_without_its_class_a_resource_comes_from_plugins_only(self) -> None:
        scene = Scene([plain("n0")])
        scene.put(gpu_class(), make_slice("n0", 1))
        scene.put(make_group("g", 1), *members("g", 1))
        scene.remove(gpu_class())
        assert scene.settle() == []
        assert f"1 Insufficient {GPU};" in condition(scene, "g")[1]

    def test_a_node_changes_from_devices_to_a_plugin_and_back(self) -> None:
        scene = Scene([plain("n0")])
        scene.put(gpu_class(), make_slice("n0", 2))
        assert submit(scene, "g", 3) is None
        scene.put(msgspec.structs.replace(plain("n0", gpus=3), resource_version=2))
        (decision,) = scene.settle()
        assert decision.devices == ()
        scene.outcome(decision, {one.uid: "gone" for one in decision.bindings})
        scene.remove(*scene.pods_of("g"))
        scene.put(msgspec.structs.replace(plain("n0"), resource_version=3))
        assert submit(scene, "h", 3) is None
        assert len(devices(placed(scene, "i", 2))) == 2

    def test_slices_that_grow_add_amounts(self) -> None:
        scene = Scene([plain("n0")])
        scene.put(gpu_class(), make_slice("n0", 1))
        assert submit(scene, "g", 2) is None
        scene.put(make_slice("n0", 2, generation=2))
        assert len(scene.settle()) == 1

    def test_pods_that_another_scheduler_placed_count_by_their_claims(self) -> None:
        scene = Scene([plain("n0")])
        scene.put(gpu_class(), make_slice("n0", 2))
        shape = make_shape({GPU: 1})
        foreign: dict[str, Any] = {
            "ours": False,
            "scheduler_name": "default-scheduler",
            "group_name": "",
        }
        scene.put(*make_pods("x", 1, shape, node="n0", phase="Running", **foreign))
        theirs = ((DRIVER, "n0", "gpu-0"),)
        scene.put(make_device_claim("x", allocated=theirs, extended=True, owner_uid="x-worker-0"))
        assert devices(placed(scene, "g")) == {"g-worker-0": ["gpu-1"]}
        assert submit(scene, "h") is None

    def test_a_claim_in_another_namespace_that_names_a_pod_is_not_the_pods(self) -> None:
        scene = Scene([plain("n0")])
        scene.put(gpu_class(), make_slice("n0", 2))
        forged = make_device_claim(
            "x", allocated=((DRIVER, "n0", "gpu-0"),), extended=True, owner_uid="g-worker-0"
        )
        scene.put(msgspec.structs.replace(forged, namespace="evil"))
        assert devices(placed(scene, "g")) == {"g-worker-0": ["gpu-1"]}


class TestLife:
    def test_devices_stay_taken_until_the_claim_shows_them_and_then_with_it(self) -> None:
        scene = Scene([plain("n0")])
        scene.put(gpu_class(), make_slice("n0", 1))
        decision = placed(scene, "g")
        scene.run(decision)
        assert submit(scene, "h") is None
        scene.put(claim_of(decision.devices[0]))
        assert scene.settle() == []
        scene.remove(scene.pods["g-worker-0"])
        assert scene.settle() == [], "the claim still has the device"
        scene.remove(claim_of(decision.devices[0]))
        (second,) = scene.settle()
        assert devices(second) == {"h-worker-0": ["gpu-0"]}

    def test_a_pod_that_left_before_its_claim_was_seen_keeps_its_devices_until_it_would_be(
        self,
    ) -> None:
        scene = Scene([plain("n0")])
        scene.put(gpu_class(), make_slice("n0", 1))
        decision = placed(scene, "g")
        scene.run(decision)
        version = scene.pods["g-worker-0"].resource_version
        scene.remove(scene.pods["g-worker-0"])
        scene.put(make_group("h", 1), *members("h", 1))

        def synced(known_up_to: int) -> None:
            versions = ((RESOURCE_CLAIMS.title, known_up_to),)
            scene.apply(
                Synced(
                    epoch=scene.epoch,
                    at_ms=scene.watcher_ms,
                    watcher="scene",
                    resource_versions=versions,
                )
            )

        synced(version - 1)
        assert scene.step(fresh=False).decisions == []
        synced(version)
        assert len(scene.step(fresh=False).decisions) == 1

    def test_an_attempt_after_a_failure_uses_the_same_claim(self) -> None:
        scene = Scene([plain("n0")])
        scene.put(gpu_class(), make_slice("n0", 1))
        (first,) = placed(scene, "g").devices
        scene.outcome(scene.decisions[0][1], {"g-worker-0": "unprepared"})
        scene.put(claim_of(first, allocated=False))
        assert scene.settle() == [], "the node is avoided for a minute"
        scene.now_ms += 60_000
        (again,) = scene.settle()
        assert again.devices == (first,)

    def test_a_claim_that_a_dead_binder_allocated_determines_the_node(self) -> None:
        scene = Scene([plain("n0"), plain("n1")])
        scene.put(gpu_class(), make_slice("n0", 1), make_slice("n1", 1))
        (first,) = placed(scene, "g").devices
        made = claim_of(first)
        other = Scene([plain("n0"), plain("n1")])
        other.put(gpu_class(), make_slice("n0", 1), make_slice("n1", 1), made)
        (choice,) = placed(other, "g").devices
        assert (choice.claim, choice.claim_uid, choice.node) == (made.name, made.uid, first.node)
        assert choice.devices == ()
        assert choice.extended == first.extended

    def test_the_next_planner_keeps_the_devices_of_a_logged_decision(self) -> None:
        scene = LoggedScene([plain("n0")])
        scene.put(gpu_class(), make_slice("n0", 2))
        first = placed(scene, "g")
        assert devices(first) == {"g-worker-0": ["gpu-0"]}
        scene.restart()
        assert devices(placed(scene, "h")) == {"h-worker-0": ["gpu-1"]}
        assert submit(scene, "i") is None

    def test_a_lost_member_holds_devices_for_its_successor(self) -> None:
        scene = Scene([plain("n0")])
        scene.put(gpu_class(), make_slice("n0", 2))
        decision = placed(scene, "g", 2)
        scene.run(decision)
        scene.put(*map(claim_of, decision.devices))
        scene.settle()
        scene.change("g-worker-0", phase="Failed")
        scene.settle()
        scene.remove(claim_of(decision.devices[0]))
        assert submit(scene, "h") is None, "the capacity is held"
        (pod,) = members("g", 1)
        scene.put(msgspec.structs.replace(pod, uid="g-new", name="g-new"))
        (second,) = scene.settle()
        assert devices(second) == {"g-new": ["gpu-0"]}

    def test_devices_of_a_decision_are_kept_when_the_class_loses_the_resource(self) -> None:
        """The pod is bound with another shape than it was decided with, before CLUSTER shows that
        its claim has the device.
        """
        scene = Scene([plain("n0")])
        scene.put(gpu_class(), make_slice("n0", 1))
        decision = placed(scene, "g")
        scene.put(msgspec.structs.replace(make_device_class(), resource_version=2))
        scene.run(decision)
        shape = make_shape({"cpu": 100}, device_claims=("c",), namespace="team")
        scene.put(make_device_claim("c"), make_group("h", 1), *make_pods("h", 1, shape))
        # A heartbeat of the watcher would name no claims: there are none.
        assert scene.step(fresh=False).decisions == []
        scene.put(claim_of(decision.devices[0]))
        assert scene.settle() == []
        scene.remove(scene.pods["g-worker-0"])
        scene.remove(claim_of(decision.devices[0]))
        assert len(scene.settle()) == 1


class TestQuotaAndQuestions:
    def test_a_queue_is_charged_the_resource_on_either_kind_of_node(self) -> None:
        scene = Scene([plain("n0", gpus=1), plain("n1")])
        scene.put(gpu_class(), make_slice("n1", 2))
        scene.put(
            Queue(uid="q", dialect="volcano", name="q", resource_version=1, capability=((GPU, 2),))
        )
        scene.put(make_group("g", 3, queue="q"), *members("g", 3))
        assert scene.settle() == []
        assert condition(scene, "g")[0] == "NotEnoughQuota"
        scene.put(make_group("h", 2, queue="q"), *members("h", 2))
        assert len(scene.settle()) == 1

    @pytest.mark.parametrize(("size", "fits"), [(3, True), (4, False)])
    def test_a_question_has_the_same_answer(self, size: int, fits: bool) -> None:
        scene = Scene([plain("n0", gpus=1), plain("n1")])
        scene.put(gpu_class(), make_slice("n1", 2))
        pods = tuple(members("q", size))
        answer: FitAnswer = scene.planner.would_fit(
            FitRequest(group=make_group("q", size), pods=pods)
        )
        assert answer.fits == fits
        assert answer.ever == fits
        assert placed(scene, "g", 3).devices

    def test_a_question_may_be_the_first_that_requests_the_resource_of_a_class(self) -> None:
        scene = Scene([plain("n0")])
        scene.put(make_device_class(), make_slice("n0", 1))
        pods = tuple(members("q", 1, of_class=1))
        answer = scene.planner.would_fit(FitRequest(group=make_group("q", 1), pods=pods))
        assert answer.fits


def containers(*found: tuple[str, int, bool]) -> tuple[ContainerDevices, ...]:
    """Containers with their numbers of GPUs, and whether they are init containers that end."""
    return tuple(
        ContainerDevices(
            container=name, index=index, short_lived=short, requests=((GPU, 1, number),)
        )
        for index, (name, number, short) in enumerate(found)
    )


@pytest.mark.parametrize(
    ("found", "requests", "mappings"),
    [
        pytest.param(
            [("a", 1, False), ("b", 2, False)],
            {"container-0-request-1": 1, "container-1-request-1": 2},
            {("a", 0), ("b", 1)},
            id="each container has its request",
        ),
        pytest.param(
            [("init", 2, True), ("a", 1, False), ("b", 1, False)],
            {"container-1-request-1": 1, "container-2-request-1": 1},
            {("init", 1), ("init", 2), ("a", 1), ("b", 2)},
            id="one that ends uses the devices of those after it",
        ),
        pytest.param(
            [("init", 3, True), ("more", 4, True), ("a", 1, False)],
            {"container-1-request-1": 3, "container-2-request-1": 1},
            {("init", 2), ("init", 1), ("more", 2), ("more", 1), ("a", 2)},
            id="the largest rest serves all that end",
        ),
        pytest.param(
            [("side", 1, False), ("init", 2, True), ("a", 1, False)],
            {"container-0-request-1": 1, "container-1-request-1": 1, "container-2-request-1": 1},
            {("side", 0), ("init", 2), ("init", 1), ("a", 2)},
            id="a sidecar before it keeps its own",
        ),
    ],
)
def test_requests_and_mappings_are_those_of_kube_scheduler(
    found: list[tuple[str, int, bool]], requests: dict[str, int], mappings: set[tuple[str, int]]
) -> None:
    tables = ReferenceObjects()
    tables.put(gpu_class(), from_snapshot=False)
    need = ClassesOfResources(tables).need_of(containers(*found))
    assert {one.name: one.number for one in need.requests} == requests
    assert [one.name for one in need.requests] == sorted(requests)
    expected = {(name, GPU, f"container-{index}-request-1") for name, index in mappings}
    assert set(need.mappings) == expected
    assert len(need.mappings) == len(expected)


def test_the_name_of_a_claim_depends_on_pod_and_requests_and_is_never_too_long() -> None:
    tables = ReferenceObjects()
    tables.put(gpu_class(), from_snapshot=False)
    classes = ClassesOfResources(tables)
    one, two = (classes.need_of(containers(("a", number, False))) for number in (1, 2))
    names = {claim_name("w-0", "u-0", one), claim_name("w-0", "u-1", one)}
    names |= {claim_name("w-0", "u-0", two), claim_name("w-0", "u-0", one)}
    assert len(names) == 3
    long = claim_name("w" * 222 + ".x-extended", "u", one)
    assert len(long) < 254
    assert ".-" not in long
