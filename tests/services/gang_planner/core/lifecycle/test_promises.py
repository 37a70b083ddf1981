"""Groups that were admitted and have no pods count for the admission of others, for a while."""

from typing import Any

import pytest

from services.gang_planner.core.lifecycle.promises import PROMISED_MS
from shared.contracts.cluster import ResourceQuotaChanges
from shared.model.objects import PodGroup, Queue
from shared.model.reference_objects import ResourceQuota
from tests.services.gang_planner.core.queueing.test_admission import inside
from tests.services.gang_planner.core.scene import (
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

CPU = make_shape({"cpu": 1_000})
GATED = {"gates": ("example.com/quota",)}


def group(name: str, version: int = 1, **fields: Any) -> PodGroup:
    """A group of two pods of one CPU, which its operator creates when the group is Inqueue."""
    defaults: dict[str, Any] = {
        "dialect": "volcano",
        "waits_for_inqueue": True,
        "min_resources": amounts(cpu=2_000),
        "created_ms": 1,
        "resource_version": version,
    }
    return make_group(name, 2, **{**defaults, **fields})


def suspended(scene: Scene, count: int, **fields: Any) -> None:
    """Groups whose pods are never created; the controller writes their phases."""
    for index in range(count):
        scene.put(group(f"empty-{index}", created_ms=index + 1, **fields))
    shown(scene, count, **fields)


def shown(scene: Scene, count: int, **fields: Any) -> None:
    """CLUSTER shows which of these groups are Inqueue."""
    scene.settle()
    for index in range(count):
        if scene.verdict(f"empty-{index}").phase == "Inqueue":
            one = group(f"empty-{index}", 2, created_ms=index + 1, phase="Inqueue", **fields)
            scene.put(one)
    scene.settle()


def sentence(scene: Scene, name: str) -> str:
    scene.settle()
    scene.step(after_ms=0)
    why = scene.verdict(name).why
    assert why is not None
    return why.sentence


def placed(scene: Scene, name: str) -> bool:
    return any(one.gang == f"team/{name}" for _, one in scene.decisions)


def later(scene: Scene, count: int, **fields: Any) -> None:
    scene.step(after_ms=PROMISED_MS)
    shown(scene, count, **fields)


def test_suspended_groups_keep_a_gang_with_pods_waiting_for_a_while_only() -> None:
    """Seven suspended JobSets on an empty node of four CPUs."""
    scene = Scene([make_node("n-0")])
    suspended(scene, 7)
    assert inside(scene, *(f"empty-{index}" for index in range(7))).count(True) == 4
    scene.put(group("job", created_ms=99), *make_pods("job", 2, CPU))
    scene.settle()
    assert not placed(scene, "job")
    words = sentence(scene, "job")
    assert "team/empty-0" in words
    assert "team/empty-3" in words
    assert "for at most 30 s each" in words
    why = scene.verdict("job").why
    assert why is not None
    assert why.ahead == tuple(f"team/empty-{index}" for index in range(4))
    for _ in range(2):
        later(scene, 7)
    assert placed(scene, "job")
    assert "other groups are admitted without regard to it" in sentence(scene, "empty-0")
    assert scene.verdict("empty-0").phase == "Inqueue", "its operator may still create its pods"


def test_they_count_no_longer_for_the_capability_of_their_queue() -> None:
    scene = Scene([make_node("n-0")])
    limit = amounts(cpu=2_000)
    scene.put(Queue(uid="q", dialect="volcano", name="q", resource_version=1, capability=limit))
    suspended(scene, 1, queue="q")
    scene.put(group("job", queue="q", created_ms=99), *make_pods("job", 2, CPU))
    assert "team/empty-0" in sentence(scene, "job")
    assert not placed(scene, "job")
    scene.step(after_ms=PROMISED_MS - 1)
    assert not placed(scene, "job")
    scene.step(after_ms=1)
    scene.settle()
    assert placed(scene, "job")


def test_they_count_no_longer_for_a_resource_quota() -> None:
    conf = "actions: 'enqueue, allocate'\ntiers: [{plugins: [{name: resourcequota}]}]"
    scene = Scene([make_node("n-0")], conf=conf)
    quota = ResourceQuota(
        uid="quota",
        namespace="team",
        name="compute",
        resource_version=1,
        hard=(("requests.cpu", 2_000),),
        used=(("requests.cpu", 0),),
    )
    scene.apply(ResourceQuotaChanges(epoch=1, at_ms=scene.now_ms, changed=(quota,)))
    suspended(scene, 2)
    assert inside(scene, "empty-0", "empty-1") == [True, False]
    assert "team/empty-0" in sentence(scene, "empty-1")
    scene.step(after_ms=PROMISED_MS)
    scene.settle()
    assert inside(scene, "empty-0", "empty-1") == [True, True]


@pytest.mark.parametrize(
    ("count", "fields"),
    [
        pytest.param(1, {}, id="one of two pods exists"),
        pytest.param(2, GATED, id="its pods have a scheduling gate"),
    ],
)
def test_groups_whose_pods_cannot_run_count_no_longer_either(
    count: int, fields: dict[str, Any]
) -> None:
    scene = Scene([make_node("n-0")])
    limit = amounts(cpu=2_000)
    scene.put(Queue(uid="q", dialect="volcano", name="q", resource_version=1, capability=limit))
    suspended(scene, 1, queue="q")
    scene.put(*make_pods("empty-0", count, CPU, **fields))
    scene.put(group("job", queue="q", created_ms=99), *make_pods("job", 2, CPU))
    scene.settle()
    assert not placed(scene, "job")
    scene.step(after_ms=PROMISED_MS)
    scene.settle()
    assert placed(scene, "job")


def test_a_group_whose_pods_come_late_counts_again_and_is_placed() -> None:
    scene = Scene([make_node("n-0")])
    limit = amounts(cpu=2_000)
    scene.put(Queue(uid="q", dialect="volcano", name="q", resource_version=1, capability=limit))
    suspended(scene, 1, queue="q")
    scene.step(after_ms=PROMISED_MS)
    scene.put(*make_pods("empty-0", 2, CPU))
    scene.put(group("job", queue="q", created_ms=99), *make_pods("job", 2, CPU))
    scene.settle()
    assert placed(scene, "empty-0")
    assert not placed(scene, "job")


def test_a_planner_that_takes_over_bounds_them_as_well() -> None:
    scene = Scene([make_node("n-0")])
    limit = amounts(cpu=2_000)
    scene.put(Queue(uid="q", dialect="volcano", name="q", resource_version=1, capability=limit))
    scene.put(group("empty-0", queue="q", phase="Inqueue"))
    scene.put(group("job", queue="q", created_ms=99), *make_pods("job", 2, CPU))
    scene.settle()
    assert not placed(scene, "job")
    scene.step(after_ms=PROMISED_MS)
    scene.settle()
    assert placed(scene, "job")
