"""What is held for a gang goes to the gang that its workload makes in its place, and to no other
while the workload lives.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from shared.contracts.decisions import GangDecision, NoteClosed, NoteOpened
from shared.model.objects import Owner, Pod, PodGroup, Queue
from shared.model.reference_objects import Workload
from tests.services.gang_planner.core.scene import (
    GPU,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.services.gang_planner.core.story import Story

WORKER = make_shape({GPU: 1})
JOB_SET = Workload(
    uid="set-train", namespace="team", name="jobsets.jobset.x-k8s.io/train", resource_version=1
)
CHILD = Owner(api_version="batch/v1", kind="Job", name="train-w-0", uid="child-1")


def gang(
    name: str, size: int, *, life: int = 1, shape: bytes = WORKER, part: str = "w-0", **group: Any
) -> tuple[PodGroup, list[Pod]]:
    """A gang that the JobSet makes, in its first or a later life."""
    owner = msgspec.structs.replace(CHILD, uid=f"child-{life}")
    pods = [
        msgspec.structs.replace(one, uid=f"{one.uid}-{life}", workload=JOB_SET.name, part=part)
        for one in make_pods(name, size, shape, owner=owner)
    ]
    made = make_group(name, size, **{"uid": f"group-{name}-{life}", **group})
    return made, pods


def running(size: int = 4, *, nodes: int = 4, **group: Any) -> Story:
    """`train` runs on all GPUs, and `rival` waits for as many."""
    story = Story(make_node(f"node-{i}") for i in range(nodes))
    made, pods = gang("train", size, **group)
    full = amounts(gpu=4)
    story.put(Queue(uid="q", dialect="volcano", name="q", resource_version=1, capability=full))
    story.put(JOB_SET, made, *pods)
    (decision,) = story.settle()
    story.carry_out(phase="Running")
    assert len(decision.bindings) == size
    story.put(make_group("rival", size, created_ms=1), *make_pods("rival", size, WORKER))
    assert story.settle() == []
    return story


def group_of(story: Story) -> PodGroup:
    return next(
        one for one in story.objects.values() if isinstance(one, PodGroup) and one.name == "train"
    )


def group_first(story: Story) -> None:
    story.remove(group_of(story))
    story.settle()
    for pod in story.pods_of("train"):
        story.remove(pod)
        story.settle()


def pods_first(story: Story) -> None:
    for pod in story.pods_of("train"):
        story.remove(pod)
        story.settle()
    story.remove(group_of(story))
    story.settle()


def after_grace(story: Story) -> None:
    """All are being deleted for a while, then they go."""
    group = group_of(story)
    story.put(msgspec.structs.replace(group, deleting=True, resource_version=9))
    for pod in story.pods_of("train"):
        story.change(pod.uid, deleting=True)
    story.step(after_ms=5_000)
    story.settle()
    story.remove(group_of(story))
    story.remove_together(*story.pods_of("train"))
    story.settle()


def all_failed(story: Story) -> None:
    """Every worker dies, then the operator cleans up."""
    for pod in story.pods_of("train"):
        story.change(pod.uid, phase="Failed")
    story.settle()
    story.step(after_ms=1_000)
    group_first(story)


def at_once(story: Story) -> None:
    story.remove_together(*story.pods_of("train"))
    story.remove(group_of(story))
    story.settle()


WAYS = (group_first, pods_first, after_grace, all_failed, at_once)
Way = Callable[[Story], None]


def decided(story: Story) -> list[GangDecision]:
    """What is decided until nothing more is, carried out."""
    found = story.settle()
    story.carry_out(phase="Running")
    return [*found, *story.settle()]


def names(decisions: list[GangDecision]) -> list[str]:
    return [one.gang for one in decisions]


def ends(story: Story) -> list[str]:
    return [
        one.reason for _, one in story.records if isinstance(one, NoteClosed) and one.kind == "hold"
    ]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["train", "train-again"])
def test_a_gang_that_its_workload_makes_again_gets_its_place(way: Way, name: str) -> None:
    story = running()
    way(story)
    assert decided(story) == []
    made, pods = gang(name, 4, life=2)
    story.put(made)
    assert decided(story) == []
    story.put(*pods)
    assert names(decided(story)) == [f"team/{name}"]
    assert set(ends(story)) == {"Filled"}
    assert story.verdict("rival").phase == "Inqueue"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("picture_first", [False, True])
@pytest.mark.parametrize("checkpoint", [False, True])
def test_what_is_held_for_a_gang_of_which_nothing_is_left_survives_a_planner(
    way: Way, *, picture_first: bool, checkpoint: bool
) -> None:
    story = running(queue="q")
    way(story)
    story.restart(picture_first=picture_first, checkpoint=checkpoint)
    assert decided(story) == []
    queue = story.planner._state.queues.entries["q"]
    assert queue.used[story.planner._state.resources.row(GPU)] == 4
    made, pods = gang("other-name", 4, life=2, queue="q")
    story.put(made, *pods)
    assert names(decided(story)) == ["team/other-name"]


@pytest.mark.parametrize("way", WAYS)
def test_when_the_workload_is_deleted_the_next_gang_starts_at_once(way: Way) -> None:
    story = running()
    story.remove(JOB_SET)
    way(story)
    story.settle()
    assert names([one for _, one in story.decisions]) == ["team/train", "team/rival"]
    assert {pod.node for pod in story.pods_of("rival")} == {""}


@pytest.mark.parametrize("way", WAYS)
def test_a_workload_whose_end_is_seen_after_its_pods_ends_the_hold(way: Way) -> None:
    story = running()
    way(story)
    assert story.settle() == []
    story.remove(JOB_SET)
    assert names(story.settle()) == ["team/rival"]
    assert set(ends(story)) == {"WorkloadEnded"}


def test_a_part_that_is_scaled_away_is_not_held() -> None:
    story = running(part="1")
    story.put(msgspec.structs.replace(JOB_SET, resource_version=2, parts=1))
    after_grace(story)
    assert names([one for _, one in story.decisions]) == ["team/train", "team/rival"]


def test_what_is_held_for_one_part_is_not_given_to_another() -> None:
    story = running(part="0")
    after_grace(story)
    made, pods = gang("train-1", 4, life=2, part="1")
    story.put(made, *pods)
    assert decided(story) == []
    made, pods = gang("train-0", 4, life=3, part="0")
    story.put(made, *pods)
    assert names(decided(story)) == ["team/train-0"]


def test_a_successor_that_never_comes_frees_the_place_when_the_hold_expires() -> None:
    story = running()
    after_grace(story)
    (until_ms,) = {hold.until_ms for hold in story.holds()}
    story.now_ms = until_ms - 1
    assert story.settle() == []
    story.now_ms = until_ms
    assert names(story.settle()) == ["team/rival"]
    assert set(ends(story)) == {"Expired"}
    assert not [one for one in story.planner._state.gangs.gangs.values() if one.name == "train"]


def test_what_a_smaller_successor_does_not_need_is_free_at_once() -> None:
    story = running()
    after_grace(story)
    story.put(make_group("small", 2, created_ms=1), *make_pods("small", 2, WORKER))
    made, pods = gang("train", 2, life=2)
    story.put(made, *pods)
    assert names(decided(story)) == ["team/train", "team/small"]
    assert sorted(ends(story)) == ["Filled", "Filled", "ScaledDown", "ScaledDown"]


def test_a_larger_successor_waits_for_the_rest_and_keeps_what_is_held() -> None:
    story = running()
    after_grace(story)
    made, pods = gang("train", 6, life=2)
    story.put(made, *pods)
    assert decided(story) == []
    story.put(make_node("node-4"), make_node("node-5"))
    assert names(decided(story)) == ["team/train"]


def test_what_a_successor_of_another_shape_cannot_use_is_free_for_others() -> None:
    story = running()
    after_grace(story)
    made, pods = gang("train", 4, life=2, shape=make_shape({GPU: 2}))
    story.put(made, *pods)
    assert names(decided(story)) == ["team/rival"]
    assert set(ends(story)) == {"OtherShape"}


def test_a_successor_is_admitted_although_its_queue_is_full_of_what_is_held() -> None:
    story = running(queue="q", dialect="volcano", waits_for_inqueue=True, phase="Running")
    after_grace(story)
    made, pods = gang(
        "train",
        4,
        life=2,
        queue="q",
        dialect="volcano",
        waits_for_inqueue=True,
        phase="Pending",
        min_resources=amounts(gpu=4),
    )
    story.put(made, *pods)
    assert names(decided(story)) == ["team/train"]


def test_members_that_come_one_by_one_find_what_is_held_as_min_resources_ask_for_all() -> None:
    story = running(min_resources=amounts(gpu=4))
    after_grace(story)
    made, pods = gang("train", 4, life=2, min_resources=amounts(gpu=4))
    story.put(msgspec.structs.replace(made, min_member=1))
    for pod in pods:
        story.put(pod)
        assert names(decided(story)) == ["team/train"]


def test_holding_is_off_for_a_group_that_asks_for_none() -> None:
    story = running(settings=(("tutti.dev/hold-seconds", "0"),))
    group_first(story)
    assert "team/rival" in names([one for _, one in story.decisions])


def test_a_gang_that_was_not_started_holds_nothing() -> None:
    story = Story(make_node(f"node-{i}") for i in range(4))
    made, pods = gang("train", 4)
    story.put(JOB_SET, made, *pods)
    story.settle()
    story.remove(made)
    story.remove_together(*pods)
    story.settle()
    assert story.holds() == []


def test_every_hold_names_its_workload_in_the_log() -> None:
    story = running()
    after_grace(story)
    notes = [one for _, one in story.records if isinstance(one, NoteOpened) and one.kind == "hold"]
    assert {(one.workload, one.part, one.reason, one.gang_key) for one in notes} == {
        (JOB_SET.uid, "w-0", "GangRestarted", ("name", "team", "train"))
    }
