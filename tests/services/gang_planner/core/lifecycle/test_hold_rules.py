"""Which gangs get a hold for a lost member, how long it lasts, and when it ends."""

from typing import Any

import msgspec
import pytest

from shared.contracts import annotations
from shared.contracts.decisions import NoteOpened
from shared.model.objects import Queue, Taint
from tests.services.gang_planner.core.losing import (
    WORKER,
    bound_of,
    closed,
    opened,
    place_of,
    queue_up,
    running,
    successor,
)
from tests.services.gang_planner.core.scene import (
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)


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


def test_a_member_above_the_quorum_is_held_for_while_min_resources_need_it() -> None:
    """A driver and two executors, whose group has a minimum of one pod and the resources of all."""
    scene = Scene([make_node(f"n{i}") for i in range(3)])
    whole = make_shape({"cpu": 4000})
    scene.put(
        make_group("a", 1, min_resources=amounts(cpu=12_000)),
        *make_pods("a", 1, whole, role="driver"),
        *make_pods("a", 2, whole, role="executor"),
    )
    for decision in scene.settle():
        scene.bind(decision, phase="Running")
    scene.settle()
    scene.remove(scene.pods["a-executor-0"])
    scene.settle()
    (note,) = opened(scene)
    assert (note.role, note.reason) == ("executor", "PodDeleted")
    scene.put(make_group("b", 1), *make_pods("b", 1, whole))
    assert not scene.settle()
    (successor,) = make_pods("a", 1, whole, role="executor")
    scene.put(msgspec.structs.replace(successor, uid="next", name="next"))
    (decision,) = scene.settle()
    assert [one.name for one in decision.bindings] == ["next"]


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


def test_a_node_whose_kubelet_refused_the_member_is_not_held() -> None:
    scene = running(nodes=4)
    place = place_of(scene, "job-worker-1")
    scene.change("job-worker-1", phase="Failed", reason="OutOfcpu")
    scene.settle()
    (note,) = opened(scene)
    assert note.node not in {"", place}


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


def test_a_member_that_died_while_no_planner_ran_gets_a_hold() -> None:
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
