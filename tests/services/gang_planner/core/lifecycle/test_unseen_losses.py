"""A planner that takes over finds members that started gangs lost while no planner saw it, and
opens holds for them: once, and only where it knows what is missing.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from services.gang_planner.core.planner import Planner
from shared.contracts import annotations
from shared.contracts.decisions import GangDecision, NoteOpened
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.preemption import crowd
from tests.services.gang_planner.core.scene import GPU, make_group, make_node, make_pods, make_shape

WORKER = make_shape({GPU: 1})
CHIEF = make_shape({GPU: 1, "cpu": 500})
NODES = 4


def running(*, minimum: int = 4, group: dict[str, Any] | None = None, **pods: Any) -> LoggedScene:
    """The gang `job` runs with four workers, one to a node; `other` waits for a GPU."""
    scene = LoggedScene(make_node(f"node-{i}") for i in range(NODES))
    scene.put(make_group("job", minimum, **(group or {})), *make_pods("job", 4, WORKER, **pods))
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    scene.put(make_group("other", 1, created_ms=1), *make_pods("other", 1, WORKER))
    scene.until_quiet()
    assert scene.bound("job") == 4
    return scene


def lose_unseen(scene: LoggedScene, uid: str) -> str:
    """A pod is deleted, and no planner reads it; returns the name of its node."""
    return scene.pods.pop(uid).node


def restart(scene: LoggedScene, *, checkpoint: bool = False) -> list[GangDecision]:
    """Another planner starts and takes over; its decisions."""
    before = len(scene.decisions)
    scene.restart(checkpoint=checkpoint)
    scene.until_quiet()
    return [one for _, one in scene.decisions[before:]]


def successor(scene: LoggedScene, index: int) -> list[GangDecision]:
    """The controller creates the worker again; the decisions."""
    before = len(scene.decisions)
    scene.make_again([make_pods("job", 4, WORKER)[index]])
    scene.until_quiet()
    return [one for _, one in scene.decisions[before:]]


def opened(scene: LoggedScene) -> list[NoteOpened]:
    return [one for _, one in scene.records if isinstance(one, NoteOpened) and one.kind == "hold"]


def held(scene: LoggedScene) -> list[tuple[str, str]]:
    return [(hold.reason, hold.node) for hold in scene.holds()]


@pytest.mark.parametrize("checkpoint", [False, True], ids=["from the log", "from a checkpoint"])
def test_the_place_of_a_member_that_was_lost_unseen_is_held_for_its_successor(
    checkpoint: bool,
) -> None:
    scene = running()
    place = lose_unseen(scene, "job-worker-2")
    assert restart(scene, checkpoint=checkpoint) == [], "the waiting gang took the place"
    assert held(scene) == [("MemberMissing", place)]
    room = scene.condition("job", "RoomHeld")
    assert room is not None
    assert room.message.startswith(
        "a member (role worker) was lost before the active planner took over: "
        f"capacity for its successor is reserved on {place} until "
    )
    (decision,) = successor(scene, 2)
    assert [(one.name, one.node) for one in decision.bindings] == [("job-worker-2", place)]
    assert scene.notes("hold") == [("opened", "MemberMissing"), ("closed", "Filled")]


def test_a_loss_that_a_planner_saw_and_did_not_note_is_found_by_the_next_one() -> None:
    scene = running()
    place = scene.pods["job-worker-2"].node
    scene.remove(scene.pods["job-worker-2"])
    assert restart(scene) == []
    assert held(scene) == [("MemberMissing", place)]


@pytest.mark.parametrize("node_first", [False, True])
def test_a_member_that_failed_or_lost_its_node_unseen_gets_a_hold(node_first: bool) -> None:
    scene = running()
    pod = scene.pods["job-worker-1"]
    if node_first:
        scene.objects["uid-node-9"] = make_node("node-9")
        del scene.objects[f"uid-{pod.node}"]
    else:
        scene.pods[pod.uid] = msgspec.structs.replace(pod, phase="Failed", resource_version=9)
    restart(scene)
    if not node_first:
        assert held(scene) == [("MemberMissing", pod.node)]
        return
    assert held(scene) == [("MemberMissing", "node-9")]
    # Its node returns, so nothing is missing.
    scene.put(make_node(pod.node))
    scene.until_quiet()
    assert held(scene) == []


def test_only_the_shortfall_below_the_minimum_is_held() -> None:
    scene = running(minimum=3)
    lose_unseen(scene, "job-worker-2")
    lose_unseen(scene, "job-worker-3")
    (decision,) = restart(scene)
    assert decision.gang == "team/other"
    assert [hold.reason for hold in scene.holds()] == ["MemberMissing"]


def test_a_waiting_successor_is_not_missing_and_is_placed_before_the_waiting_gang() -> None:
    scene = running()
    lose_unseen(scene, "job-worker-2")
    again = msgspec.structs.replace(
        make_pods("job", 4, WORKER)[2], uid="job-worker-2-again", created_ms=9
    )
    scene.pods[again.uid] = again
    (decision,) = restart(scene)
    assert [one.uid for one in decision.bindings] == ["job-worker-2-again"]
    assert opened(scene) == []


def test_a_gang_that_grows_has_no_member_that_was_lost_unseen() -> None:
    scene = running()
    scene.put(make_group("job", 6, resource_version=2))
    scene.until_quiet()
    assert opened(scene) == []


def test_a_replacement_that_the_log_has_and_the_snapshot_has_not_is_not_missing() -> None:
    scene = running()
    scene.remove(scene.pods["job-worker-2"])
    scene.until_quiet()
    (decision,) = successor(scene, 2)
    newest = scene.cluster_seq
    again = scene.pods.pop(decision.bindings[0].uid)
    scene.cluster_seq = decision.cycle.cluster_seq - 3
    scene.restart()
    scene.step()
    assert not scene.state.holds.pending
    scene.cluster_seq = newest
    scene.put(again)
    scene.until_quiet()
    assert scene.notes("hold") == [("opened", "PodDeleted"), ("closed", "Filled")]


def test_a_member_that_terminates_is_no_model_of_the_missing_one() -> None:
    scene = with_roles()
    lose_unseen(scene, "job-worker-2")
    chief = scene.pods["job-chief-0"]
    scene.pods[chief.uid] = msgspec.structs.replace(chief, deleting=True, resource_version=9)
    restart(scene)
    (note,) = opened(scene)
    assert (note.role, note.shape) == ("worker", WORKER)


def test_the_launcher_that_an_operator_creates_last_is_not_missing() -> None:
    late = ((annotations.LATE_ROLES, "launcher=1"),)
    scene = LoggedScene(make_node(f"node-{i}") for i in range(NODES))
    scene.put(make_group("job", 4, settings=late), *make_pods("job", 3, WORKER))
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    assert scene.bound("job") == 3
    restart(scene)
    assert opened(scene) == []


def with_roles(minima: tuple[tuple[str, int], ...] = ()) -> LoggedScene:
    """The gang `job` runs with a chief of another shape and three workers."""
    scene = LoggedScene(make_node(f"node-{i}") for i in range(NODES))
    scene.put(
        make_group("job", 4, min_task_member=minima),
        *make_pods("job", 1, CHIEF, role="chief"),
        *make_pods("job", 3, WORKER),
    )
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    scene.put(make_group("other", 1, created_ms=1), *make_pods("other", 1, WORKER))
    scene.until_quiet()
    return scene


def test_the_role_minima_show_which_role_is_missing() -> None:
    scene = with_roles((("chief", 1), ("worker", 3)))
    lose_unseen(scene, "job-worker-2")
    assert restart(scene) == []
    (note,) = opened(scene)
    assert (note.role, note.shape) == ("worker", WORKER)


@pytest.mark.parametrize(
    ("minima", "lost"),
    [
        pytest.param((), "job-worker-2", id="no role minima, and different shapes are left"),
        pytest.param((("chief", 1), ("worker", 3)), "job-chief-0", id="none of its role is left"),
    ],
)
def test_no_hold_is_opened_for_an_unknown_shape(
    minima: tuple[tuple[str, int], ...], lost: str
) -> None:
    scene = with_roles(minima)
    lose_unseen(scene, lost)
    assert [one.gang for one in restart(scene)] == ["team/other"]
    assert opened(scene) == []


def _scale_down(scene: LoggedScene) -> None:
    scene.objects["group-job"] = make_group("job", 3, resource_version=2)


def _finish_one(scene: LoggedScene) -> None:
    pod = scene.pods["job-worker-0"]
    scene.pods[pod.uid] = msgspec.structs.replace(pod, phase="Succeeded", resource_version=9)


def _delete_group(scene: LoggedScene) -> None:
    scene.objects["group-job"] = make_group("job", 4, resource_version=2, deleting=True)


def _lose_the_others(scene: LoggedScene) -> None:
    for uid in ("job-worker-0", "job-worker-1", "job-worker-3"):
        lose_unseen(scene, uid)


def _switch_off(scene: LoggedScene) -> None:
    off = ((annotations.HOLD_SECONDS, "0"),)
    scene.objects["group-job"] = make_group("job", 4, resource_version=2, settings=off)


@pytest.mark.parametrize(
    "happens", [_scale_down, _finish_one, _delete_group, _lose_the_others, _switch_off]
)
def test_no_hold_is_opened_for_a_gang_that_does_not_need_it(
    happens: Callable[[LoggedScene], None],
) -> None:
    scene = running()
    lose_unseen(scene, "job-worker-2")
    happens(scene)
    assert [one.gang for one in restart(scene)] == ["team/other"]
    assert opened(scene) == []


def test_no_hold_is_opened_for_pods_without_a_controller() -> None:
    scene = running(owner=None)
    lose_unseen(scene, "job-worker-2")
    assert [one.gang for one in restart(scene)] == ["team/other"]
    assert opened(scene) == []


def test_a_gang_that_is_scaled_down_later_loses_the_hold() -> None:
    scene = running()
    lose_unseen(scene, "job-worker-2")
    restart(scene)
    scene.put(make_group("job", 3, resource_version=2))
    scene.until_quiet()
    assert scene.notes("hold") == [("opened", "MemberMissing"), ("closed", "ScaledDown")]


# ------------------------------------------------------------------ exactly once


@pytest.mark.parametrize("checkpoint", [False, True], ids=["from the log", "from a checkpoint"])
@pytest.mark.parametrize("seen", [False, True], ids=["lost unseen", "lost while a planner ran"])
def test_an_expired_hold_is_not_opened_again_by_later_planners(
    seen: bool, checkpoint: bool
) -> None:
    scene = running()
    if seen:
        scene.remove(scene.pods["job-worker-2"])
        scene.until_quiet()
    else:
        lose_unseen(scene, "job-worker-2")
        restart(scene, checkpoint=checkpoint)
    assert restart(scene, checkpoint=checkpoint) == [], "an open hold outlives its planner"
    assert len(opened(scene)) == 1
    scene.until_quiet(within_ms=60_000)
    assert [kind for kind, _ in scene.notes("hold")] == ["opened", "closed"]
    for _ in range(2):
        restart(scene, checkpoint=checkpoint)
        assert len(opened(scene)) == 1


@pytest.mark.parametrize("checkpoint", [False, True], ids=["from the log", "from a checkpoint"])
def test_after_the_successor_is_placed_another_loss_gets_a_hold(checkpoint: bool) -> None:
    scene = running()
    scene.put(make_node("node-8"))
    scene.remove(scene.pods["job-worker-2"])
    scene.until_quiet(within_ms=60_000)
    successor(scene, 2)
    scene.carry_out(phase="Running")
    scene.until_quiet()
    assert scene.bound("job") == 4
    restart(scene, checkpoint=checkpoint)
    lose_unseen(scene, "job-worker-3")
    restart(scene, checkpoint=checkpoint)
    assert [one.reason for one in opened(scene)] == ["PodDeleted", "MemberMissing"]


def test_of_two_missing_members_the_one_without_an_expired_hold_gets_one() -> None:
    scene = running()
    scene.remove(scene.pods["job-worker-2"])
    scene.until_quiet(within_ms=60_000)
    lose_unseen(scene, "job-worker-3")
    restart(scene)
    assert len(scene.holds()) == 1


# ------------------------------------------------------------------ standbys


class Standby:
    """A planner that reads what the scene's planner reads, and its records."""

    def __init__(self, scene: LoggedScene) -> None:
        self.scene = scene
        self.planner = Planner(scene.conf)
        writer, scene.planner = scene.planner, self.planner
        scene.load_present_snapshot()
        scene.planner = writer
        self.read = 0
        self.follow()

    def follow(self) -> None:
        """Read the records of DECISIONS up to now."""
        for seq, record in self.scene.records[self.read :]:
            self.planner.apply_decision(seq, record)
        self.read = len(self.scene.records)

    def see(self, record: Callable[[], None]) -> None:
        """Read a record of CLUSTER that the scene's planner does not read."""
        writer, self.scene.planner = self.scene.planner, self.planner
        record()
        self.scene.planner = writer

    def take_over(self) -> None:
        """Become the writer."""
        scene, planner = self.scene, self.planner
        scene.decision_seq += 1
        scene.take_over(planner)
        scene.planner = planner
        scene.until_quiet()


