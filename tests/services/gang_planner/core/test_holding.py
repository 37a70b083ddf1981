"""Room held for members that a started gang has lost: for whom, where, how long, and who outranks
it.
"""

from typing import Any

import msgspec
import pytest

from services.gang_planner.core.planner import Planner
from shared.contracts import annotations
from shared.contracts.cluster import PodChanges
from shared.contracts.decisions import (
    Cycle,
    EpochOpened,
    GangDecision,
    GangStarted,
    NoteClosed,
    NoteOpened,
)
from shared.model.objects import Pod, PriorityClass, Queue, Taint
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

WORKER = make_shape({GPU: 1})
SMALLER = make_shape({GPU: 1, "cpu": 500})


def running(size: int = 3, *, nodes: int = 3, minimum: int | None = None) -> Scene:
    """A gang `job` of `size` workers, one GPU each, running one to a node."""
    scene = Scene(make_node(f"node-{i}") for i in range(nodes))
    scene.put(make_group("job", size if minimum is None else minimum))
    scene.put(*make_pods("job", size, WORKER))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    return scene


def queue_up(scene: Scene, name: str = "rival") -> None:
    """A gang that waits for a GPU."""
    scene.put(make_group(name, 1, created_ms=1))
    scene.put(*make_pods(name, 1, WORKER))
    assert scene.settle() == []


def successor(index: int, *, shape: bytes = WORKER) -> Pod:
    """The pod that the controller makes again."""
    pod = make_pods("job", index + 1, shape)[index]
    return msgspec.structs.replace(pod, uid=f"{pod.uid}-again")


def place_of(scene: Scene, uid: str) -> str:
    return scene.pods[uid].node


def opened(scene: Scene) -> list[NoteOpened]:
    return [one for _, one in scene.records if isinstance(one, NoteOpened) and one.kind == "hold"]


def closed(scene: Scene) -> list[str]:
    return [
        one.reason for _, one in scene.records if isinstance(one, NoteClosed) and one.kind == "hold"
    ]


def bound_of(decisions: list[GangDecision]) -> dict[str, str]:
    return {one.uid: one.node for decision in decisions for one in decision.bindings}


def test_seed_002_a_pod_that_dies_gets_its_place_back_while_others_wait() -> None:
    """kube-batch's documented flaw: "if a pod of the job dies when the job is still running, it
    might give other pods chance to occupy the resources and cause deadlock".
    """
    scene = running()
    queue_up(scene)
    place = place_of(scene, "job-worker-1")

    scene.change("job-worker-1", phase="Failed")
    assert scene.settle() == []
    (note,) = opened(scene)
    assert (note.reason, note.node, note.pod_uids) == ("PodFailed", place, ("job-worker-1",))
    assert note.until_ms - note.at_ms == 60_000
    scene.remove(scene.pods["job-worker-1"])
    assert scene.settle() == []

    scene.put(successor(1))
    decisions = scene.settle()
    assert bound_of(decisions) == {"job-worker-1-again": place}
    assert decisions[0].fills == ("job-worker-1",)
    assert closed(scene) == ["Filled"]
    scene.run(decisions[0])
    scene.settle()
    assert scene.verdict("job").phase == "Running"
    assert scene.verdict("rival").phase == "Inqueue"


def test_volcano_5805_a_drained_nodes_room_goes_back_to_the_gang_that_was_on_it() -> None:
    """A node is cordoned and drained and comes back; an older, equal pod must not take the room
    that the gang's own member stands in line for.
    """
    scene = running()
    queue_up(scene)
    place = place_of(scene, "job-worker-1")
    drained = make_node(place, resource_version=2, unschedulable=True)
    scene.put(drained)
    scene.change("job-worker-1", disrupted=True, deleting=True)
    assert scene.settle() == []
    scene.put(successor(1))
    assert scene.settle() == []
    scene.remove(scene.pods["job-worker-1"])
    assert scene.settle() == []
    (note,) = opened(scene)
    assert (note.reason, note.node) == ("PodEvicted", "")

    scene.now_ms += 5_000
    scene.put(make_node(place, resource_version=3))
    assert bound_of(scene.settle()) == {"job-worker-1-again": place}
    assert closed(scene) == ["Filled"]


def test_a_gang_of_the_same_priority_does_not_get_held_room() -> None:
    scene = running()
    queue_up(scene)
    scene.change("job-worker-1", phase="Failed")
    for _ in range(5):
        assert scene.settle() == []
        scene.now_ms += 1_000


