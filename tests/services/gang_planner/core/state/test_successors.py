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
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import (
    GPU,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

WORKER = make_shape({GPU: 1})
#: Groups are admitted by the votes of policies.
VOTES = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: proportion}]
"""
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


def running(size: int = 4, *, nodes: int = 4, conf: str = "", **group: Any) -> LoggedScene:
    """`train` runs on all GPUs, and `rival` waits for as many."""
    scene = LoggedScene([make_node(f"node-{i}") for i in range(nodes)], conf=conf)
    made, pods = gang("train", size, **group)
    full = amounts(gpu=4)
    scene.put(Queue(uid="q", dialect="volcano", name="q", resource_version=1, capability=full))
    scene.put(JOB_SET, made, *pods)
    (decision,) = scene.settle()
    scene.carry_out(phase="Running")
    assert len(decision.bindings) == size
    scene.put(make_group("rival", size, created_ms=1), *make_pods("rival", size, WORKER))
    assert scene.settle() == []
    return scene


def group_of(scene: LoggedScene) -> PodGroup:
    return next(
        one for one in scene.objects.values() if isinstance(one, PodGroup) and one.name == "train"
    )


def group_first(scene: LoggedScene) -> None:
    scene.remove(group_of(scene))
    scene.settle()
    for pod in scene.pods_of("train"):
        scene.remove(pod)
        scene.settle()


def pods_first(scene: LoggedScene) -> None:
    for pod in scene.pods_of("train"):
        scene.remove(pod)
        scene.settle()
    scene.remove(group_of(scene))
    scene.settle()


def after_grace(scene: LoggedScene) -> None:
    """All are being deleted for a while, then they go."""
    group = group_of(scene)
    scene.put(msgspec.structs.replace(group, deleting=True, resource_version=9))
    for pod in scene.pods_of("train"):
        scene.change(pod.uid, deleting=True)
    scene.step(after_ms=5_000)
    scene.settle()
    scene.remove(group_of(scene))
    scene.remove_together(*scene.pods_of("train"))
    scene.settle()


def all_failed(scene: LoggedScene) -> None:
    """Every worker dies, then the operator cleans up."""
    for pod in scene.pods_of("train"):
        scene.change(pod.uid, phase="Failed")
    scene.settle()
    scene.step(after_ms=1_000)
    group_first(scene)


def at_once(scene: LoggedScene) -> None:
    scene.remove_together(*scene.pods_of("train"))
    scene.remove(group_of(scene))
    scene.settle()


WAYS = (group_first, pods_first, after_grace, all_failed, at_once)
Way = Callable[[LoggedScene], None]


def decided(scene: LoggedScene) -> list[GangDecision]:
    """What is decided until nothing more is, carried out."""
    found = scene.settle()
    scene.carry_out(phase="Running")
    return [*found, *scene.settle()]


def names(decisions: list[GangDecision]) -> list[str]:
    return [one.gang for one in decisions]


def ends(scene: LoggedScene) -> list[str]:
    return [
        one.reason for _, one in scene.records if isinstance(one, NoteClosed) and one.kind == "hold"
    ]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["train", "train-again"])
def test_a_gang_that_its_workload_makes_again_gets_its_place(way: Way, name: str) -> None:
    scene = running()
    way(scene)
    assert decided(scene) == []
    made, pods = gang(name, 4, life=2)
    scene.put(made)
    assert decided(scene) == []
    scene.put(*pods)
    assert names(decided(scene)) == [f"team/{name}"]
    assert set(ends(scene)) == {"Filled"}
    assert scene.verdict("rival").phase == "Inqueue"


@pytest.mark.parametrize("at_once", [False, True])
def test_pods_that_join_the_group_of_their_workload_later_find_the_place_of_the_first_ones(
    *, at_once: bool
) -> None:
    """As those of a JobSet for which Tutti makes the group: until its controller has written the
    group's name into them, they imply a group of their Job.
    """
    scene = running()
    scene.remove_together(*scene.pods_of("train"))
    scene.settle()
    _, pods = gang("train", 4, life=2)
    scene.put(
        *(
            msgspec.structs.replace(pod, group_name="podgroup-child-2", group_implied=True)
            for pod in pods
        )
    )
    assert decided(scene) == []
    for pod in pods:
        scene.change(pod.uid, group_name="train", group_implied=False)
        if not at_once and pod is not pods[-1]:
            assert decided(scene) == []
    assert names(decided(scene)) == ["team/train"]
    assert set(ends(scene)) == {"Filled"}
    assert scene.verdict("rival").phase == "Inqueue"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("snapshot_first", [False, True])
@pytest.mark.parametrize("checkpoint", [False, True])
def test_what_is_held_for_a_gang_of_which_nothing_is_left_survives_a_planner(
    way: Way, *, snapshot_first: bool, checkpoint: bool
) -> None:
    scene = running(queue="q")
    way(scene)
    scene.restart(snapshot_first=snapshot_first, checkpoint=checkpoint)
    assert decided(scene) == []
    queue = scene.state.queues.entries["q"]
    assert queue.used[scene.state.resources.row(GPU)] == 4
    made, pods = gang("other-name", 4, life=2, queue="q")
    scene.put(made, *pods)
    assert names(decided(scene)) == ["team/other-name"]


@pytest.mark.parametrize("way", WAYS)
def test_when_the_workload_is_deleted_the_next_gang_starts_at_once(way: Way) -> None:
    scene = running()
    scene.remove(JOB_SET)
    way(scene)
    scene.settle()
    assert names([one for _, one in scene.decisions]) == ["team/train", "team/rival"]
    assert {pod.node for pod in scene.pods_of("rival")} == {""}


@pytest.mark.parametrize("way", WAYS)
def test_a_workload_whose_end_is_seen_after_its_pods_ends_the_hold(way: Way) -> None:
    scene = running()
    way(scene)
    assert scene.settle() == []
    scene.remove(JOB_SET)
    assert names(scene.settle()) == ["team/rival"]
    assert set(ends(scene)) == {"WorkloadEnded"}


def test_a_part_that_is_scaled_away_is_not_held() -> None:
    scene = running(part="1")
    scene.put(msgspec.structs.replace(JOB_SET, resource_version=2, parts=1))
    after_grace(scene)
    assert names([one for _, one in scene.decisions]) == ["team/train", "team/rival"]


def test_what_is_held_for_one_part_is_not_given_to_another() -> None:
    scene = running(part="0")
    after_grace(scene)
    made, pods = gang("train-1", 4, life=2, part="1")
    scene.put(made, *pods)
    assert decided(scene) == []
    made, pods = gang("train-0", 4, life=3, part="0")
    scene.put(made, *pods)
    assert names(decided(scene)) == ["team/train-0"]


def test_a_successor_that_never_comes_frees_the_place_when_the_hold_expires() -> None:
    scene = running()
    after_grace(scene)
    (until_ms,) = {hold.until_ms for hold in scene.holds()}
    scene.now_ms = until_ms - 1
    assert scene.settle() == []
    scene.now_ms = until_ms
    assert names(scene.settle()) == ["team/rival"]
    assert set(ends(scene)) == {"Expired"}
    assert not [one for one in scene.state.gangs.gangs.values() if one.name == "train"]


def test_what_a_smaller_successor_does_not_need_is_free_at_once() -> None:
    scene = running()
    after_grace(scene)
    scene.put(make_group("small", 2, created_ms=1), *make_pods("small", 2, WORKER))
    made, pods = gang("train", 2, life=2)
    scene.put(made, *pods)
    assert names(decided(scene)) == ["team/train", "team/small"]
    assert sorted(ends(scene)) == ["Filled", "Filled", "ScaledDown", "ScaledDown"]


def test_a_larger_successor_waits_for_the_rest_and_keeps_what_is_held() -> None:
    scene = running()
    after_grace(scene)
    made, pods = gang("train", 6, life=2)
    scene.put(made, *pods)
    assert decided(scene) == []
    scene.put(make_node("node-4"), make_node("node-5"))
    assert names(decided(scene)) == ["team/train"]


def test_what_a_successor_of_another_shape_cannot_use_is_free_for_others() -> None:
    scene = running()
    after_grace(scene)
    made, pods = gang("train", 4, life=2, shape=make_shape({GPU: 2}))
    scene.put(made, *pods)
    assert names(decided(scene)) == ["team/rival"]
    assert set(ends(scene)) == {"OtherShape"}


@pytest.mark.parametrize("name", ["train", "train-2"])
def test_a_successor_is_admitted_although_its_queue_is_full_of_what_is_held(name: str) -> None:
    scene = running(
        conf=VOTES, queue="q", dialect="volcano", waits_for_inqueue=True, phase="Running"
    )
    after_grace(scene)
    made, pods = gang(
        name,
        4,
        life=2,
        queue="q",
        dialect="volcano",
        waits_for_inqueue=True,
        phase="Pending",
        min_resources=amounts(gpu=4),
    )
    scene.put(made, *pods)
    assert names(decided(scene)) == [f"team/{name}"]


def test_members_that_come_one_by_one_find_what_is_held_as_min_resources_ask_for_all() -> None:
    scene = running(min_resources=amounts(gpu=4))
    after_grace(scene)
    made, pods = gang("train", 4, life=2, min_resources=amounts(gpu=4))
    scene.put(msgspec.structs.replace(made, min_member=1))
    for pod in pods:
        scene.put(pod)
        assert names(decided(scene)) == ["team/train"]


def test_holding_is_off_for_a_group_that_asks_for_none() -> None:
    scene = running(settings=(("tutti.dev/hold-seconds", "0"),))
    group_first(scene)
    assert "team/rival" in names([one for _, one in scene.decisions])


def test_a_gang_that_was_not_started_holds_nothing() -> None:
    scene = LoggedScene(make_node(f"node-{i}") for i in range(4))
    made, pods = gang("train", 4)
    scene.put(JOB_SET, made, *pods)
    scene.settle()
    scene.remove(made)
    scene.remove_together(*pods)
    scene.settle()
    assert scene.holds() == []


def test_every_hold_names_its_workload_in_the_log() -> None:
    scene = running()
    after_grace(scene)
    notes = [one for _, one in scene.records if isinstance(one, NoteOpened) and one.kind == "hold"]
    assert {(one.workload, one.part, one.reason, one.gang_key) for one in notes} == {
        (JOB_SET.uid, "w-0", "GangRestarted", ("name", "team", "train"))
    }
