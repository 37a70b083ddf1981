"""`minResources` beyond the quorum: a gate before the first pod, and a reservation behind it."""

import pytest

from shared.contracts import annotations
from shared.contracts.decisions import GangDecision
from shared.model.objects import Node, PodGroup, Queue, Taint, Toleration
from tests.services.gang_planner.core.losing import closed
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.golden import Golden

DRIVER = make_shape({"cpu": 1000})
EXECUTOR = make_shape({"cpu": 2000, GPU: 1})
#: One driver and four executors.
WHOLE = amounts(cpu=9000, gpu=4)


def node(name: str, gpus: int = 2, **fields: object) -> Node:
    allocatable = {"cpu": 16_000, "memory": 64 << 30, "pods": 110}
    return make_node(name, {**allocatable, **({GPU: gpus} if gpus else {})}, **fields)


def app(name: str, **fields: object) -> PodGroup:
    return make_group(name, 1, min_resources=WHOLE, **fields)


def start(scene: Scene, name: str, **fields: object) -> list[GangDecision]:
    """The operator makes the group and the driver; the executors come when the driver runs."""
    scene.put(app(name, **fields), *make_pods(name, 1, DRIVER, role="driver"))
    return scene.settle()


def grow(scene: Scene, name: str, executors: int = 4) -> list[GangDecision]:
    scene.put(*make_pods(name, executors, EXECUTOR, role="executor"))
    return scene.settle()


def bound(scene: Scene, name: str) -> int:
    return sum(bool(pod.node) for pod in scene.pods_of(name))


def two_nodes() -> Scene:
    return Scene([node("node-0"), node("node-1")])


def test_of_two_applications_one_runs_whole_and_the_other_waits_whole_and_then_runs(
    golden: Golden,
) -> None:
    scene = two_nodes()
    (first,) = start(scene, "one")
    scene.run(first)
    assert start(scene, "two") == []
    why = scene.verdict("two").why
    assert why is not None
    assert why.reason == "NotEnoughResources"
    golden(why.sentence)
    assert why.holders == ("team/tfjob/one",)

    for decision in grow(scene, "one"):
        scene.run(decision)
    scene.settle()
    assert bound(scene, "one") == 5
    assert scene.holds() == []
    assert bound(scene, "two") == 0

    scene.remove(*scene.pods_of("one"))
    (second,) = scene.settle()
    scene.run(second)
    for decision in grow(scene, "two"):
        scene.run(decision)
    scene.settle()
    assert bound(scene, "two") == 5


def test_executors_that_come_one_by_one_consume_the_reservation_one_by_one() -> None:
    scene = two_nodes()
    (first,) = start(scene, "one")
    scene.run(first)
    start(scene, "two")
    assert len(scene.holds()) == 4
    executors = make_pods("one", 4, EXECUTOR, role="executor")
    for number, pod in enumerate(executors, 1):
        scene.put(pod)
        (decision,) = scene.settle()
        assert len(decision.fills) == 1
        scene.run(decision)
        scene.settle()
        assert len(scene.holds()) == 4 - number
        assert bound(scene, "two") == 0
    assert closed(scene) == ["Filled"] * 4


def test_the_reservation_is_charged_to_the_queue_of_its_gang(golden: Golden) -> None:
    scene = Scene([node(f"node-{i}") for i in range(4)])
    scene.put(
        Queue(uid="q", dialect="volcano", name="q", resource_version=1, capability=amounts(gpu=6))
    )
    (first,) = start(scene, "one", queue="q")
    scene.run(first)
    assert start(scene, "two", queue="q") == []
    why = scene.verdict("two").why
    assert why is not None
    assert why.reason == "NotEnoughQuota"
    golden(why.sentence)


def test_minresources_beyond_the_cluster_or_the_queue_reserve_nothing_and_the_verdict_says_so(
    golden: Golden,
) -> None:
    scene = two_nodes()
    scene.put(make_group("huge", 1, min_resources=amounts(cpu=1000, gpu=8)))
    scene.put(*make_pods("huge", 1, DRIVER, role="driver"))
    assert scene.settle() == []
    why = scene.verdict("huge").why
    assert why is not None
    assert why.reason == "NotEnoughResources"
    golden(why.sentence)
    assert scene.holds() == []
    assert len(start(scene, "one")) == 1


def test_an_impossible_gang_keeps_no_gang_out_of_a_strict_queue(golden: Golden) -> None:
    scene = two_nodes()
    scene.put(
        Queue(
            uid="q",
            dialect="volcano",
            name="q",
            resource_version=1,
            dequeue_strategy="fifo",
            capability=amounts(gpu=3),
        )
    )
    assert start(scene, "huge", queue="q", created_ms=1) == []
    why = scene.verdict("huge").why
    assert why is not None
    assert why.reason == "NotEnoughQuota"
    golden(why.sentence)
    scene.put(make_group("small", 1, queue="q", created_ms=2))
    scene.put(*make_pods("small", 1, EXECUTOR))
    assert len(scene.settle()) == 1