def test_a_gang_of_higher_priority_takes_held_room_and_the_debt_stays_first_in_line() -> None:
    scene = running()
    queue_up(scene, "older")
    place = place_of(scene, "job-worker-1")
    scene.change("job-worker-1", phase="Failed")
    assert scene.settle() == []

    scene.put(
        PriorityClass(uid="pc", name="high", resource_version=1, value=100),
        make_group("urgent", 1, priority_class="high"),
        *make_pods("urgent", 1, WORKER),
    )
    decisions = scene.settle()
    assert bound_of(decisions) == {"urgent-worker-0": place}
    assert opened(scene)[-1].node == ""
    scene.run(decisions[0])
    scene.settle()

    scene.put(make_node("node-9"))
    assert scene.settle() == []
    assert opened(scene)[-1].node == "node-9"
    scene.put(successor(1))
    assert bound_of(scene.settle()) == {"job-worker-1-again": "node-9"}


def test_a_gang_of_higher_priority_leaves_the_room_that_it_does_not_need() -> None:
    scene = running(3)
    scene.change("job-worker-0", phase="Failed")
    scene.change("job-worker-1", phase="Failed")
    assert scene.settle() == []
    scene.put(
        PriorityClass(uid="pc", name="high", resource_version=1, value=100),
        make_group("urgent", 1, priority_class="high"),
        *make_pods("urgent", 1, WORKER),
    )
    assert len(scene.settle()) == 1
    assert sorted(bool(one.node) for one in scene.debts()) == [False, True]


def test_a_hold_expires_with_a_reason_and_the_next_in_line_is_placed() -> None:
    scene = running()
    queue_up(scene)
    place = place_of(scene, "job-worker-1")
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    (note,) = opened(scene)
    assert scene.wakeup_ms is not None
    assert scene.wakeup_ms <= note.until_ms
    scene.now_ms = note.until_ms - 1
    assert scene.settle() == []
    assert closed(scene) == []
    scene.now_ms = note.until_ms
    assert bound_of(scene.settle()) == {"rival-worker-0": place}
    assert closed(scene) == ["Expired"]


@pytest.mark.parametrize(
    ("on_group", "on_queue", "held_ms"),
    [
        pytest.param("0", None, 0, id="off for the group"),
        pytest.param("5", None, 5_000, id="five seconds for the group"),
        pytest.param(None, "7", 7_000, id="seven seconds by its queue"),
        pytest.param("5", "7", 5_000, id="the group outranks its queue"),
        pytest.param(None, None, 60_000, id="a minute unless said"),
    ],
)
def test_hold_seconds_say_how_long_room_is_held(
    on_group: str | None, on_queue: str | None, held_ms: int
) -> None:
    scene = _running_in_queue(on_group, on_queue)
    queue_up(scene)
    scene.change("job-worker-1", phase="Failed")
    decisions = scene.settle()
    if not held_ms:
        assert opened(scene) == []
        assert len(decisions) == 1
        return
    assert decisions == []
    (note,) = opened(scene)
    assert note.until_ms - note.at_ms == held_ms


def _running_in_queue(on_group: str | None, on_queue: str | None) -> Scene:
    def setting(seconds: str | None) -> tuple[tuple[str, str], ...]:
        return () if seconds is None else ((annotations.HOLD_SECONDS, seconds),)

    scene = Scene(make_node(f"node-{i}") for i in range(3))
    scene.put(
        Queue(uid="q", dialect="volcano", name="q", resource_version=1, settings=setting(on_queue))
    )
    scene.put(make_group("job", 3, queue="q", settings=setting(on_group)))
    scene.put(*make_pods("job", 3, WORKER))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    return scene


def test_the_clock_starts_when_the_old_pod_has_left() -> None:
    scene = running()
    queue_up(scene)
    scene.change("job-worker-1", deleting=True)
    assert scene.settle() == []
    scene.now_ms += 30_000
    assert scene.settle() == []
    assert opened(scene) == []
    scene.remove(scene.pods["job-worker-1"])
    assert scene.settle() == []
    (note,) = opened(scene)
    assert (note.reason, note.at_ms) == ("PodDeleted", scene.now_ms)


def test_nothing_is_held_for_a_member_that_succeeded() -> None:
    scene = running()
    queue_up(scene)
    scene.change("job-worker-1", phase="Succeeded")
    assert len(scene.settle()) == 1
    scene.remove(scene.pods["job-worker-1"])
    scene.settle()
    assert opened(scene) == []


