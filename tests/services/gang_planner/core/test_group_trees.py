"""Trees of groups: which groups start together, and what keeps a tree from being planned."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.contracts.questions import FitAnswer, FitRequest
from shared.model.gang_keys import key_of_group
from shared.model.group_trees import LEVELS_MAX, GroupTrees
from shared.model.objects import NetworkTopology, Pod, PodGroup
from tests.services.gang_planner.core.scene import Scene, make_group, make_node, make_pods
from tests.services.gang_planner.core.trees import CPU, PODS, composite, group, nodes, pods
from tests.support.golden import Golden


def bound(scene: Scene) -> list[str]:
    """The groups of the pods that the decisions of one cycle bind, one name per pod."""
    found = [
        scene.pods[binding.uid].group_name
        for decision in scene.settle()
        for binding in decision.bindings
    ]
    return sorted(found)


def why(scene: Scene, uid: str) -> tuple[str, str]:
    found = scene.verdicts[uid].why
    assert found is not None
    return found.reason, found.sentence


def condition(scene: Scene, uid: str, kind: str = "Scheduled") -> str:
    return {one.type: one.status for one in scene.verdicts[uid].conditions}.get(kind, "")


def test_groups_of_a_tree_start_together_or_not_at_all() -> None:
    scene = Scene(nodes(3))
    scene.put(composite("all", 2), group("a", 2, "all"), group("b", 2, "all"))
    scene.put(*pods("a", 2), *pods("b", 2))
    assert bound(scene) == []
    assert why(scene, "tree-all")[0] == "NotEnoughResources"
    scene.put(make_node("more", {"cpu": 1000, "memory": 8 << 30, "pods": 110}))
    assert bound(scene) == ["a", "a", "b", "b"]


def test_a_tree_starts_with_as_many_groups_as_it_needs_and_the_rest_follows_whole() -> None:
    scene = Scene(nodes(5))
    names = ("a", "b", "c")
    scene.put(composite("all", 2), *(group(name, 2, "all") for name in names))
    for name in names:
        scene.put(*pods(name, 2))
    (decision,) = scene.settle()
    assert sorted(scene.pods[one.uid].group_name for one in decision.bindings) == [*"aabb"]
    assert decision.quorum == 4
    scene.run(decision)
    scene.settle()
    assert scene.verdicts["tree-all"].phase == "Running"
    scene.put(make_node("more", {"cpu": 1000, "memory": 8 << 30, "pods": 110}))
    assert bound(scene) == ["c", "c"]


def test_small_groups_are_placed_if_a_large_one_would_be_in_their_way() -> None:
    scene = Scene(nodes(4))
    scene.put(composite("all", 2))
    for name, size in (("large", 3), ("one", 2), ("two", 2)):
        scene.put(group(name, size, "all"), *pods(name, size))
    assert bound(scene) == ["one", "one", "two", "two"]


def test_a_set_inside_a_tree_is_whole_or_absent() -> None:
    """One of two sets is enough, and each needs both of its groups: two groups of different sets
    would not do.
    """
    scene = Scene(nodes(4))
    scene.put(composite("all", 1))
    for name in ("x", "y"):
        scene.put(composite(name, 2, parent="all"))
        for part, size in ((f"{name}1", 3), (f"{name}2", 1)):
            scene.put(group(part, size, name), *pods(part, size))
    assert bound(scene) == ["x1", "x1", "x1", "x2"]


def test_each_level_has_a_domain_of_its_own() -> None:
    racks = [
        make_node(
            f"n{index}",
            {"cpu": 2000, "memory": 8 << 30, "pods": 110},
            labels=(("rack", f"r{index // 2}"), ("zone", f"z{index // 4}")),
        )
        for index in range(8)
    ]
    scene = Scene(racks)
    zone = NetworkTopology(mode="hard", label_key="zone")
    rack = NetworkTopology(mode="hard", label_key="rack")
    scene.put(composite("all", 2), composite("x", 2, parent="all", topology=zone))
    scene.put(composite("y", 1, parent="all", topology=zone))
    for name, parent in (("x1", "x"), ("x2", "x"), ("y1", "y")):
        scene.put(group(name, 4, parent, topology=rack), *pods(name, 4))
    (decision,) = scene.settle()
    labels = {one.name: dict(one.labels) for one in racks}
    places: dict[str, set[tuple[str, str]]] = {}
    for one in decision.bindings:
        where = labels[one.node]
        name = scene.pods[one.uid].group_name
        places.setdefault(name, set()).add((where["zone"], where["rack"]))
    assert len(decision.bindings) == 12
    assert all(len(found) == 1 for found in places.values()), places
    assert {zone for zone, _ in places["x1"]} == {zone for zone, _ in places["x2"]}


def test_each_object_of_a_tree_has_a_verdict_of_its_own() -> None:
    scene = Scene(nodes(5))
    scene.put(composite("all", 1), composite("x", 2, parent="all"))
    scene.put(group("x1", 2, "x"), group("x2", 2, "x"), group("late", 2, "all"))
    scene.put(*pods("x1", 2), *pods("x2", 2), *pods("late", 2))
    scene.put(make_group("other", 4, priority=9), *make_pods("other", 4, CPU))
    scene.settle()
    waiting = {uid: why(scene, uid)[0] for uid in ("tree-all", "tree-x", "group-x1", "group-late")}
    # One of its groups fits beside the other gang, and the tree needs one.
    assert set(waiting.values()) == {"NotEnoughResources"}
    assert scene.verdicts["group-x1"].dialect == "kubernetes"
    assert scene.verdicts["tree-x"].dialect == "kubernetes_composite"
    assert (scene.verdicts["group-x1"].min_member, scene.verdicts["group-x1"].members) == (2, 2)


def test_a_groups_condition_is_true_once_its_own_pods_are_placed() -> None:
    scene = Scene(nodes(5))
    scene.put(composite("all", 1), composite("x", 2, parent="all"))
    scene.put(group("x1", 2, "x"), group("x2", 2, "x"), group("late", 3, "all"))
    scene.put(*pods("x1", 2), *pods("x2", 2), *pods("late", 3))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    scene.step(after_ms=30_000)
    scene.settle()
    found = {uid: condition(scene, uid) for uid in scene.verdicts}
    assert found == {
        "tree-all": "True",
        "tree-x": "True",
        "group-x1": "True",
        "group-x2": "True",
        "group-late": "",
    }
    scene.put(make_node("more", {"cpu": 3000, "memory": 8 << 30, "pods": 110}))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    scene.step(after_ms=30_000)
    scene.settle()
    assert condition(scene, "group-late") == "True"


def test_objects_may_come_in_any_order(golden: Golden) -> None:
    scene = Scene(nodes(4))
    scene.put(*pods("a", 2), *pods("b", 2))
    assert bound(scene) == []
    scene.put(group("a", 2, "x"))
    assert bound(scene) == []
    reason, sentence = why(scene, "group-a")
    assert reason == "GroupMissing"
    golden(sentence)
    scene.put(composite("x", 2, parent="all"), group("b", 2, "x"))
    assert bound(scene) == []
    scene.put(composite("all", 1))
    assert bound(scene) == ["a", "a", "b", "b"]


@pytest.mark.parametrize("names", [("x",), ("x", "y"), ("x", "y", "z")])
def test_a_cycle_is_named_on_every_object_of_the_tree(names: tuple[str, ...]) -> None:
    scene = Scene(nodes(4))
    for name, parent in zip(names, (*names[1:], names[0]), strict=True):
        scene.put(composite(name, 1, parent=parent))
    scene.put(group("a", 1, names[-1]), *pods("a", 1))
    assert bound(scene) == []
    for uid in (*(f"tree-{name}" for name in names), "group-a"):
        reason, sentence = why(scene, uid)
        assert reason == "InvalidGroup"
        assert sentence.startswith("its parents form a cycle: x → ")
        assert sentence.endswith("→ x")


@pytest.mark.parametrize("levels", [LEVELS_MAX, LEVELS_MAX + 1, 3 * LEVELS_MAX])
def test_a_tree_has_at_most_four_levels(levels: int) -> None:
    scene = Scene(nodes(4))
    above = ""
    for level in range(1, levels):
        scene.put(composite(f"c{level}", 1, parent=above))
        above = f"c{level}"
    scene.put(group("a", 1, above), *pods("a", 1))
    if levels <= LEVELS_MAX:
        assert bound(scene) == ["a"]
        return
    assert bound(scene) == []
    reason, sentence = why(scene, "group-a")
    assert reason == "InvalidGroup"
    assert "more than 4 levels of groups" in sentence


def test_groups_of_different_workloads_or_priorities_are_no_tree() -> None:
    scene = Scene(nodes(4))
    scene.put(composite("all", 1, priority=5), *pods("a", 1))
    scene.put(group("a", 1, "all", made_from="v", priority=7))
    assert bound(scene) == []
    _, sentence = why(scene, "tree-all")
    assert "name different Workloads: v, w" in sentence
    assert "have different priorities: 5, 7" in sentence


def test_an_error_of_one_group_keeps_the_tree_waiting_and_names_the_group() -> None:
    scene = Scene(nodes(4))
    scene.put(composite("all", 1), group("a", 1, "all"), group("b", 1, "all", errors=("bad",)))
    scene.put(*pods("a", 1))
    assert bound(scene) == []
    assert why(scene, "group-a") == ("InvalidGroup", "b: bad")
    scene.put(group("b", 1, "all", resource_version=2))
    assert bound(scene) == ["a"]


def test_a_tree_says_which_groups_lack_pods(golden: Golden) -> None:
    scene = Scene(nodes(4))
    scene.put(composite("all", 2), group("a", 1, "all"), group("b", 2, "all"))
    scene.put(*pods("a", 3), *pods("b", 1))
    assert bound(scene) == []
    reason, sentence = why(scene, "tree-all")
    assert reason == "NotEnoughPodsOfSubGroup"
    golden(sentence)


def test_a_tree_of_another_scheduler_has_no_verdict() -> None:
    scene = Scene(nodes(4))
    scene.put(composite("all", 1, shared=True), group("a", 1, "all", shared=True))
    scene.settle()
    assert not scene.verdicts


def test_a_running_tree_survives_a_restart_and_the_loss_of_its_outermost_object() -> None:
    scene = Scene(nodes(4))
    objects = [composite("all", 2), group("a", 1, "all"), group("b", 1, "all")]
    scene.put(*objects, *pods("a", 1), *pods("b", 1))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    scene.load_snapshot(nodes(4), epoch=2, objects=objects)
    assert not scene.settle()
    assert scene.verdicts["tree-all"].phase == "Running"
    scene.remove(objects[0])
    assert not scene.settle()
    assert len(scene.pods) == 2
    again = msgspec.structs.replace(objects[0], uid="tree-again", resource_version=9)
    scene.put(again)
    scene.settle()
    scene.step(after_ms=30_000)
    assert scene.verdicts["tree-again"].phase == "Running"


def test_a_group_that_leaves_its_tree_takes_its_members_along() -> None:
    scene = Scene(nodes(4))
    scene.put(composite("all", 2), group("a", 1, "all"), group("b", 1, "all"))
    scene.put(*pods("a", 1))
    assert bound(scene) == []
    scene.remove(group("a", 1, "all"))
    assert bound(scene) == []
    assert scene.verdicts["group-a"].phase == "Gone"
    scene.put(make_group("a", 1, uid="alone", dialect="kubernetes", scope=PODS, resource_version=5))
    assert bound(scene) == ["a"]


def test_a_lost_member_of_a_tree_keeps_its_place() -> None:
    scene = Scene(nodes(2))
    scene.put(composite("all", 2), group("a", 1, "all"), group("b", 1, "all"))
    scene.put(*pods("a", 1), *pods("b", 1))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    scene.change("a--0", phase="Failed")
    scene.settle()
    (hold,) = scene.holds()
    assert hold.gang is not None
    assert hold.gang.full_name == "team/all"


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_tree_starts_exactly_when_its_smallest_selection_of_groups_fits(
    data: st.DataObject,
) -> None:
    """All pods are equal here, so that the smallest number of members decides."""
    scene = Scene()
    objects: list[Any] = []

    def grow(parent: str, level: int) -> int:
        """Add the groups of a parent; the smallest number of members that completes it."""
        least = []
        for index in range(data.draw(st.integers(1, 3))):
            name = f"{parent}{index}"
            if level < LEVELS_MAX - 1 and data.draw(st.booleans()):
                least.append(grow(name, level + 1))
                continue
            size = data.draw(st.integers(1, 4))
            objects.append(group(name, size, parent))
            objects.extend(pods(name, size))
            least.append(size)
        needed = data.draw(st.integers(1, len(least)))
        objects.append(composite(parent, needed, parent=parent[:-1]))
        return sum(sorted(least)[:needed])

    smallest = grow("r", 1)
    capacity = data.draw(st.integers(max(0, smallest - 2), smallest + 4))
    scene.put(*data.draw(st.permutations([*objects, *nodes(capacity)])))
    placed = bound(scene)
    assert bool(placed) == (capacity >= smallest), (placed, smallest, capacity)
    sizes = {one.name: one.min_member for one in objects if isinstance(one, PodGroup)}
    assert all(placed.count(name) >= sizes[name] for name in set(placed)), placed


def asked_about(scene: Scene, *trees: PodGroup, members: list[Pod]) -> FitAnswer:
    """What the planner answers about a tree of groups that does not exist."""
    declared = GroupTrees()
    for one in trees:
        declared.put(one)
    whole = declared.group_of_gang(key_of_group(trees[0]))
    assert whole is not None
    return scene.planner.would_fit(FitRequest(group=whole, pods=tuple(members)))


def test_a_tree_is_asked_about_as_a_whole() -> None:
    tree = (
        composite("all", 2),
        composite("inner", 1, parent="all"),
        group("a", 2, "all"),
        group("b", 2, "inner"),
        group("c", 3, "inner"),
    )
    members = [*pods("a", 2), *pods("b", 2), *pods("c", 3)]
    answer = asked_about(Scene(nodes(3)), *tree, members=members)
    assert (answer.fits, answer.ever) == (False, False)
    assert "3 of 4 pods fit" in answer.sentence
    answer = asked_about(Scene(nodes(4)), *tree, members=members)
    assert answer.fits
    assert sum(count for _, count in answer.where) == 4


def test_pods_that_are_not_known_yet_are_not_asked_about() -> None:
    tree = composite("all", 2), group("a", 2, "all"), group("b", 2, "all")
    answer = asked_about(Scene(nodes(1)), *tree, members=pods("a", 1))
    assert answer.where == (("n0", 1),)
    answer = asked_about(Scene(nodes(2)), *tree, members=[*pods("a", 2), *pods("b", 1)])
    assert not answer.fits


def test_a_pod_is_asked_about_with_the_pods_of_its_tree_that_wait_already() -> None:
    scene = Scene(nodes(3))
    scene.put(composite("all", 2), group("a", 2, "all"), group("b", 2, "all"))
    scene.put(*pods("a", 2), *pods("b", 1))
    assert bound(scene) == []
    last = msgspec.structs.replace(pods("b", 1)[0], uid="last", name="last")
    alone = make_group("b", 1, dialect="", uid="asked", scope=PODS)
    question = FitRequest(group=alone, pods=(last,))
    assert "only 2 of 4 pods fit" in scene.planner.would_fit(question).sentence
    scene.put(make_node("more", {"cpu": 1000, "memory": 8 << 30, "pods": 110}))
    assert sum(count for _, count in scene.planner.would_fit(question).where) == 4
