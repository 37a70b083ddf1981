"""Queues share contested capacity, limit no queue without demand, and never block each other."""

from typing import Any

from shared.contracts.decisions import GangDecision
from shared.model.objects import Node, Pod, Queue
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.golden import Golden

GIB = 1 << 30


def a_queue(name: str, **fields: Any) -> Queue:
    return Queue(uid=f"q-{name}", dialect="volcano", name=name, resource_version=1, **fields)


def a_node(name: str = "n0", cpu: int = 16, **fields: object) -> Node:
    return make_node(name, {"cpu": cpu * 1000, "memory": 64 * GIB, "pods": 110}, **fields)


def gang(
    scene: Scene, name: str, queue: str, size: int, *, cpu: int = 1, **fields: object
) -> list[Pod]:
    """A gang of pods of so many CPUs; the scene's planner sees group and pods."""
    pods = make_pods(name, int(str(fields.pop("pods", size))), make_shape({"cpu": cpu * 1000}))
    scene.put(make_group(name, size, queue=queue, **fields), *pods)
    return pods


def placed(decisions: list[GangDecision]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in decisions:
        name = one.gang.partition("/")[2]
        found[name] = found.get(name, 0) + len(one.bindings)
    return found


def test_two_gangs_larger_than_their_queues_shares_do_not_block_each_other() -> None:
    """Recorded of Volcano: 9 CPU in each of two equal queues on 16 empty CPUs wait for ever."""
    scene = Scene([a_node()])
    scene.put(a_queue("a"), a_queue("b"))
    gang(scene, "first", "a", 9)
    gang(scene, "second", "b", 9)
    (decision,) = scene.settle()
    assert placed([decision]) == {"first": 9}
    scene.run(decision)
    scene.settle()
    why = scene.verdict("second").why
    assert why is not None
    assert why.reason == "NotEnoughResources"
    for pod in scene.pods_of("first"):
        scene.change(pod.uid, phase="Succeeded")
    assert placed(scene.settle()) == {"second": 9}


def test_a_queue_takes_everything_while_no_other_queue_wants_it() -> None:
    scene = Scene([a_node()])
    scene.put(a_queue("a"), a_queue("b"))
    for index in range(4):
        gang(scene, f"g{index}", "a", 4)
    assert sum(placed(scene.settle()).values()) == 16


def test_queues_that_both_want_more_than_there_is_get_it_by_weight() -> None:
    scene = Scene([a_node()])
    scene.put(a_queue("a", weight=3), a_queue("b", weight=1))
    for index in range(8):
        gang(scene, f"a{index}", "a", 2)
        gang(scene, f"b{index}", "b", 2)
    found = placed(scene.settle())
    assert sum(count for name, count in found.items() if name.startswith("a")) == 12
    assert sum(count for name, count in found.items() if name.startswith("b")) == 4


def test_extras_of_an_elastic_gang_stop_at_the_share_that_another_queue_claims() -> None:
    scene = Scene([a_node()])
    scene.put(a_queue("a"), a_queue("b"))
    gang(scene, "first", "a", 1, pods=16)
    gang(scene, "second", "b", 1, pods=16)
    assert placed(scene.settle()) == {"first": 8, "second": 8}


def test_a_queue_keeps_its_share_while_its_gang_waits_for_an_outcome() -> None:
    """Found with Volcano's case of weights 1 to 3: nodes that came within milliseconds all went to
    the queue whose gang did not wait.
    """
    scene = Scene([])
    scene.put(a_queue("a"), a_queue("b", weight=3))
    gang(scene, "first", "a", 1, pods=16)
    gang(scene, "second", "b", 1, pods=16)
    decided: list[GangDecision] = []
    for node in ("n0", "n1"):
        scene.put(a_node(node, cpu=4))
        decided += scene.settle()
    assert placed(decided) == {"first": 2, "second": 6}
    assert decided[-1].preflight
    scene.put(a_node("n2", cpu=4))
    decided += scene.settle()
    assert placed(decided) == {"first": 3, "second": 6}
    for decision in decided:
        scene.run(decision)
    assert placed(scene.settle()) == {"second": 3}


def test_a_gang_that_is_deleted_while_it_waits_for_an_outcome_demands_nothing() -> None:
    scene = Scene([a_node(cpu=4)])
    scene.put(a_queue("a"))
    group = make_group("first", 2, queue="a")
    pods = make_pods("first", 8, make_shape({"cpu": 1000}), owner=None)
    scene.put(group, *pods)
    (decision,) = scene.settle()
    assert decision.preflight
    assert scene.state.backlog.demand.by_queue
    scene.remove(*pods, group)
    assert not scene.state.backlog.demand.by_queue


def test_what_is_freed_is_kept_for_the_queue_that_waits_for_its_share(golden: Golden) -> None:
    scene = Scene([a_node()])
    scene.put(a_queue("a"), a_queue("b"))
    for index in range(4):
        gang(scene, f"a{index}", "a", 4)
    for decision in scene.settle():
        scene.run(decision)
    scene.settle()
    gang(scene, "large", "b", 8)
    gang(scene, "small", "a", 4)
    assert not scene.settle()
    for pod in scene.pods_of("a0"):
        scene.change(pod.uid, phase="Succeeded")
    assert not scene.settle(), "4 CPU are free: small would fit, but large waits for its share"
    assert not scene.step(after_ms=1_000).decisions
    why = scene.verdict("small").why
    assert why is not None
    assert why.reason == "NotEnoughQuota"
    golden(why.sentence)
    for pod in scene.pods_of("a1"):
        scene.change(pod.uid, phase="Succeeded")
    assert placed(scene.settle()) == {"large": 8}


def test_a_gang_behind_a_claim_continues_when_it_is_withdrawn_though_nothing_was_freed() -> None:
    scene = Scene([a_node()])
    scene.put(a_queue("a"), a_queue("b"))
    gang(scene, "running", "a", 12)
    (decision,) = scene.settle()
    scene.run(decision)
    pods = gang(scene, "large", "b", 8)
    gang(scene, "small", "a", 4)
    assert not scene.settle()
    scene.remove(*pods)
    assert placed(scene.settle()) == {"small": 4}


def test_a_claim_on_nodes_that_others_cannot_use_delays_no_gang() -> None:
    """volcano#5001, volcano#3670: no share of the whole cluster that is blind to selectors."""
    scene = Scene([a_node("n0", labels=(("pool", "a"),)), a_node("n1", labels=(("pool", "b"),))])
    scene.put(a_queue("a"), a_queue("b"))
    pool_a = make_shape({"cpu": 1000}, node_selector=(("pool", "a"),))
    pool_b = make_shape({"cpu": 1000}, node_selector=(("pool", "b"),))
    foreign = make_pods("foreign", 1, make_shape({"cpu": 12_000}), node="n1", phase="Running")
    scene.put(*foreign)
    scene.put(make_group("running", 12, queue="a"), *make_pods("running", 12, pool_a))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.put(make_group("large", 8, queue="b"), *make_pods("large", 8, pool_b))
    scene.put(make_group("small", 4, queue="a"), *make_pods("small", 4, pool_a))
    assert placed(scene.settle()) == {"small": 4}


def test_a_gang_that_not_even_empty_nodes_could_hold_claims_nothing() -> None:
    scene = Scene([a_node()])
    scene.put(a_queue("a"), a_queue("b"))
    gang(scene, "running", "a", 12)
    (decision,) = scene.settle()
    scene.run(decision)
    gang(scene, "huge", "b", 40)
    gang(scene, "small", "a", 4)
    assert placed(scene.settle()) == {"small": 4}


def test_no_claim_keeps_a_started_gang_from_the_members_that_it_lacks() -> None:
    """Seed 63 of the simulation: no planner remembers what was lost, so no hold is served first."""
    scene = Scene([a_node()])
    scene.put(a_queue("a"), a_queue("b"))
    shape = make_shape({"cpu": 1000})
    scene.put(
        make_group("running", 10, queue="a"),
        *make_pods("running", 8, shape, node="n0", phase="Running"),
    )
    gang(scene, "large", "b", 12)
    scene.settle()
    scene.put(*make_pods("running", 11, shape)[8:])
    assert placed(scene.settle()) == {"running": 2}, "one above its minimum waits for the claim"


def test_what_started_gangs_lack_comes_before_extras_of_those_with_fewer_members() -> None:
    scene = Scene([a_node(cpu=14)])
    shape = make_shape({"cpu": 1000})
    for name, least, running in (("large", 9, 8), ("small", 1, 4)):
        scene.put(
            make_group(name, least),
            *make_pods(name, running, shape, node="n0", phase="Running"),
        )
    scene.settle()
    for name in ("large", "small"):
        scene.put(*make_pods(name, 11, shape)[8:])
    assert placed(scene.settle()) == {"large": 1, "small": 1}
