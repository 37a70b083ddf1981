"""Queues share what gangs can use: not what other pods take, nor nodes that keep gangs out."""

import msgspec
import pytest

from shared.contracts.decisions import EvictionDecision
from shared.model.objects import Node, Queue, Taint, Toleration
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

CONF = """
actions: "enqueue, allocate, backfill, reclaim, preempt"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}]
- plugins: [{name: overcommit}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
CONTROL = (Taint(key="node-role.kubernetes.io/control-plane", effect="NoSchedule"),)
WORKER = make_shape({"cpu": 1000})


def node(name: str, cpu: int, **fields: object) -> Node:
    return make_node(name, {"cpu": cpu * 1000, "pods": 110}, **fields)


def case_10(*others: Node, taken: int = 3) -> Scene:
    """Volcano's "Reclaim Case 10": four nodes with room for one pod each, the rest of which pods of
    another scheduler take; two queues hold two each, of which their gangs need one.
    """
    scene = Scene([*(node(f"worker-{i}", 1 + taken) for i in range(4)), *others], conf=CONF)
    if taken:
        for at in range(4):
            shape, at_node = make_shape({"cpu": taken * 1000}), f"worker-{at}"
            (pod,) = make_pods(f"placeholder-{at}", 1, shape, ours=False, node=at_node)
            scene.put(msgspec.structs.replace(pod, group_name="", phase="Running"))
    for number in range(1, 5):
        scene.put(Queue(uid=f"q{number}", dialect="volcano", name=f"q{number}", resource_version=1))
    for number in (1, 2):
        scene.put(make_group(f"j{number}", 1, queue=f"q{number}"))
        scene.put(*make_pods(f"j{number}", 2, WORKER))
        for decision in scene.settle():
            scene.run(decision)
    scene.settle()
    return scene


def evicted(scene: Scene) -> list[str]:
    return [
        victim.uid
        for _, one in scene.records
        if isinstance(one, EvictionDecision)
        for victim in one.victims
    ]


@pytest.mark.parametrize(
    "others",
    [
        (),
        (node("control", 8, taints=CONTROL),),
        (node("unready", 8, ready=False),),
        (node("cordoned", 8, unschedulable=True),),
    ],
    ids=["pods of others", "a tainted node", "an unready node", "a cordoned node"],
)
@pytest.mark.parametrize("taken", [0, 3])
def test_a_queue_reclaims_its_share_of_what_gangs_can_use(
    taken: int, others: tuple[Node, ...]
) -> None:
    scene = case_10(*others, taken=taken)
    assert evicted(scene) == []
    scene.put(make_group("j3", 1, queue="q3"), *make_pods("j3", 1, WORKER))
    scene.settle()
    assert len(evicted(scene)) == 1


def test_a_tainted_node_counts_while_a_gangs_pods_tolerate_it() -> None:
    scene = case_10(node("control", 20, taints=CONTROL), taken=0)
    usable = {one.resource: one for one in scene.planner.ledger().totals}
    assert (usable["cpu"].usable, usable["cpu"].total) == (4_000, 24_000)
    tolerant = make_shape({"cpu": 1000}, tolerations=(Toleration(operator="Exists"),))
    scene.put(make_group("j3", 1, queue="q3"), *make_pods("j3", 1, tolerant))
    for decision in scene.settle():
        scene.run(decision)
    assert evicted(scene) == []
    usable = {one.resource: one for one in scene.planner.ledger().totals}
    assert usable["cpu"].usable == 24_000


def test_what_a_gang_holds_on_a_cordoned_node_is_usable() -> None:
    scene = case_10(taken=0)
    scene.put(node("worker-0", 1, unschedulable=True))
    scene.settle()
    usable = {one.resource: one for one in scene.planner.ledger().totals}
    assert usable["cpu"].usable == 4_000
