"""Queues take back what they deserve, never more, from queues that hold more than they deserve."""

from typing import Any

from shared.model.objects import Queue
from tests.services.gang_planner.core.logged_scene import LoggedScene
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

FLAGS = "name: gang, enablePreemptable: false, enableReclaimable: false"
RECLAIM = configured("enqueue, allocate, reclaim, backfill", FLAGS, "  - name: proportion\n")
BOTH = configured("enqueue, allocate, preempt, reclaim, backfill", FLAGS, "  - name: proportion\n")
CAPACITY = configured(
    "enqueue, allocate, reclaim, backfill",
    FLAGS,
    "  - {name: capacity, enableHierarchy: true}\n",
)


def queues(scene: LoggedScene, *named: str, **fields: Any) -> None:
    for name in named:
        scene.put(Queue(uid=name, dialect="volcano", name=name, resource_version=1, **fields))


def test_a_queue_takes_back_its_share_from_one_that_has_all() -> None:
    scene = cluster(4, RECLAIM)
    queues(scene, "rich", "poor")
    running(scene, "all", 4, minimum=1, group={"queue": "rich"})
    submit(scene, "late", 2, group={"queue": "poor"})
    scene.until_quiet()
    (eviction,) = evictions(scene)
    assert (eviction.reason, len(eviction.victims)) == ("Reclaimed", 2)
    accept(scene)
    leave(scene)
    scene.until_quiet()
    assert len(decided(scene, "late")) == 1


def test_priorities_do_not_count_between_queues() -> None:
    scene = cluster(2, RECLAIM)
    queues(scene, "rich", "poor")
    running(scene, "all", 2, minimum=1, priority=100, group={"queue": "rich"})
    submit(scene, "late", 1, group={"queue": "poor"})
    scene.until_quiet()
    assert len(evictions(scene)) == 1


def test_a_gang_larger_than_what_its_queue_deserves_reclaims_from_no_queue() -> None:
    scene = cluster(4, RECLAIM)
    queues(scene, "rich", "poor")
    running(scene, "all", 4, minimum=1, group={"queue": "rich"})
    submit(scene, "late", 3, group={"queue": "poor"})
    scene.until_quiet()
    assert evictions(scene) == []


def test_capacity_that_victims_have_not_left_yet_raises_no_queues_share() -> None:
    """It is charged to victims and to their preemptor. Their queue would take back what another
    queue reclaims in the meantime beyond its share of what there is.
    """
    scene = cluster(6, BOTH)
    queues(scene, "rich", "poor")
    running(scene, "low", 6, minimum=4, group={"queue": "rich"})
    submit(scene, "high", 2, priority=10, group={"queue": "rich"})
    scene.until_quiet()
    accept(scene)
    # Half of 24 CPUs are 12; victims and preemptor together hold 8 of them twice.
    submit(scene, "late", 4, group={"queue": "poor"})
    scene.until_quiet()
    assert [one.reason for one in evictions(scene)] == ["Preempted"]
    leave(scene)
    scene.until_quiet()
    assert [one.reason for one in evictions(scene)] == ["Preempted"]
    submit(scene, "small", 3, group={"queue": "poor"})
    scene.until_quiet()
    assert [one.reason for one in evictions(scene)] == ["Preempted", "Reclaimed"]


def test_reclaim_goes_on_above_the_quorum_up_to_the_fair_share_and_stops_there() -> None:
    scene = cluster(4, RECLAIM)
    queues(scene, "rich", "poor")
    running(scene, "all", 4, minimum=1, group={"queue": "rich"})
    submit(scene, "late", 4, minimum=1, group={"queue": "poor"})
    for _ in range(6):
        scene.until_quiet()
        accept(scene)
        leave(scene)
        scene.carry_out(phase="Running")
    assert (scene.bound("late"), scene.bound("all")) == (2, 2)
    assert sum(len(one.victims) for one in evictions(scene)) == 2


def test_what_a_queue_is_guaranteed_is_never_taken() -> None:
    scene = cluster(4, RECLAIM)
    queues(scene, "poor")
    queues(scene, "rich", guarantee=amounts(cpu=16000))
    running(scene, "all", 4, group={"queue": "rich"})
    submit(scene, "late", 1, group={"queue": "poor"})
    scene.until_quiet()
    assert evictions(scene) == []


