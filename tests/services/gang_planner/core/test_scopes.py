"""Gangs of two scopes are different gangs, also where they have the same name and namespace."""

import pytest

from services.gang_planner.core.state.titles import title_of
from shared.contracts.identity import nameless_gang_id
from shared.model.objects import Pod
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

CPU = make_shape({"cpu": 1000})
FULL = make_shape({"cpu": 4000})
OTHER = "podgroups.example.com"


def others_pods(count: int, shape: bytes = CPU) -> list[Pod]:
    """Pods of the gang `a` of the other scope."""
    return make_pods("a", count, shape, role="other", group_scope=OTHER, owner=None)


def test_two_groups_of_one_name_are_placed_each_with_its_own_pods() -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    scene.put(make_group("a", 2), make_group("a", 1, uid="theirs", scope=OTHER))
    scene.put(*make_pods("a", 1, CPU), *others_pods(2))
    (decision,) = scene.settle()
    assert (decision.gang_id, decision.scope, len(decision.bindings)) == ("theirs", OTHER, 2)
    why = scene.verdicts["group-a"].why
    assert why is not None
    assert why.reason == "NotEnoughPods", "the pods of the other gang do not count"
    scene.put(*make_pods("a", 2, CPU)[1:])
    (decision,) = scene.settle()
    assert (decision.gang_id, len(decision.bindings)) == ("group-a", 2)


def test_a_missing_group_is_named_with_its_kind_and_has_an_id_of_its_own() -> None:
    scene = Scene([make_node("n0")])
    scene.put(*make_pods("a", 1, CPU), *others_pods(1))
    assert not scene.settle()
    sentences = {
        gang_id: verdict.why.sentence
        for gang_id, verdict in scene.verdicts.items()
        if verdict.why is not None
    }
    assert sentences == {
        nameless_gang_id("name", "team", "a"): "PodGroup team/a does not exist",
        nameless_gang_id(OTHER, "team", "a"): f"{OTHER} team/a does not exist",
    }


def test_a_pod_whose_scope_changes_moves_to_the_other_gang() -> None:
    scene = Scene([make_node("n0")])
    scene.put(make_group("a", 2), make_group("a", 1, uid="theirs", scope=OTHER))
    scene.put(*make_pods("a", 1, CPU))
    assert not scene.settle()
    scene.change("a-worker-0", group_scope=OTHER)
    (decision,) = scene.settle()
    assert decision.gang_id == "theirs"


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_recreated_group_takes_over_the_history_of_its_own_scope(checkpoint: bool) -> None:
    """While no planner ran, the group that was being released was recreated under its name; a group
    of the same name in another scope is older.
    """
    scene = LoggedScene([make_node(f"n{i}") for i in range(5)])
    scene.refuses = lambda binding: binding.name == "a-other-1"
    group = make_group("a", 3, uid="theirs", scope=OTHER)
    scene.put(group, *others_pods(3, FULL))
    scene.step()
    ((seq, decision),) = scene.decisions
    scene.done.add(seq)
    first, second, third = decision.bindings
    for one in (first, third):
        scene.change(one.uid, node=one.node)
    scene.answer(seq, decision, [scene.refusal(second)])
    scene.step()
    scene.objects.pop("theirs")
    scene.objects["group-a"] = make_group("a", 3)
    scene.objects["again"] = make_group("a", 3, uid="again", scope=OTHER)
    scene.restart(checkpoint=checkpoint)
    scene.step()
    gangs = scene.state.gangs.gangs
    own, other = gangs[OTHER, "team", "a"].history, gangs["name", "team", "a"].history
    assert (own.attempt, own.notes.any_open) == (1, True)
    assert (other.attempt, other.notes.any_open) == (0, False)


def test_messages_name_the_dialect_only_where_two_gangs_share_a_name() -> None:
    scene = Scene([make_node("n0", {"cpu": 4000, "memory": 8 << 30, "pods": 10})])
    scene.put(make_group("a", 1, uid="theirs", scope=OTHER, dialect="example"))
    scene.put(*others_pods(1, FULL))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.put(make_group("a", 1), *make_pods("a", 1, FULL, owner=None))
    scene.put(make_group("b", 1), *make_pods("b", 1, FULL, owner=None))
    scene.settle()
    state = scene.state
    gangs = state.gangs.gangs
    assert title_of(state, gangs["name", "team", "a"]) == "team/a (incubator)"
    assert title_of(state, gangs[OTHER, "team", "a"]) == "team/a (example)"
    assert title_of(state, gangs["name", "team", "b"]) == "team/b"