def test_nothing_is_held_for_what_is_cleaned_up_once_some_have_succeeded() -> None:
    scene = running()
    queue_up(scene)
    scene.change("job-worker-0", phase="Succeeded")
    scene.settle()
    scene.remove(scene.pods["job-worker-1"])
    scene.settle()
    assert opened(scene) == []


def test_nothing_is_held_for_a_member_above_the_quorum_that_is_scaled_away() -> None:
    scene = running(minimum=2)
    queue_up(scene)
    scene.remove(scene.pods["job-worker-2"])
    assert len(scene.settle()) == 1
    assert opened(scene) == []


def test_a_hold_ends_when_the_group_is_made_smaller() -> None:
    scene = running()
    queue_up(scene)
    scene.remove(scene.pods["job-worker-2"])
    assert scene.settle() == []
    scene.put(make_group("job", 2, resource_version=2))
    assert len(scene.settle()) == 1
    assert closed(scene) == ["ScaledDown"]


def test_nothing_is_held_when_the_owner_is_deleted_and_its_pods_leave_one_by_one() -> None:
    scene = running()
    queue_up(scene)
    for index in range(3):
        scene.change(f"job-worker-{index}", deleting=True)
    for index in range(3):
        scene.remove(scene.pods[f"job-worker-{index}"])
        scene.settle()
    assert opened(scene) == []


def test_nothing_is_held_when_all_members_vanish_in_one_record() -> None:
    scene = running()
    queue_up(scene)
    scene.remove_together(*scene.pods_of("job"))
    assert len(scene.settle()) == 1
    assert opened(scene) == []


def test_nothing_is_held_for_a_gang_whose_group_is_being_deleted() -> None:
    scene = running()
    queue_up(scene)
    scene.put(make_group("job", 3, resource_version=2, deleting=True))
    scene.remove(scene.pods["job-worker-1"])
    assert len(scene.settle()) == 1
    assert opened(scene) == []


def test_holds_end_when_the_rest_of_the_gang_is_deleted() -> None:
    scene = running()
    queue_up(scene)
    scene.change("job-worker-1", phase="Failed")
    assert scene.settle() == []
    for pod in scene.pods_of("job"):
        scene.remove(pod)
    scene.remove(make_group("job", 3))
    assert len(scene.settle()) == 1
    assert closed(scene) == ["GroupGone"]


def test_a_member_whose_node_dies_gets_room_elsewhere() -> None:
    scene = running(nodes=3)
    queue_up(scene)
    lost = place_of(scene, "job-worker-1")
    spare = make_node("node-9")
    scene.remove(make_node(lost))
    assert scene.settle() == []
    (note,) = opened(scene)
    assert (note.reason, note.node, note.lost_on) == ("NodeLost", "", lost)
    scene.put(spare)
    assert scene.settle() == []
    assert opened(scene)[-1].node == "node-9"
    scene.remove(scene.pods["job-worker-1"])
    scene.put(successor(1))
    assert bound_of(scene.settle()) == {"job-worker-1-again": "node-9"}


def test_a_node_that_comes_back_with_its_pod_ends_the_hold() -> None:
    scene = running()
    place = place_of(scene, "job-worker-1")
    scene.remove(make_node(place))
    scene.settle()
    assert len(opened(scene)) == 1
    scene.put(make_node(place, resource_version=2))
    scene.settle()
    assert closed(scene) == ["Returned"]
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    assert [one.reason for one in opened(scene)] == ["NodeLost", "PodFailed"]


@pytest.mark.parametrize(
    "spoilt",
    [
        pytest.param({"taints": (Taint(key="k", effect="NoSchedule"),)}, id="tainted"),
        pytest.param({"unschedulable": True}, id="cordoned"),
        pytest.param({"ready": False}, id="not ready"),
    ],
)
def test_room_is_not_held_on_a_node_that_would_not_take_the_pod(spoilt: dict[str, Any]) -> None:
    scene = running(nodes=4)
    place = place_of(scene, "job-worker-1")
    scene.put(make_node(place, resource_version=2, **spoilt))
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    (note,) = opened(scene)
    assert note.node
    assert note.node != place


