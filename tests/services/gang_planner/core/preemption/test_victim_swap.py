"""Members of a gang that count more take the place of others of it that count less."""

import msgspec
import pytest

from shared.model.objects import Pod
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.preemption.crowd import (
    WHOLE_NODE,
    accept,
    cluster,
    configured,
    decided,
    ends,
    evictions,
    leave,
    names,
    running,
)
from tests.services.gang_planner.core.scene import make_pods
from tests.support.golden import Golden


def full_of_one_gang(minimum: int = 1, conf: str = "") -> tuple[LoggedScene, list[Pod]]:
    """A gang fills the cluster, and a member that counts more comes late."""
    scene = cluster(3, conf or configured())
    workers = running(scene, "job", 3, minimum=minimum)
    (master,) = make_pods("job", 1, WHOLE_NODE, role="master")
    scene.put(msgspec.structs.replace(master, task_priority=5))
    scene.until_quiet()
    return scene, workers


@pytest.mark.parametrize("taken_over", [False, True])
def test_the_one_that_counts_more_is_bound_and_the_one_made_again_waits(taken_over: bool) -> None:
    scene, workers = full_of_one_gang()
    (eviction,) = evictions(scene)
    assert (eviction.gang, len(eviction.victims)) == ("team/job", 1)
    accept(scene)
    if taken_over:
        scene.restart()
    scene.make_again(workers)
    leave(scene)
    again = scene.make_again(workers)
    scene.until_quiet()
    last = decided(scene, "job")[-1]
    assert [one.name for one in last.bindings] == ["job-master-0"]
    assert scene.notes("hold") == [], "no room is held for a pod that was evicted for another"
    scene.carry_out(phase="Running")
    scene.until_quiet(within_ms=600_000)
    assert scene.bound("job") == 3
    assert not scene.pods[again[0].uid].node
    assert (len(evictions(scene)), ends(scene)) == (1, [])


def test_the_gang_says_that_one_of_its_own_pods_went_for_another(golden: Golden) -> None:
    scene, _ = full_of_one_gang()
    accept(scene)
    scene.until_quiet()
    published = scene.condition("job", "Evicted")
    assert published is not None
    golden(published.message)


def test_a_gang_at_its_minimum_stays_as_it_is() -> None:
    scene, _ = full_of_one_gang(minimum=3)
    assert evictions(scene) == []


def test_gangpreempt_evicts_no_pod_for_a_member_of_the_same_gang() -> None:
    scene, _ = full_of_one_gang(conf=configured("enqueue, allocate, gangpreempt, backfill"))
    assert evictions(scene) == []


def test_a_member_above_the_minimum_takes_a_members_place_and_no_other_gangs() -> None:
    scene = cluster(3)
    running(scene, "job", 2, minimum=1, priority=3)
    running(scene, "low", 1, minimum=0)
    (master,) = make_pods("job", 1, WHOLE_NODE, role="master", priority=3)
    scene.put(msgspec.structs.replace(master, task_priority=5))
    scene.until_quiet()
    (eviction,) = evictions(scene)
    assert names(eviction.victims) == ["job-worker-0"]
