"""Preemptions in the tables: for which pods room is kept, and which pods count as victims."""

from collections.abc import Callable

import msgspec
import pytest

from services.gang_planner.core.state.preemptions import Preemptions, not_evicted
from shared.contracts.decisions import EvictionDecision
from shared.contracts.outcomes import Member
from shared.model.invariants import InvariantViolation
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.preemption.crowd import (
    QUARTER,
    accept,
    cluster,
    decided,
    ends,
    evictions,
    leave,
    running,
    submit,
)
from tests.services.gang_planner.core.preemption.test_tracking import (
    asked,
    evicted_whole_and_short,
    reason_of,
)
from tests.services.gang_planner.core.scene import make_group

PREEMPTOR = "high-worker-0"


def table(scene: LoggedScene) -> Preemptions:
    return scene.state.preemptions


def gone(scene: LoggedScene) -> None:
    """The preemptor is deleted, which ends its preemption."""
    scene.remove(*scene.pods_of("high"))
    scene.remove(scene.objects["group-high"])
    scene.until_quiet()
    assert ends(scene) == ["Gone"]


def test_an_eviction_that_this_planner_did_not_decide_gets_no_number() -> None:
    scene = cluster(1)
    running(scene, "low", 1)
    submit(scene, "high", 1, priority=10)
    scene.heartbeat()
    (act,) = scene.planner.step(scene.now_ms).decisions
    assert isinstance(act, EvictionDecision)
    with pytest.raises(InvariantViolation, match="was not decided here"):
        table(scene).number(9, msgspec.structs.replace(act))


def is_deleted(scene: LoggedScene) -> None:
    scene.change(PREEMPTOR, deleting=True)


def is_bound_elsewhere(scene: LoggedScene) -> None:
    scene.change(PREEMPTOR, node="n03")


def loses_its_node(scene: LoggedScene) -> None:
    node = next(one.node for one in evictions(scene)[0].bindings if one.uid == PREEMPTOR)
    scene.remove(scene.objects[f"uid-{node}"])


@pytest.mark.parametrize("happens", [is_deleted, is_bound_elsewhere, loses_its_node])
def test_room_is_kept_only_for_a_pod_that_waits_and_on_a_node_that_exists(
    happens: Callable[[LoggedScene], None],
) -> None:
    scene = asked()
    assert {one.uid for one in table(scene).reservations()} == {PREEMPTOR, "high-worker-1"}
    happens(scene)
    table(scene).sync(scene.state, scene.now_ms)
    assert {one.uid for one in table(scene).reservations()} == {"high-worker-1"}


def test_room_for_a_preemptor_is_as_large_as_its_pod_is_now() -> None:
    scene = asked()
    scene.change(PREEMPTOR, shape=QUARTER)
    table(scene).sync(scene.state, scene.now_ms)
    shapes = {one.uid: one.shape.encoded for one in table(scene).reservations()}
    assert shapes[PREEMPTOR] == QUARTER


def test_a_preemption_that_ended_is_no_open_one_of_its_gang() -> None:
    scene = asked()
    accept(scene)
    assert table(scene).find("group-high") is not None
    gone(scene)
    assert table(scene).logged, "its victims are still there"
    assert table(scene).find("group-high") is None


def test_an_outcome_without_evictions_has_evicted_no_victim_unless_its_binder_gave_up() -> None:
    for reason, stay in (("Expired", True), ("BinderGaveUp", False)):
        scene = asked()
        seq, act = scene.acts[-1]
        assert isinstance(act, EvictionDecision)
        scene.answer(seq, act, (), reason)
        found = not_evicted(table(scene).logged[seq])
        assert found == (frozenset(one.uid for one in act.victims) if stay else frozenset())


def test_a_victim_that_terminates_for_long_stays_a_victim() -> None:
    scene = asked()
    accept(scene)
    gone(scene)
    scene.until_quiet(within_ms=200_000)
    leave(scene)
    scene.until_quiet()
    assert scene.notes("hold") == []


def test_a_victim_that_the_cluster_state_does_not_show_yet_is_a_victim_when_it_does() -> None:
    scene = asked()
    accept(scene)
    gone(scene)
    newest = scene.cluster_seq
    low = [scene.pods.pop(one.uid) for one in scene.pods_of("low")]
    scene.cluster_seq = 0
    scene.restart()
    scene.step()
    scene.cluster_seq = newest
    scene.put(*low)
    leave(scene)
    scene.until_quiet()
    assert scene.notes("hold") == []


def test_a_clock_set_back_makes_no_pod_a_victim_for_longer() -> None:
    scene = evicted_whole_and_short()
    (act,) = evictions(scene)
    seq = next(seq for seq, one in scene.acts if one is act)
    unknown = [Member(uid=one.uid, node="", result="unknown") for one in act.victims]
    scene.done.add(seq)
    scene.answer(seq, act, unknown, "BinderGaveUp")
    scene.until_quiet()
    scene.remove(*scene.pods_of("high"))
    scene.remove(scene.objects["group-high"])
    scene.until_quiet()
    scene.now_ms -= 3_600_000
    scene.until_quiet()
    assert reason_of(scene, "low") == "Evicted"
    scene.until_quiet(within_ms=181_000)
    assert reason_of(scene, "low") != "Evicted"


@pytest.mark.parametrize("restarts", [False, True])
def test_a_preemptor_whose_group_is_created_again_is_found_by_its_pods(restarts: bool) -> None:
    scene = asked()
    scene.remove(scene.objects["group-high"])
    scene.put(make_group("high", 2, uid="group-high-2"))
    if restarts:
        scene.restart()
    scene.until_quiet()
    accept(scene)
    leave(scene)
    scene.until_quiet()
    assert (ends(scene), len(evictions(scene)), len(decided(scene, "high"))) == ([], 1, 1)


def test_a_victim_that_is_lost_with_its_node_and_then_deleted_is_counted_once() -> None:
    scene = asked()
    victim = evictions(scene)[0].victims[0]
    pod = scene.pods[victim.uid]
    scene.remove(scene.objects[f"uid-{pod.node}"])
    scene.remove(pod)
    assert scene.state.gangs.by_id["group-low"].history.holds_forgone == 1