def test_held_room_moves_when_its_node_is_cordoned() -> None:
    scene = running(nodes=4)
    place = place_of(scene, "job-worker-1")
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    scene.put(make_node(place, resource_version=2, unschedulable=True))
    scene.settle()
    assert opened(scene)[-1].node not in {"", place}
    assert len(opened(scene)) == 2


def test_room_is_held_elsewhere_once_a_member_has_failed_twice_on_a_node() -> None:
    scene = running(nodes=4)
    place = place_of(scene, "job-worker-1")
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    scene.remove(scene.pods["job-worker-1"])
    scene.put(successor(1))
    (again,) = scene.settle()
    assert bound_of([again]) == {"job-worker-1-again": place}
    scene.run(again)
    scene.settle()
    scene.change("job-worker-1-again", phase="Failed")
    scene.settle()
    assert opened(scene)[-1].node not in {"", place}


def test_a_node_whose_kubelet_refused_the_member_is_not_held() -> None:
    scene = running(nodes=4)
    place = place_of(scene, "job-worker-1")
    scene.change("job-worker-1", phase="Failed", reason="OutOfcpu")
    scene.settle()
    (note,) = opened(scene)
    assert note.node not in {"", place}


def test_a_new_pod_of_another_shape_gives_the_held_place_up_and_is_planned_first() -> None:
    scene = running()
    queue_up(scene)
    place = place_of(scene, "job-worker-1")
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    scene.put(successor(1, shape=SMALLER))
    assert bound_of(scene.settle()) == {"job-worker-1-again": place}
    assert closed(scene) == ["Filled"]


def test_a_new_pod_of_a_shape_that_fits_nowhere_stands_first_in_line() -> None:
    scene = running()
    queue_up(scene)
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    scene.put(successor(1, shape=make_shape({GPU: 1, "cpu": 64_000})))
    assert set(bound_of(scene.settle())) == {"rival-worker-0"}
    assert opened(scene)[-1].node == ""
    queue_up(scene, "third")
    scene.put(make_node("big", {"cpu": 64_000, GPU: 1, "pods": 10}))
    assert bound_of(scene.settle()) == {"job-worker-1-again": "big"}


def test_another_role_of_the_gang_does_not_take_the_held_place() -> None:
    scene = running(3, minimum=3)
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    scene.put(*make_pods("job", 1, WORKER, role="extra"))
    assert scene.settle() == []
    assert len(scene.debts()) == 1


def test_nothing_is_held_for_bare_pods() -> None:
    scene = Scene([make_node("node-0")])
    scene.put(*make_pods("x", 1, WORKER, group_name="", owner=None))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    scene.remove(make_node("node-0"))
    scene.settle()
    scene.remove(scene.pods["x-worker-0"])
    scene.settle()
    assert opened(scene) == []


def test_a_member_that_died_while_nobody_watched_is_owed_its_place() -> None:
    scene = running()
    queue_up(scene)
    place = place_of(scene, "job-worker-1")
    del scene.pods["job-worker-1"]
    scene.load_snapshot(
        [make_node(f"node-{i}") for i in range(3)],
        epoch=2,
        objects=[make_group("job", 3), make_group("rival", 1, created_ms=1)],
    )
    assert scene.settle() == []
    (note,) = opened(scene)
    assert (note.reason, note.node) == ("PodDeleted", place)


def test_a_group_made_again_under_its_name_inherits_the_holds() -> None:
    scene = running()
    queue_up(scene)
    place = place_of(scene, "job-worker-1")
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    scene.remove(make_group("job", 3))
    scene.put(make_group("job", 3, uid="group-job-2"))
    assert scene.settle() == []
    assert opened(scene)[-1].gang_id == "group-job-2"
    scene.put(successor(1))
    assert bound_of(scene.settle()) == {"job-worker-1-again": place}


def test_the_queue_is_charged_for_held_room_as_it_was_for_the_pod() -> None:
    scene = in_full_queue()
    scene.put(make_group("rival", 1, queue="q"))
    scene.put(*make_pods("rival", 1, WORKER))
    assert scene.settle() == []
    scene.change("job-worker-1", phase="Failed")
    assert scene.settle() == []
    scene.put(successor(1))
    assert set(bound_of(scene.settle())) == {"job-worker-1-again"}
    assert scene.settle() == []


