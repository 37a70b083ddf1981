"""What is suggested lets the gang start: each suggestion is applied to a scene of its own."""

from typing import Any

import msgspec
import pytest

from services.gang_planner.estimator import suggestions_now
from shared.model.objects import Queue, Resources, Taint, Toleration
from tests.services.gang_planner.core.forecast.test_estimates import FULL, busy
from tests.services.gang_planner.core.foresight.test_reservations import (
    runs,
    scene_of,
    start,
    submit,
)
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape
from tests.services.gang_planner.core.topology import racks
from tests.support.golden import Golden


def suggestions(scene: LoggedScene, name: str) -> dict[str, str]:
    answer = suggestions_now(scene.planner, scene.now_ms, f"group-{name}", within_s=60)
    return {suggestion.kind: suggestion.change for suggestion in answer.suggestions}


def two_of_four_free() -> LoggedScene:
    """A gang of four waits: two nodes are free, `own` and `other` have one each."""
    scene = scene_of(4)
    assert start(scene, "own", 1)
    others: Any = {"namespace": "others"}
    scene.put(make_group("other", 1, **others), *make_pods("other", 1, FULL, **others))
    scene.until_quiet(within_ms=1_000)
    scene.carry_out(phase="Running")
    assert not start(scene, "four", 4)
    return scene


def test_changes_of_a_gang_that_is_too_large_for_now(golden: Golden) -> None:
    found = suggestions(two_of_four_free(), "four")
    assert set(found) == {"minimum", "requests", "nodes"}
    golden(*found.values())


def test_a_smaller_minimum_suffices_and_none_in_between() -> None:
    for minimum, starts in ((2, True), (3, False)):
        scene = two_of_four_free()
        group = scene.objects["group-four"]
        changed = {"min_member": minimum, "resource_version": 2}
        scene.put(msgspec.structs.replace(group, **changed))
        assert runs(scene, "four") is starts


def test_as_many_nodes_suffice_and_no_fewer() -> None:
    for count, starts in ((2, True), (1, False)):
        scene = two_of_four_free()
        scene.put(*(make_node(f"more{at}") for at in range(count)))
        assert runs(scene, "four") is starts


def test_smaller_requests_suffice() -> None:
    scene = two_of_four_free()
    scene.remove(scene.objects["group-four"], *scene.pods_of("four"))
    assert start(scene, "four", 4, shape=make_shape({"cpu": 2000}))


def test_the_end_of_a_gang_of_the_same_namespace(golden: Golden) -> None:
    scene = scene_of(4)
    assert start(scene, "own", 2)
    others: Any = {"namespace": "others"}
    scene.put(make_group("other", 2, **others), *make_pods("other", 2, FULL, **others))
    scene.until_quiet(within_ms=1_000)
    scene.carry_out(phase="Running")
    assert not start(scene, "two", 2)
    found = suggestions(scene, "two")
    golden(found["end"])
    assert "other" not in " ".join(found.values())
    scene.remove(*scene.pods_of("own"))
    assert runs(scene, "two")


def test_a_shorter_run_limit_beside_a_reservation(golden: Golden) -> None:
    scene = scene_of(4)
    assert start(scene, "runs", 2, minutes=30)
    assert not start(scene, "whole", 4, minutes=60)
    assert not start(scene, "late", 2, minutes=90)
    found = suggestions(scene, "late")
    golden(found["runLimit"])
    scene.put(make_group("late", 2, run_limit_s=29 * 60, resource_version=2))
    assert runs(scene, "late")


def queue_of(name: str, capability: Resources = ()) -> Queue:
    named: Any = {"uid": name, "name": name, "dialect": "volcano", "resource_version": 1}
    return Queue(**named, capability=capability)


@pytest.mark.parametrize("kind", ["queue", "tolerations", "nodeRules"])
def test_rules_that_keep_a_gang_out(kind: str, golden: Golden) -> None:
    scene, shape, queue = scene_of(2), FULL, "default"
    if kind == "queue":
        queue = "small"
        scene.put(queue_of("small", (("cpu", 1000),)), queue_of("large"))
    elif kind == "tolerations":
        taints = (Taint(key="gpu", value="true", effect="NoSchedule"),)
        scene.put(*(make_node(f"n{at}", resource_version=2, taints=taints) for at in range(2)))
    else:
        shape = make_shape({"cpu": 4000}, node_selector=(("disk", "fast"),))
    assert not start(scene, "a", 1, shape=shape, queue=queue)
    found = suggestions(scene, "a")
    golden(found[kind])
    scene.remove(scene.objects["group-a"], *scene.pods_of("a"))
    tolerant = (Toleration(key="gpu", operator="Equal", value="true", effect="NoSchedule"),)
    again = make_shape({"cpu": 4000}, tolerations=tolerant if kind == "tolerations" else ())
    assert start(scene, "b", 1, shape=again, queue="large" if kind == "queue" else "default")


def test_a_topology_that_is_soft_instead_of_hard(golden: Golden) -> None:
    """No rack holds ten members of a CPU."""
    cluster, shape = racks.scene(), make_shape({"cpu": 1000})
    cluster.put(
        make_group("a", 10, topology=racks.ONE_RACK), *make_pods("a", 10, shape, owner=None)
    )
    assert not cluster.settle()
    answer = suggestions_now(cluster.planner, cluster.now_ms, "group-a", within_s=60)
    (change,) = (each.change for each in answer.suggestions if each.kind == "topology")
    golden(change)
    soft = msgspec.structs.replace(racks.ONE_RACK, mode="soft")
    cluster.put(make_group("b", 10, topology=soft), *make_pods("b", 10, shape))
    assert [decision.gang for decision in cluster.settle()] == ["team/b"]


def test_gangs_before_it_take_what_would_be_enough() -> None:
    """A gang of the same size waits before it, so it gets the second pair of nodes only."""
    scene = busy(limit_minutes=0)
    submit(scene, "a", 2)
    submit(scene, "b", 2)
    scene.until_quiet(within_ms=1_000)
    assert suggestions(scene, "a")["nodes"].startswith("with 2 more nodes like n0 (")
    assert suggestions(scene, "b")["nodes"].startswith("with 4 more nodes like n0 (")


def test_gangs_that_do_not_wait_for_capacity_get_none(golden: Golden) -> None:
    scene = busy()
    scene.put(make_group("part", 3), *make_pods("part", 2, FULL))
    scene.until_quiet(within_ms=1_000)
    names = "all", "part", "none"
    answers = [suggestions_now(scene.planner, scene.now_ms, f"group-{name}") for name in names]
    assert not any(answer.suggestions for answer in answers)
    golden(*(answer.sentence for answer in answers))


def test_trying_changes_nothing() -> None:
    scene, other = two_of_four_free(), two_of_four_free()
    assert suggestions(scene, "four") == suggestions(scene, "four")
    for each in (scene, other):
        each.put(*(make_node(f"more{at}") for at in range(2)))
        each.until_quiet(within_ms=60_000)
    assert list(map(repr, scene.records)) == list(map(repr, other.records))