def test_a_queue_that_is_not_reclaimable_gives_nothing() -> None:
    scene = cluster(2, RECLAIM)
    queues(scene, "poor")
    queues(scene, "rich", reclaimable=False)
    running(scene, "all", 2, minimum=1, group={"queue": "rich"})
    submit(scene, "late", 1, group={"queue": "poor"})
    scene.until_quiet()
    assert evictions(scene) == []


def test_a_whole_gang_goes_when_its_queue_holds_more_than_it_deserves() -> None:
    scene = cluster(4, RECLAIM)
    queues(scene, "rich", "poor")
    running(scene, "all", 4, group={"queue": "rich"})
    submit(scene, "late", 2, group={"queue": "poor"})
    scene.until_quiet()
    (eviction,) = evictions(scene)
    assert len(eviction.victims) == 4


def test_of_what_a_queue_has_too_much_that_goes_which_helps() -> None:
    """It gives one of two pods: what may be taken was fixed before it was asked what helps."""
    scene = cluster(2, RECLAIM)
    queues(scene, "rich")
    queues(scene, "third", reclaimable=False)
    queues(scene, "poor", weight=2)
    there(scene, "a", 2000, "n00", "rich")
    there(scene, "b", 2000, "n01", "rich")
    there(scene, "c", 2000, "n00", "third")
    there(scene, "d", 1000, "n01", "third")
    submit(scene, "late", 1, shape=make_shape({"cpu": 3000}), group={"queue": "poor"})
    scene.until_quiet()
    (eviction,) = evictions(scene)
    assert names(eviction.victims) == ["b-worker-0"]


def test_a_queue_takes_back_from_its_sibling_though_their_parent_has_all_that_it_deserves() -> None:
    """What one child loses to another changes nothing for the parent."""
    scene = cluster(4, CAPACITY)
    team = amounts(cpu=16000)
    half = amounts(cpu=8000)
    queues(scene, "team", parent="root", deserved=team)
    queues(scene, "rich", "poor", parent="team", deserved=half)
    running(scene, "all", 4, minimum=1, group={"queue": "rich"})
    submit(scene, "late", 2, group={"queue": "poor"})
    scene.until_quiet()
    (eviction,) = evictions(scene)
    assert len(eviction.victims) == 2
    accept(scene)
    leave(scene)
    scene.until_quiet()
    assert len(decided(scene, "late")) == 1


def test_a_queue_reclaims_from_no_queue_outside_a_parent_that_has_its_whole_share() -> None:
    scene = cluster(4, CAPACITY)
    queues(scene, "team", parent="root", deserved=amounts(cpu=8000))
    queues(scene, "mate", "poor", parent="team", deserved=amounts(cpu=8000))
    queues(scene, "other", parent="root", deserved=amounts(cpu=4000))
    running(scene, "mates", 2, group={"queue": "mate", "preemptable": False})
    running(scene, "others", 2, minimum=1, group={"queue": "other"})
    submit(scene, "late", 1, group={"queue": "poor"})
    scene.until_quiet()
    assert [names(one.victims) for one in evictions(scene)] == []


def there(scene: LoggedScene, name: str, cpu: int, node: str, queue: str) -> None:
    """A gang of one runs on a node."""
    shape = make_shape({"cpu": cpu})
    fields: dict[str, Any] = {"node": node, "phase": "Running", "started_ms": 1_000}
    submit(scene, name, 1, shape=shape, group={"queue": queue}, **fields)
    scene.until_quiet()


def test_members_above_a_minimum_reclaim_no_pod_that_is_a_gang_of_its_own() -> None:
    scene = cluster(4, RECLAIM)
    queues(scene, "rich", "poor")
    for name in ("a", "b", "c"):
        running(scene, name, 1, group={"queue": "rich"})
    running(scene, "late", 1, group={"queue": "poor"})
    scene.put(*make_pods("late", 2, WHOLE_NODE)[1:])
    scene.until_quiet()
    assert evictions(scene) == []


def test_nothing_is_reclaimed_for_a_gang_that_is_evicted_whole_in_the_same_cycle() -> None:
    """Its members are placed together again after that, wherever there is room then."""
    scene = cluster(6, BOTH)
    queues(scene, "rich")
    queues(scene, "poor", weight=5)
    running(scene, "all", 4, minimum=1, group={"queue": "rich"})
    running(scene, "low", 2, group={"queue": "poor"})
    scene.put(*make_pods("low", 3, WHOLE_NODE)[2:])
    submit(scene, "high", 2, priority=10, group={"queue": "poor"})
    scene.until_quiet()
    assert [one.reason for one in evictions(scene)] == ["Preempted"]