def test_a_gang_of_which_nothing_is_left_is_placed_whole_on_its_held_room() -> None:
    scene = Scene([make_node("node-0", {GPU: 2, "cpu": 4000, "pods": 10})])
    scene.put(make_group("job", 2))
    scene.put(*make_pods("job", 2, WORKER))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    queue_up(scene)
    scene.remove(make_node("node-0"))
    scene.put(make_node("node-1", {GPU: 2, "cpu": 4000, "pods": 10}))
    assert scene.settle() == []
    assert [one.node for one in scene.debts()] == ["node-1", "node-1"]
    for index in range(2):
        scene.remove(scene.pods[f"job-worker-{index}"])
        scene.put(successor(index))
        if index == 0:
            assert scene.settle() == []
    (again,) = scene.settle()
    assert set(bound_of([again])) == {"job-worker-0-again", "job-worker-1-again"}
    assert len(again.fills) == 2
    assert closed(scene) == ["Filled", "Filled"]


def test_a_gang_whose_nodes_all_come_back_goes_on_where_it_was() -> None:
    scene = running()
    for index in range(3):
        scene.remove(make_node(f"node-{index}"))
    scene.settle()
    scene.put(make_node("node-1", resource_version=2))
    scene.settle()
    scene.step(after_ms=5_000)
    kinds = {one.kind for _, one in scene.records if isinstance(one, NoteOpened)}
    assert kinds == {"hold"}, "members that run again are repaired like a half-done start"
    assert scene.verdict("job").phase == "Unknown"


def test_a_foreign_pod_on_the_held_place_makes_the_hold_look_elsewhere() -> None:
    scene = running()
    place = place_of(scene, "job-worker-1")
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    scene.put(
        *make_pods(
            "foreign", 1, WORKER, ours=False, group_name="", node=place, phase="Running", owner=None
        )
    )
    assert scene.settle() == []
    assert opened(scene)[-1].node == ""


def test_a_clock_set_back_does_not_make_a_hold_last_longer() -> None:
    scene = running()
    scene.now_ms = 1_000_000
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    scene.now_ms = 500_000
    scene.settle()
    scene.now_ms += 60_000
    scene.settle()
    assert closed(scene) == ["Expired"]


def conditions(scene: Scene, name: str = "job") -> dict[str, tuple[str, str]]:
    return {one.type: (one.status, one.message) for one in scene.verdict(name).conditions}


def reason_of(scene: Scene, type_: str, name: str = "job") -> str:
    return next(one.reason for one in scene.verdict(name).conditions if one.type == type_)


def test_the_verdict_says_for_whom_room_is_held_where_and_until_when() -> None:
    scene = running()
    place = place_of(scene, "job-worker-1")
    scene.change("job-worker-1", phase="Failed", reason="OOMKilled")
    scene.settle()
    said = (
        f"job-worker-1 failed on {place} (OOMKilled): room for its successor is held on {place} "
        "until 00:01:10 UTC"
    )
    assert conditions(scene)["RoomHeld"] == ("True", said)
    assert "Degraded" not in conditions(scene)
    why = scene.verdict("job").why
    assert why is not None
    assert why.sentence == f"2 of 3 members exist that could run; {said}"

    scene.now_ms += 60_000
    scene.settle()
    assert conditions(scene)["RoomHeld"] == ("False", "")
    assert reason_of(scene, "RoomHeld") == "Expired"
    assert conditions(scene)["Degraded"] == (
        "True",
        "2 of the 3 members that it needs are left, and no room is held for the others",
    )
    scene.put(successor(1))
    (again,) = scene.settle()
    scene.run(again)
    scene.settle()
    assert conditions(scene)["Degraded"][0] == "False"


def test_a_gang_for_which_no_node_has_room_is_degraded_and_first_in_line() -> None:
    scene = running()
    lost = place_of(scene, "job-worker-1")
    scene.remove(make_node(lost))
    scene.settle()
    assert "RoomHeld" not in conditions(scene)
    status, message = conditions(scene)["Degraded"]
    assert status == "True"
    assert message == (
        "2 of the 3 members that it needs are left; job-worker-1 was lost with "
        f"{lost}: no node has room, its successor is first in line until 00:01:10 UTC"
    )


def in_full_queue() -> Scene:
    """`job` runs on three of four nodes and is all that its queue may hold."""
    scene = Scene(make_node(f"node-{i}") for i in range(4))
    full = amounts(gpu=3)
    scene.put(Queue(uid="q", dialect="volcano", name="q", resource_version=1, capability=full))
    scene.put(make_group("job", 3, queue="q"))
    scene.put(*make_pods("job", 3, WORKER))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    return scene


