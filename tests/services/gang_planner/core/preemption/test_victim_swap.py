"""Members of a gang that count more take the place of others of it that count less."""

import msgspec
import pytest

from shared.model.objects import Pod
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
from tests.services.gang_planner.core.story import Story


def full_of_one_gang(minimum: int = 1, conf: str = "") -> tuple[Story, list[Pod]]:
    """A gang fills the cluster, and a member that counts more comes late."""
    story = cluster(3, conf or configured())
    workers = running(story, "job", 3, minimum=minimum)
    (master,) = make_pods("job", 1, WHOLE_NODE, role="master")
    story.put(msgspec.structs.replace(master, task_priority=5))
    story.until_quiet()
    return story, workers


@pytest.mark.parametrize("taken_over", [False, True])
def test_the_one_that_counts_more_is_bound_and_the_one_made_again_waits(taken_over: bool) -> None:
    story, workers = full_of_one_gang()
    (eviction,) = evictions(story)
    assert (eviction.gang, len(eviction.victims)) == ("team/job", 1)
    accept(story)
    if taken_over:
        story.restart()
    story.make_again(workers)
    leave(story)
    again = story.make_again(workers)
    story.until_quiet()
    last = decided(story, "job")[-1]
    assert [one.name for one in last.bindings] == ["job-master-0"]
    assert story.notes("hold") == [], "nobody is owed room for a pod that was evicted for another"
    story.carry_out(phase="Running")
    story.until_quiet(within_ms=600_000)
    assert story.bound("job") == 3
    assert not story.pods[again[0].uid].node
    assert (len(evictions(story)), ends(story)) == (1, [])


def test_the_gang_says_that_one_of_its_own_pods_went_for_another() -> None:
    story, _ = full_of_one_gang()
    accept(story)
    story.until_quiet()
    told = story.condition("job", "Evicted")
    assert told is not None
    assert told.message == "1 of its pods was preempted for others of the same gang that count more"


def test_a_gang_at_its_minimum_stays_as_it_is() -> None:
    story, _ = full_of_one_gang(minimum=3)
    assert evictions(story) == []


def test_gangpreempt_takes_nobody_for_a_member_of_the_same_gang() -> None:
    story, _ = full_of_one_gang(conf=configured("enqueue, allocate, gangpreempt, backfill"))
    assert evictions(story) == []


def test_a_member_above_the_minimum_takes_a_members_place_and_no_other_gangs() -> None:
    story = cluster(3)
    running(story, "job", 2, minimum=1, priority=3)
    running(story, "low", 1, minimum=0)
    (master,) = make_pods("job", 1, WHOLE_NODE, role="master", priority=3)
    story.put(msgspec.structs.replace(master, task_priority=5))
    story.until_quiet()
    (eviction,) = evictions(story)
    assert names(eviction.victims) == ["job-worker-0"]
