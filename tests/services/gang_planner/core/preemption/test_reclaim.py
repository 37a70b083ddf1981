"""Queues take back what they deserve, never more, from queues that hold more than they deserve."""

from typing import Any

from shared.model.objects import Queue
from tests.services.gang_planner.core.preemption.crowd import (
    WHOLE_NODE,
    accept,
    cluster,
    configured,
    decided,
    evictions,
    leave,
    names,
    running,
    submit,
)
from tests.services.gang_planner.core.scene import amounts, make_pods, make_shape
from tests.services.gang_planner.core.story import Story

FLAGS = "name: gang, enablePreemptable: false, enableReclaimable: false"
RECLAIM = configured("enqueue, allocate, reclaim, backfill", FLAGS, "  - name: proportion\n")
CAPACITY = configured(
    "enqueue, allocate, reclaim, backfill",
    FLAGS,
    "  - {name: capacity, enableHierarchy: true}\n",
)


def queues(story: Story, *named: str, **fields: Any) -> None:
    for name in named:
        story.put(Queue(uid=name, dialect="volcano", name=name, resource_version=1, **fields))


def test_a_queue_takes_back_its_share_from_one_that_has_all() -> None:
    story = cluster(4, RECLAIM)
    queues(story, "rich", "poor")
    running(story, "all", 4, minimum=1, group={"queue": "rich"})
    submit(story, "late", 2, group={"queue": "poor"})
    story.until_quiet()
    (eviction,) = evictions(story)
    assert (eviction.reason, len(eviction.victims)) == ("Reclaimed", 2)
    accept(story)
    leave(story)
    story.until_quiet()
    assert len(decided(story, "late")) == 1


def test_priorities_do_not_count_between_queues() -> None:
    story = cluster(2, RECLAIM)
    queues(story, "rich", "poor")
    running(story, "all", 2, minimum=1, priority=100, group={"queue": "rich"})
    submit(story, "late", 1, group={"queue": "poor"})
    story.until_quiet()
    assert len(evictions(story)) == 1


def test_a_gang_larger_than_what_its_queue_deserves_takes_from_nobody() -> None:
    story = cluster(4, RECLAIM)
    queues(story, "rich", "poor")
    running(story, "all", 4, minimum=1, group={"queue": "rich"})
    submit(story, "late", 3, group={"queue": "poor"})
    story.until_quiet()
    assert evictions(story) == []


def test_reclaim_goes_on_above_the_quorum_up_to_the_fair_share_and_stops_there() -> None:
    story = cluster(4, RECLAIM)
    queues(story, "rich", "poor")
    running(story, "all", 4, minimum=1, group={"queue": "rich"})
    submit(story, "late", 4, minimum=1, group={"queue": "poor"})
    for _ in range(6):
        story.until_quiet()
        accept(story)
        leave(story)
        story.carry_out(phase="Running")
    assert (story.bound("late"), story.bound("all")) == (2, 2)
    assert sum(len(one.victims) for one in evictions(story)) == 2


def test_what_a_queue_is_guaranteed_is_never_taken() -> None:
    story = cluster(4, RECLAIM)
    queues(story, "poor")
    queues(story, "rich", guarantee=amounts(cpu=16000))
    running(story, "all", 4, group={"queue": "rich"})
    submit(story, "late", 1, group={"queue": "poor"})
    story.until_quiet()
    assert evictions(story) == []


def test_a_queue_that_is_not_reclaimable_gives_nothing() -> None:
    story = cluster(2, RECLAIM)
    queues(story, "poor")
    queues(story, "rich", reclaimable=False)
    running(story, "all", 2, minimum=1, group={"queue": "rich"})
    submit(story, "late", 1, group={"queue": "poor"})
    story.until_quiet()
    assert evictions(story) == []


def test_a_whole_gang_goes_when_its_queue_holds_more_than_it_deserves() -> None:
    story = cluster(4, RECLAIM)
    queues(story, "rich", "poor")
    running(story, "all", 4, group={"queue": "rich"})
    submit(story, "late", 2, group={"queue": "poor"})
    story.until_quiet()
    (eviction,) = evictions(story)
    assert len(eviction.victims) == 4


def test_of_what_a_queue_has_too_much_that_goes_which_helps() -> None:
    """It gives one of two pods: what may be taken was fixed before it was asked what helps."""
    story = cluster(2, RECLAIM)
    queues(story, "rich")
    queues(story, "third", reclaimable=False)
    queues(story, "poor", weight=2)
    there(story, "a", 2000, "n00", "rich")
    there(story, "b", 2000, "n01", "rich")
    there(story, "c", 2000, "n00", "third")
    there(story, "d", 1000, "n01", "third")
    submit(story, "late", 1, shape=make_shape({"cpu": 3000}), group={"queue": "poor"})
    story.until_quiet()
    (eviction,) = evictions(story)
    assert names(eviction.victims) == ["b-worker-0"]


def test_a_queue_takes_back_from_its_sibling_though_their_parent_has_all_that_it_deserves() -> None:
    """What one child loses to another changes nothing for the parent."""
    story = cluster(4, CAPACITY)
    team = amounts(cpu=16000)
    half = amounts(cpu=8000)
    queues(story, "team", parent="root", deserved=team)
    queues(story, "rich", "poor", parent="team", deserved=half)
    running(story, "all", 4, minimum=1, group={"queue": "rich"})
    submit(story, "late", 2, group={"queue": "poor"})
    story.until_quiet()
    (eviction,) = evictions(story)
    assert len(eviction.victims) == 2
    accept(story)
    leave(story)
    story.until_quiet()
    assert len(decided(story, "late")) == 1


def test_a_queue_takes_from_nobody_outside_a_parent_that_has_all_that_it_deserves() -> None:
    story = cluster(4, CAPACITY)
    queues(story, "team", parent="root", deserved=amounts(cpu=8000))
    queues(story, "mate", "poor", parent="team", deserved=amounts(cpu=8000))
    queues(story, "other", parent="root", deserved=amounts(cpu=4000))
    running(story, "mates", 2, group={"queue": "mate", "preemptable": False})
    running(story, "others", 2, minimum=1, group={"queue": "other"})
    submit(story, "late", 1, group={"queue": "poor"})
    story.until_quiet()
    assert [names(one.victims) for one in evictions(story)] == []


def there(story: Story, name: str, cpu: int, node: str, queue: str) -> None:
    """A gang of one runs on a node."""
    shape = make_shape({"cpu": cpu})
    fields: dict[str, Any] = {"node": node, "phase": "Running", "started_ms": 1_000}
    submit(story, name, 1, shape=shape, group={"queue": queue}, **fields)
    story.until_quiet()


def test_members_above_a_minimum_reclaim_no_pod_that_is_a_gang_of_its_own() -> None:
    story = cluster(4, RECLAIM)
    queues(story, "rich", "poor")
    for name in ("a", "b", "c"):
        running(story, name, 1, group={"queue": "rich"})
    running(story, "late", 1, group={"queue": "poor"})
    story.put(*make_pods("late", 2, WHOLE_NODE)[1:])
    story.until_quiet()
    assert evictions(story) == []
