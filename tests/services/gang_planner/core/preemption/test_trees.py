"""Trees of groups that lose groups, or all of it, to gangs of higher priority."""

from collections import Counter
from typing import Any

import pytest

from shared.model.objects import PodGroup
from tests.services.gang_planner.core import sub_groups
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.preemption.crowd import WHOLE_GANGS, evictions, names, submit
from tests.services.gang_planner.core.trees import CPU, composite, group, nodes, pods


def crowded(*tree: PodGroup) -> LoggedScene:
    """A tree that runs whole, one pod on each node: all pods of all its groups."""
    sizes = {one.name: one.min_member for one in tree if one.min_groups is None}
    scene = LoggedScene(nodes(*[1] * sum(sizes.values())), conf=WHOLE_GANGS)
    scene.put(*tree)
    for name, size in sizes.items():
        scene.put(*pods(name, size))
    # The extras follow once the needed groups run.
    for _ in range(2):
        scene.until_quiet()
        scene.carry_out(phase="Running")
    scene.until_quiet()
    assert all(pod.node for pod in scene.pods.values())
    return scene


def victims(scene: LoggedScene, size: int) -> dict[str, int]:
    """Group -> pods of it that are evicted for a gang of so many pods."""
    submit(scene, "high", size, priority=10, shape=CPU)
    scene.until_quiet()
    found: dict[str, int] = {}
    for one in evictions(scene):
        for name in names(one.victims):
            of = name.partition("-")[0]
            found[of] = found.get(of, 0) + 1
    return found


def flat(least: int, **fields: Any) -> tuple[PodGroup, ...]:
    """A tree of three groups: of two, two and three pods."""
    sizes = {"a": 2, "b": 2, "c": 3}
    return (
        composite("all", least, **fields),
        *(group(name, size, "all") for name, size in sizes.items()),
    )


def test_a_group_that_its_tree_can_do_without_is_evicted_alone_and_whole() -> None:
    scene = crowded(*flat(2))
    found = victims(scene, 1)
    assert found in ({"a": 2}, {"b": 2})
    scene.carry_out(phase="Running")
    scene.until_quiet()
    assert scene.verdicts["tree-all"].phase == "Running"
    (lost,) = found
    scene.put(group("late", 1, "all"), *pods("late", 1))
    scene.step(after_ms=5000)
    evicted = {
        name: "Evicted" in {one.type for one in scene.verdicts[f"group-{name}"].conditions}
        for name in (lost, "late")
    }
    assert evicted == {lost: True, "late": False}
    assert scene.verdicts[f"group-{lost}"].phase == "Inqueue"


@pytest.mark.parametrize(
    ("tree", "size"),
    [
        pytest.param(flat(3), 1, id="every group is needed"),
        pytest.param(flat(2), 4, id="one group is too small"),
        pytest.param(flat(2, disrupted_whole=True), 1, id="the tree is disrupted as a whole"),
    ],
)
def test_a_tree_that_can_do_without_no_group_is_evicted_whole(
    tree: tuple[PodGroup, ...], size: int
) -> None:
    assert victims(crowded(*tree), size) == {"a": 2, "b": 2, "c": 3}


def test_a_tree_keeps_as_many_groups_as_it_needs() -> None:
    """Two of the three groups may go, also for one gang."""
    found = victims(crowded(*flat(1)), 4)
    assert sum(found.values()) in (4, 5)
    assert len(found) == 2


@pytest.mark.parametrize(("size", "lost"), [(5, 3), (7, 18)])
def test_a_tree_of_many_groups_loses_no_more_than_it_can_do_without(size: int, lost: int) -> None:
    """More units than an exact search examines."""
    tree = composite("all", 15), *(group(f"g{index}", 2, "all") for index in range(18))
    found = victims(crowded(*tree), size)
    assert set(found.values()) == {2}
    assert len(found) == lost


def nested(**inner: Any) -> tuple[PodGroup, ...]:
    """Both sets are needed; `x` needs one of its two groups."""
    return (
        composite("all", 2),
        composite("x", 1, parent="all", **inner),
        composite("y", 1, parent="all"),
        group("x1", 2, "x"),
        group("x2", 1, "x"),
        group("y1", 1, "y"),
    )


def test_a_set_inside_a_tree_loses_the_groups_that_it_can_do_without() -> None:
    assert victims(crowded(*nested()), 1) == {"x2": 1}
    whole = {"x1": 2, "x2": 1, "y1": 1}
    assert victims(crowded(*nested(disrupted_whole=True)), 1) == whole


def test_a_sub_group_that_its_group_can_do_without_is_evicted_alone_and_whole() -> None:
    """The sub-groups of one group, as KAI and Grove have them, are sets as well."""
    scene = LoggedScene(nodes(1, 1, 1, 1), conf=WHOLE_GANGS)
    scene.put(sub_groups.group(sub_groups.part("a", 2), sub_groups.part("b", 2), least=1))
    scene.put(*sub_groups.pods("a", 2), *sub_groups.pods("b", 2))
    for _ in range(2):
        scene.until_quiet()
        scene.carry_out(phase="Running")
    submit(scene, "high", 1, priority=10, shape=CPU)
    scene.until_quiet()
    (eviction,) = evictions(scene)
    evicted = [scene.pods[one.uid].role for one in eviction.victims]
    assert evicted in (["a", "a"], ["b", "b"])


@pytest.mark.parametrize(
    ("needed", "size", "lost"),
    [
        pytest.param({"a": 1, "b": 1}, 1, 1, id="one above a minimum"),
        pytest.param({"a": 1, "b": 1}, 2, 2, id="one above each minimum"),
        pytest.param({"a": 1, "b": 1}, 3, 4, id="more than is above the minima"),
        pytest.param({"a": 2, "b": 1}, 1, 1, id="one sub-group has no more than it needs"),
        pytest.param({"a": 2, "b": 1}, 2, 4, id="the other one has too few"),
    ],
)
def test_pods_above_the_minima_of_sub_groups_are_evicted_before_the_gang(
    needed: dict[str, int], size: int, lost: int
) -> None:
    """As KAI's tests of preemption and reclaim expect: a gang of two sub-groups of two pods each,
    on a full node.
    """
    scene = LoggedScene(nodes(4), conf=WHOLE_GANGS)
    scene.put(sub_groups.group(*(sub_groups.part(name, least) for name, least in needed.items())))
    scene.put(*(pod for name in needed for pod in sub_groups.pods(name, 2)))
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    submit(scene, "high", size, priority=10, shape=CPU)
    scene.until_quiet()
    victims = [name for one in evictions(scene) for name in names(one.victims)]
    left = Counter(pod.role for pod in scene.pods_of("job") if pod.name not in victims)
    assert len(victims) == lost
    assert not left or all(left[name] >= least for name, least in needed.items())
