"""What queues hold is what their gangs hold, whatever becomes of the tree."""

import random
from typing import Any

import msgspec
import pytest

from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.policies import capacity
from services.gang_planner.core.queueing import fair_share
from services.gang_planner.core.state.queues import QueueEntry
from shared.model.objects import Queue
from tests.services.gang_planner.core.inside import session_of
from tests.services.gang_planner.core.scene import (
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.reachable import reachable

TREE = """
actions: "enqueue, allocate"
tiers: [{plugins: [{name: priority}, {name: gang}, {name: capacity, enableHierarchy: true}]}]
"""
NAMES = ("a", "b", "c", "d", "e")


def a_queue(name: str, version: int = 1, **fields: Any) -> Queue:
    return Queue(uid=f"q-{name}", dialect="volcano", name=name, resource_version=version, **fields)


def entries(scene: Scene) -> dict[str, QueueEntry]:
    return scene.state.queues.entries


def keep_their_place_in_turn(found: dict[str, QueueEntry]) -> None:
    """What a policy keeps of a queue is what it would work out now."""
    share = capacity.build(Arguments("here", {"enableHierarchy": True})).queue_share
    assert share is not None
    kept = {name: share(entry) for name, entry in found.items()}
    for entry in found.values():
        # As if it had been charged: worked out again.
        entry.charges += 1
    assert {name: share(entry) for name, entry in found.items()} == kept


@pytest.mark.parametrize("seed", range(6))
def test_charges_equal_what_gangs_hold_while_queues_move_in_the_tree(seed: int) -> None:
    """Every cycle ends with the check of all invariants, charges of whole subtrees among them."""
    chance = random.Random(seed)
    scene = Scene([make_node(f"n{i}", {"cpu": 8000, "pods": 110}) for i in range(4)], conf=TREE)
    cpu = make_shape({"cpu": 1000})
    for step in range(40):
        name = chance.choice(NAMES)
        match chance.randrange(4):
            case 0 | 1:
                parent = chance.choice(("", "root", *NAMES, "nowhere"))
                deserved = amounts(cpu=1000 * chance.randint(0, 20))
                guarantee = amounts(cpu=1000) if chance.random() < 0.2 else ()
                scene.put(
                    a_queue(name, step, parent=parent, deserved=deserved, guarantee=guarantee)
                )
            case 2:
                size = chance.randint(1, 4)
                gang = f"g{step}"
                scene.put(make_group(gang, size, queue=name), *make_pods(gang, size + 1, cpu))
            case _:
                if scene.pods:
                    uid = chance.choice(sorted(scene.pods))
                    scene.remove(scene.pods[uid])
        for decision in scene.settle():
            if chance.random() < 0.8:
                scene.run(decision)
        keep_their_place_in_turn(entries(scene))
        deserve_the_same_when_computed_again(scene)
        agree_on_what_exceeds_a_ceiling(entries(scene), chance)
        check_shares(scene)
    assert scene.decisions


def deserve_the_same_when_computed_again(scene: Scene) -> None:
    """Amounts that are kept while no queue changes are those that would be computed now."""
    state, session = scene.state, session_of(scene.planner)
    fair_share.share_out(state, session, state.backlog.demand)
    kept = {name: dict(entry.deserved) for name, entry in state.queues.entries.items()}
    state.queues.shared_at = ()
    fair_share.share_out(state, session, state.backlog.demand)
    assert {name: entry.deserved for name, entry in state.queues.entries.items()} == kept


def agree_on_what_exceeds_a_ceiling(found: dict[str, QueueEntry], chance: random.Random) -> None:
    for entry in found.values():
        wanted = {row: chance.randint(0, 8000) for row in entry.ceiling}
        assert entry.exceeded_by(wanted) == bool(entry.shortages(wanted, promised=False))


def check_shares(scene: Scene) -> None:
    """The fair shares on one level never exceed what there is to share on it."""
    scene.planner.ledger()
    levels: dict[QueueEntry | None, list[QueueEntry]] = {}
    for entry in entries(scene).values():
        if entry.fair_share:
            levels.setdefault(entry.parent, []).append(entry)
    for parent, children in levels.items():
        for row in children[0].fair_share:
            has = (
                session_of(scene.planner).totals[row] if parent is None else parent.fair_share[row]
            )
            assert sum(one.fair_share[row] for one in children) <= has


def test_of_two_objects_of_one_name_volcanos_is_in_force_and_the_other_when_it_is_gone() -> None:
    scene = Scene([make_node("n0")])
    old = Queue(uid="old", dialect="incubator", name="q", resource_version=1, weight=7)
    new = a_queue("q", weight=2)
    scene.put(old, new)
    assert entries(scene)["q"].weight == 2
    scene.remove(new)
    assert entries(scene)["q"].weight == 7
    scene.put(make_group("g", 1, queue="q"))
    scene.remove(old)
    assert entries(scene)["q"].queue is None


@pytest.mark.parametrize("conf", ["", TREE])
def test_a_queue_that_has_neither_an_object_nor_a_gang_is_forgotten(conf: str) -> None:
    scene = Scene([make_node("n0")], conf=conf)
    scene.put(a_queue("root", capability=amounts(cpu=9000)), make_group("stays", 1))
    cpu = make_shape({"cpu": 1000})
    scene.settle()
    table = scene.state.queues
    before = sorted(table.entries)
    for number in range(20):
        name = f"q{number}"
        pods = make_pods("g", 1, cpu, node="n0" if number % 2 else "", phase="Running")
        group = make_group("g", 1, queue=name, resource_version=number + 1)
        scene.put(a_queue(name), group, *pods)
        scene.settle()
        assert table.entries[name].gangs == 1
        # The gang in another queue, an object without gangs, a gang without an object.
        scene.put(msgspec.structs.replace(group, queue=f"other{number}", resource_version=99))
        scene.settle()
        scene.remove(a_queue(name, version=number + 2), *pods, group)
        scene.settle()
        assert sorted(table.entries) == before
        assert name not in set(reachable(table, str))


def test_names_that_gangs_have_made_up_change_nothing_for_root() -> None:
    scene = Scene([make_node("n0")], conf=TREE)
    scene.put(a_queue("root", capability=amounts(cpu=9000)))
    scene.put(make_group("g", 1, queue="made-up"), a_queue("a", parent="b"))
    assert entries(scene)["made-up"].parent is entries(scene)["root"]
    with_made_up = entries(scene)["root"].fault
    other = Scene([make_node("n0")], conf=TREE)
    other.put(a_queue("root", capability=amounts(cpu=9000)), make_group("g", 1))
    other.put(a_queue("a", parent="b"))
    assert entries(other)["root"].fault == with_made_up


def test_a_closed_parent_admits_no_gang_below_it() -> None:
    scene = Scene([make_node("n0")], conf=TREE)
    scene.put(a_queue("a", state="Closed"), a_queue("b", parent="a"))
    scene.put(make_group("g", 1, queue="b"), *make_pods("g", 1, make_shape({"cpu": 1000})))
    assert not scene.settle()
    why = scene.verdict("g").why
    assert why is not None
    assert why.reason == "QueueNotOpen"
    scene.put(a_queue("a", 2, state="Open"))
    assert scene.settle()


def test_root_limits_all_queues_when_it_exists_and_limits_anything() -> None:
    scene = Scene([make_node("n0")], conf=TREE)
    scene.put(a_queue("root", capability=amounts(cpu=1000)), a_queue("b"))
    scene.put(make_group("g", 2, queue="b"), *make_pods("g", 2, make_shape({"cpu": 1000})))
    assert not scene.settle()
    why = scene.verdict("g").why
    assert why is not None
    assert why.sentence.startswith("queue root, above queue b, can never hold it")