def test_a_pod_on_a_dead_node_is_not_charged_beside_the_room_held_for_it() -> None:
    scene = in_full_queue()
    scene.remove(make_node(place_of(scene, "job-worker-1")))
    scene.settle()
    (note,) = opened(scene)
    assert note.node


def standby_of(scene: Scene) -> Planner:
    """A planner that has read what the scene's has read, and does not lead."""
    other = Scene(make_node(f"node-{i}") for i in range(3))
    other.planner = Planner(scene.planner.configuration)
    other.pods = dict(scene.pods)
    other.cluster_seq = scene.cluster_seq - 1
    other.load_snapshot([make_node(f"node-{i}") for i in range(3)], objects=[make_group("job", 3)])
    for seq, record in scene.records:
        other.planner.apply_decision(seq, record)
    return other.planner


def owed(planner: Planner) -> dict[str, str]:
    return {uid: debt.node for uid, debt in planner._state.debts.by_uid.items()}


def take_over(scene: Scene, standby: Planner) -> None:
    """The standby leads from here on."""
    scene.decision_seq += 1
    standby.apply_decision(
        scene.decision_seq,
        EpochOpened(epoch=scene.decision_seq, planner="b", at_ms=scene.now_ms, cluster_epoch=1),
    )
    standby.lead(scene.decision_seq)
    scene.planner = standby
    scene.step()


@pytest.mark.parametrize("first", ["log", "picture"])
def test_a_standby_owes_the_same_whichever_log_it_reads_first(first: str) -> None:
    scene = running()
    standby = standby_of(scene)
    place = place_of(scene, "job-worker-1")
    behind, before = len(scene.records), scene.cluster_seq
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    failed = PodChanges(epoch=1, at_ms=scene.now_ms, changed=(scene.pods["job-worker-1"],))
    if first == "picture":
        standby.apply_cluster(before + 1, failed)
    for seq, record in scene.records[behind:]:
        standby.apply_decision(seq, record)
    if first == "log":
        standby.apply_cluster(before + 1, failed)
    assert owed(standby) == owed(scene.planner) == {"job-worker-1": place}
    assert not standby._state.debts.pending
    standby.validate()


def test_a_standby_does_not_owe_again_what_was_filled_before_it_saw_the_loss() -> None:
    scene = running()
    standby = standby_of(scene)
    behind, before = len(scene.records), scene.cluster_seq
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    failed = PodChanges(epoch=1, at_ms=scene.now_ms, changed=(scene.pods["job-worker-1"],))
    scene.put(successor(1))
    scene.settle()
    assert closed(scene) == ["Filled"]
    for seq, record in scene.records[behind:]:
        standby.apply_decision(seq, record)
    standby.apply_cluster(before + 1, failed)
    take_over(scene, standby)
    assert owed(standby) == {}
    assert len(opened(scene)) == 1


def test_a_planner_that_dies_before_it_noted_a_loss_leaves_it_to_its_standby() -> None:
    scene = running()
    standby = standby_of(scene)
    place = place_of(scene, "job-worker-1")
    before = scene.cluster_seq
    scene.change("job-worker-1", phase="Failed")
    failed = PodChanges(epoch=1, at_ms=scene.now_ms, changed=(scene.pods["job-worker-1"],))
    standby.apply_cluster(before + 1, failed)
    take_over(scene, standby)
    assert owed(standby) == {"job-worker-1": place}


def test_a_standby_does_not_owe_what_its_predecessor_had_decided_not_to() -> None:
    """The predecessor's group had hold-seconds 0 when the loss was judged; nothing in the log says
    so but the records of its later cycles.
    """
    scene = running()
    standby = standby_of(scene)
    before = scene.cluster_seq
    scene.change("job-worker-1", phase="Failed")
    failed = PodChanges(epoch=1, at_ms=scene.now_ms, changed=(scene.pods["job-worker-1"],))
    standby.apply_cluster(before + 1, failed)
    for seq in (1, 2):
        cycle = Cycle(
            cluster_seq=before + seq, outcomes_seq=0, now_ms=scene.now_ms, configuration=""
        )
        scene.decision_seq += 1
        started = GangStarted(gang_id="other", epoch=1, at_ms=0, attempt=1, cycle=cycle)
        standby.apply_decision(scene.decision_seq, started)
    take_over(scene, standby)
    assert owed(standby) == {}