def test_a_standby_that_saw_the_loss_holds_the_old_node_once() -> None:
    scene = running()
    standby = Standby(scene)
    pod = scene.pods["job-worker-2"]
    standby.see(lambda: scene.remove(pod))
    standby.take_over()
    assert held(scene) == [("PodDeleted", pod.node)]


@pytest.mark.parametrize("log_first", [False, True])
def test_a_standby_does_not_add_a_hold_to_that_of_a_planner_that_had_not_seen_the_loss(
    log_first: bool,
) -> None:
    scene = running()
    standby = Standby(scene)
    pod = scene.pods["job-worker-2"]

    def restarted() -> None:
        scene.restart()
        standby.planner.apply_decision(*scene.epochs[-1])

    if log_first:
        lose_unseen(scene, pod.uid)
        at = scene.cluster_seq
        scene.cluster_seq += 1
        restarted()
        now, scene.cluster_seq = scene.cluster_seq, at
        standby.see(lambda: scene.remove(pod))
        scene.cluster_seq = now
    else:
        standby.see(lambda: scene.remove(pod))
        restarted()
    scene.step()
    assert len(opened(scene)) == 1
    standby.follow()
    standby.take_over()
    assert [hold.reason for hold in scene.holds()] == ["MemberMissing"]


# ------------------------------------------------------------------ preemption


@pytest.mark.parametrize("checkpoint", [False, True], ids=["from the log", "from a checkpoint"])
@pytest.mark.parametrize("over", [False, True], ids=["victims left unseen", "preemptor placed"])
def test_no_hold_is_opened_for_members_that_were_evicted_for_another_gang(
    over: bool, checkpoint: bool
) -> None:
    scene = crowd.cluster(4)
    crowd.running(scene, "low", 4, minimum=1)
    crowd.submit(scene, "high", 2, priority=10)
    scene.until_quiet()
    (eviction,) = crowd.evictions(scene)
    # Its user needs all four from now on.
    scene.put(make_group("low", 4, resource_version=2))
    crowd.accept(scene)
    if over:
        crowd.leave(scene)
        scene.until_quiet()
        scene.carry_out(phase="Running")
        scene.until_quiet()
    else:
        for victim in eviction.victims:
            lose_unseen(scene, victim.uid)
    for _ in range(3):
        restart(scene, checkpoint=checkpoint)
    assert opened(scene) == []
    assert len(crowd.decided(scene, "high")) == 1
    assert scene.bound("low") == 2