def test_the_reservation_ends_at_its_deadline() -> None:
    scene = two_nodes()
    settings = ((annotations.RESERVE_SECONDS, "30"),)
    (first,) = start(scene, "one", settings=settings)
    scene.run(first)
    assert start(scene, "two") == []
    scene.now_ms += 29_000
    scene.heartbeat()
    assert scene.settle() == []
    scene.now_ms += 1_000
    scene.heartbeat()
    (second,) = scene.settle()
    assert second.gang == "team/two"
    assert closed(scene) == ["Expired"] * 4


def test_a_group_may_say_that_its_minresources_gate_nothing() -> None:
    scene = two_nodes()
    settings = ((annotations.RESERVE_SECONDS, "0"),)
    assert len(start(scene, "one", settings=settings)) == 1
    assert scene.holds() == []
    assert len(start(scene, "two", settings=settings)) == 1


def test_the_reservation_ends_when_the_first_pod_is_gone() -> None:
    scene = two_nodes()
    (first,) = start(scene, "one")
    scene.run(first)
    start(scene, "two")
    scene.remove(*scene.pods_of("one"))
    (second,) = scene.settle()
    assert second.gang == "team/two"


def test_minresources_that_the_quorum_covers_are_no_gate() -> None:
    scene = two_nodes()
    scene.put(make_group("whole", 4, min_resources=amounts(cpu=8000, gpu=4)))
    scene.put(*make_pods("whole", 4, EXECUTOR))
    (decision,) = scene.settle()
    assert len(decision.bindings) == 4
    assert decision.reserves == ()


def test_units_of_equal_pods_go_where_the_pods_may_go() -> None:
    """A leader and its workers have the same template: capacity elsewhere is none for them."""
    scene = Scene(
        [node("node-0", labels=(("pool", "a"),)), node("node-1", labels=(("pool", "b"),))]
    )
    leader = make_shape({"cpu": 1000, GPU: 1}, node_selector=(("pool", "a"),))
    scene.put(make_group("lws", 1, min_resources=amounts(cpu=3000, gpu=3)))
    scene.put(*make_pods("lws", 1, leader, role="leader"))
    assert scene.settle() == []
    why = scene.verdict("lws").why
    assert why is not None
    assert "the nodes that its pods may use have 2 nvidia.com/gpu in all" in why.sentence


def test_nodes_that_are_tainted_for_their_device_count_and_the_control_plane_does_not() -> None:
    tainted = (Taint(key=GPU, value="present", effect="NoSchedule"),)
    control = (Taint(key="node-role.kubernetes.io/control-plane", effect="NoSchedule"),)
    scene = Scene(
        [node("plain", 0), node("gpus", 4, taints=tainted), node("control", 0, taints=control)]
    )
    (first,) = start(scene, "one")
    assert {one.node for one in first.reserves} == {"gpus"}
    # CPU alone: 40 cores are in the cluster, but those of the control plane are not for it.
    scene.put(make_group("cores", 1, min_resources=amounts(cpu=40_000)))
    scene.put(*make_pods("cores", 1, DRIVER, role="driver"))
    assert scene.settle() == []


def test_higher_priority_takes_what_is_reserved_and_the_reservation_looks_for_another_place() -> (
    None
):
    scene = two_nodes()
    (first,) = start(scene, "one")
    scene.run(first)
    scene.put(make_group("urgent", 1))
    scene.put(*make_pods("urgent", 1, EXECUTOR, priority=1_000))
    (decision,) = scene.settle()
    assert decision.gang == "team/urgent"
    assert sum(not hold.node for hold in scene.holds()) == 1
    scene.put(node("node-2"))
    scene.settle()
    assert all(hold.node for hold in scene.holds())


def test_a_driver_whose_binding_came_to_nothing_is_admitted_again() -> None:
    scene = two_nodes()
    (first,) = start(scene, "one")
    scene.outcome(first, {"one-driver-0": "refused"})
    scene.settle()
    assert scene.holds() == []
    assert closed(scene) == ["NotPlaced"] * 4


@pytest.mark.parametrize("tolerated", [False, True])
def test_a_unit_goes_where_taints_are_tolerated(tolerated: bool) -> None:
    taints = (Taint(key="team", value="ml", effect="NoSchedule"),)
    scene = Scene([node("plain", 0), node("gpus", 4, taints=taints)])
    given = (Toleration(key="team", operator="Exists"),) if tolerated else ()
    scene.put(app("one"))
    scene.put(*make_pods("one", 1, make_shape({"cpu": 1000}, tolerations=given), role="driver"))
    assert len(scene.settle()) == tolerated
