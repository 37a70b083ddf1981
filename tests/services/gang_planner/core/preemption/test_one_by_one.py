"""Pods of a workload that declares no minimum wait, preempt and change queue each by itself."""

from typing import Any

import msgspec
import pytest

from shared.dialects.kubernetes import DIALECT, SCOPE
from shared.model.objects import Owner, PriorityClass, Queue
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.preemption.crowd import (
    QUARTER,
    cluster,
    evictions,
    running,
    submit,
)
from tests.services.gang_planner.core.scene import make_group, make_pods, make_shape
from tests.shared.dialects.reading import group_read

#: As the reader of PodGroups gives the group that Tutti makes for a workload's pods.
MADE: dict[str, Any] = {"made_for_pods": True, "one_by_one": True}
OWNER = Owner(api_version="apps/v1", kind="DaemonSet", name="high", uid="uid-high")
LOW = 8


def carry_on(scene: LoggedScene) -> None:
    """Everything that is decided is carried out, until nothing more is decided."""
    before = -1
    while len(scene.records) > before:
        before = len(scene.records)
        scene.until_quiet()
        scene.carry_out(phase="Running")


def bound(scene: LoggedScene, stem: str) -> int:
    return sum(bool(pod.node) for pod in scene.pods.values() if pod.name.startswith(stem))


@pytest.fixture
def full() -> LoggedScene:
    """Two nodes, full of quarters of a workload of low priority."""
    scene = cluster(2)
    running(scene, "low", LOW, minimum=1, shape=QUARTER)
    assert bound(scene, "low") == LOW
    return scene


def test_each_pod_of_a_generated_group_preempts(full: LoggedScene) -> None:
    submit(full, "high", 3, minimum=1, priority=10, shape=QUARTER, group=MADE)
    carry_on(full)
    assert bound(full, "high") == 3
    assert sum(len(one.victims) for one in evictions(full)) == 3


def test_each_pod_of_a_kubernetes_group_with_the_policy_basic_preempts(full: LoggedScene) -> None:
    """As kube-scheduler does, and its tests of groups with this policy expect."""
    manifest = """{"metadata": {"namespace": "team", "name": "high", "uid": "uid-high"},
                   "spec": {"schedulingPolicy": {"basic": {}}}}"""
    full.put(group_read(DIALECT, msgspec.json.decode(manifest)))
    full.put(*make_pods("high", 3, QUARTER, priority=10, group_scope=SCOPE))
    carry_on(full)
    assert bound(full, "high") == 3


def test_each_pod_of_an_owner_without_a_group_preempts(full: LoggedScene) -> None:
    unnamed: dict[str, Any] = {"group_name": "", "owner": OWNER, "one_by_one": True}
    full.put(*make_pods("high", 3, QUARTER, priority=10, **unnamed))
    carry_on(full)
    assert bound(full, "high") == 3


def test_pods_that_a_budget_declares_a_gang_preempt_as_one(full: LoggedScene) -> None:
    unnamed: dict[str, Any] = {"group_name": "", "owner": OWNER, "one_by_one": True}
    full.put(
        make_group("high", 2, by_owner=True, owner=OWNER),
        *make_pods("high", 3, QUARTER, priority=10, **unnamed),
    )
    carry_on(full)
    assert bound(full, "high") == 2


def test_members_above_a_declared_minimum_preempt_no_pod(full: LoggedScene) -> None:
    submit(full, "high", 3, minimum=1, priority=10, shape=QUARTER)
    carry_on(full)
    assert bound(full, "high") == 1


def test_members_above_the_number_on_their_pods_preempt_no_pod(full: LoggedScene) -> None:
    declared: dict[str, Any] = {"group_min_member": 2, "group_name": "", "owner": OWNER}
    full.put(*make_pods("high", 3, QUARTER, priority=10, **declared))
    carry_on(full)
    assert bound(full, "high") == 2


def test_a_gang_with_a_minimum_is_not_behind_one_that_may_not_preempt(full: LoggedScene) -> None:
    """Both started, and wait with one pod of the same shape each."""
    submit(full, "declared", 2, minimum=1, priority=10, shape=QUARTER)
    carry_on(full)
    submit(full, "made", 2, minimum=1, priority=10, shape=QUARTER, group=MADE)
    carry_on(full)
    assert (bound(full, "declared"), bound(full, "made")) == (1, 2)


def test_a_small_pod_does_not_wait_for_a_large_sibling() -> None:
    scene = cluster(1)
    running(scene, "busy", 2, shape=QUARTER)
    scene.put(
        make_group("made", 1, **MADE),
        *make_pods("made", 1, make_shape({"cpu": 3000}), role="large"),
        *make_pods("made", 1, QUARTER, role="small"),
    )
    carry_on(scene)
    assert (bound(scene, "made-small"), bound(scene, "made-large")) == (1, 0)


def test_the_queue_of_a_generated_group_is_that_of_its_pods() -> None:
    scene = cluster(1)
    for name in ("first", "second"):
        scene.put(Queue(uid=f"queue-{name}", name=name, dialect="volcano", resource_version=1))
    scene.put(make_group("made", 1, queue="first", **MADE))
    (pod,) = make_pods("made", 1, make_shape({"cpu": 9000}), queue="first")
    scene.put(pod)
    scene.until_quiet()
    assert scene.verdict("made").queue == "first"
    scene.remove(pod)
    scene.put(msgspec.structs.replace(pod, uid="next", queue="second"))
    scene.until_quiet()
    assert scene.verdict("made").queue == "second"


def test_the_priority_of_a_generated_group_is_that_of_its_pods() -> None:
    """It was of class 1 until its template named another one."""
    scene = cluster(1)
    scene.put(
        PriorityClass(uid="c", name="first", resource_version=1, value=1),
        make_group("made", 1, **MADE),
    )
    (pod,) = make_pods("made", 1, make_shape({"cpu": 4000}), priority=1)
    scene.put(pod)
    carry_on(scene)
    scene.remove(pod)
    scene.put(msgspec.structs.replace(pod, uid="next", priority=100))
    carry_on(scene)
    submit(scene, "middle", 1, priority=50)
    carry_on(scene)
    assert (bound(scene, "made"), bound(scene, "middle")) == (1, 0)


def test_a_member_that_succeeded_and_was_made_again_spares_no_other_member() -> None:
    """Found by the simulation (seed 193): one of three needed members was evicted."""
    scene = cluster(1)
    running(scene, "low", 4, minimum=4, shape=QUARTER)
    first = min(scene.pods_of("low"), key=lambda pod: pod.name)
    scene.remove_succeeded(first)
    scene.until_quiet()
    scene.put(msgspec.structs.replace(first, uid="again", node="", phase="Pending"))
    carry_on(scene)
    assert bound(scene, "low") == 4
    submit(scene, "high", 1, minimum=1, priority=10, shape=QUARTER)
    scene.until_quiet()
    assert [len(one.victims) for one in evictions(scene)] == [4]
