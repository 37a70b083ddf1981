"""What queues are promised, in random clusters: no eviction follows from nodes that are lost, no
share from a queue's name.
"""

from collections import Counter
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.contracts.decisions import EvictionDecision
from shared.model.objects import Node, Queue
from tests.services.gang_planner.core.scene import (
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

POD = make_shape({"cpu": 1000})
_NODE = {"cpu": 1000, "pods": 110}


def configured(policy: str) -> str:
    return f"""
actions: "enqueue, allocate, reclaim, backfill"
tiers: [{{plugins: [{{name: priority}}, {{name: predicates}}, {policy}]}}]
"""


CAPACITY = configured("{name: capacity, enableHierarchy: true}")
PROPORTION = configured("{name: proportion}")
NAMES = ("a", "b", "c", "d")


class Given(NamedTuple):
    """A leaf queue; amounts in CPUs."""

    #: Index of its parent; None: it is a top-level queue.
    parent: int | None
    deserved: int
    guarantee: int
    weight: int
    #: Pods that run, each a gang of its own.
    running: int
    #: Sizes of gangs that wait.
    waiting: tuple[int, ...]


@st.composite
def a_queue(draw: Any) -> Given:
    deserved = draw(st.integers(0, 4))
    return Given(
        parent=draw(st.sampled_from((None, 0, 1))),
        deserved=deserved,
        guarantee=draw(st.integers(0, deserved)),
        weight=draw(st.integers(1, 3)),
        running=draw(st.integers(0, 5)),
        waiting=tuple(draw(st.lists(st.integers(1, 3), max_size=2))),
    )


clusters = st.lists(a_queue(), min_size=2, max_size=4)


def objects_of(queues: list[Given], names: tuple[str, ...], *, tree: bool) -> list[Queue]:
    """The queues under these names. Parents deserve what their children do together."""

    def made(name: str, given: Given | None, deserved: int, parent: str) -> Queue:
        guarantee = given.guarantee if given is not None else 0
        return Queue(
            uid=f"queue-{name}",
            dialect="volcano",
            name=name,
            resource_version=1,
            parent=parent,
            weight=given.weight if given is not None else 1,
            deserved=amounts(cpu=deserved * 1000) if deserved else (),
            guarantee=amounts(cpu=guarantee * 1000) if guarantee else (),
        )

    found: list[Queue] = []
    for at in sorted({one.parent for one in queues if one.parent is not None}) if tree else ():
        together = sum(one.deserved for one in queues if one.parent == at)
        found.append(made(f"parent-{at}", None, together, ""))
    for name, one in zip(names, queues, strict=False):
        parent = f"parent-{one.parent}" if tree and one.parent is not None else ""
        found.append(made(name, one, one.deserved, parent))
    return found


def cluster(
    queues: list[Given],
    idle: int,
    conf: str,
    *,
    names: tuple[str, ...] = NAMES,
    tree: bool = False,
) -> Scene:
    """A node for each pod that runs, and some idle ones; each queue's pods run."""
    count = sum(one.running for one in queues)
    scene = Scene([a_node(at) for at in range(count + idle)], conf=conf)
    scene.put(*objects_of(queues, names, tree=tree))
    at = 0
    for index, (name, one) in enumerate(zip(names, queues, strict=False)):
        for number in range(one.running):
            gang = f"runs-{index}-{number}"
            fields: dict[str, Any] = {"node": f"n{at}", "phase": "Running"}
            scene.put(make_group(gang, 1, queue=name), *make_pods(gang, 1, POD, **fields))
            at += 1
    scene.settle()
    return scene


def a_node(at: int, **fields: Any) -> Node:
    return make_node(f"n{at}", _NODE, **fields)


def wait(scene: Scene, queues: list[Given], names: tuple[str, ...] = NAMES) -> None:
    """The gangs that wait appear."""
    for index, (name, one) in enumerate(zip(names, queues, strict=False)):
        for number, size in enumerate(one.waiting):
            gang = f"waits-{index}-{number}"
            scene.put(make_group(gang, size, queue=name), *make_pods(gang, size, POD))
    scene.settle()


def evicted(scene: Scene) -> Counter[int]:
    """Number of evicted pods by index of the queue."""
    pods = {pod.uid: pod.group_name for pod in scene.pods.values()}
    return Counter(
        int(pods[victim.uid].split("-")[1])
        for _, record in scene.records
        if isinstance(record, EvictionDecision)
        for victim in record.victims
    )


@settings(max_examples=100)
@given(
    queues=clusters,
    lost=st.lists(st.sampled_from(("cordoned", "not ready", "deleted")), max_size=6),
    tree=st.booleans(),
)
def test_no_queue_is_reclaimed_below_what_it_declares_to_deserve_whatever_nodes_are_lost(
    queues: list[Given], lost: list[str], *, tree: bool
) -> None:
    scene = cluster(queues, len(lost), CAPACITY, tree=tree)
    first = sum(one.running for one in queues)
    for at, how in enumerate(lost, first):
        if how == "deleted":
            scene.remove(a_node(at))
        else:
            state = {"ready": False} if how == "not ready" else {"unschedulable": True}
            scene.put(a_node(at, **state))
    scene.settle()
    wait(scene, queues)
    for index, count in evicted(scene).items():
        assert queues[index].running - count >= queues[index].deserved


@settings(max_examples=60)
@given(queues=clusters, idle=st.integers(0, 4), tree=st.booleans(), data=st.data())
def test_the_name_of_a_queue_changes_neither_what_it_deserves_nor_its_fair_share(
    queues: list[Given], idle: int, *, tree: bool, data: st.DataObject
) -> None:
    conf = data.draw(st.sampled_from((CAPACITY, PROPORTION)))
    names = tuple(data.draw(st.permutations(NAMES)))
    assert shares(queues, idle, conf, NAMES, tree) == shares(queues, idle, conf, names, tree)


@settings(max_examples=60)
@given(queues=clusters, idle=st.integers(0, 4), more=st.integers(1, 3), tree=st.booleans())
def test_more_nodes_make_no_share_smaller(
    queues: list[Given], idle: int, more: int, *, tree: bool
) -> None:
    for conf in (CAPACITY, PROPORTION):
        before = shares(queues, idle, conf, NAMES, tree)
        after = shares(queues, idle + more, conf, NAMES, tree)
        for small, large in zip(before, after, strict=True):
            assert all(large[row] >= amount for row, amount in small.items())


def shares(
    queues: list[Given], idle: int, conf: str, names: tuple[str, ...], tree: bool
) -> list[dict[tuple[str, int], int]]:
    """What each queue deserves, and its fair share of the nodes."""
    scene = cluster(queues, idle, conf, names=names, tree=tree)
    wait(scene, queues, names)
    found: list[dict[tuple[str, int], int]] = []
    for name, _ in zip(names, queues, strict=False):
        entry = scene.state.queues.entry(name)
        deserved = {("deserved", row): amount for row, amount in entry.deserved.items()}
        found.append(deserved | {("fair", row): one for row, one in entry.fair_share.items()})
    return found
