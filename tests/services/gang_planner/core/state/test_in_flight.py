"""What is decided stays assumed until an event ends it, through outcomes and restarts."""

from typing import Any

import msgspec
import pytest

from services.gang_planner.core.configuration.configuration import (
    parse_configuration,
    with_defaults,
)
from services.gang_planner.core.planner import Planner
from services.gang_planner.core.state.gang_settings import Defaults
from services.gang_planner.core.state.in_flight import (
    FORGOTTEN_MS,
    LATE_RESERVATION_MS,
    number,
)
from shared.contracts.decisions import GangDecision, GangStarted, NoteOpened
from shared.contracts.identity import gang_trace_id
from shared.contracts.outcomes import MemberResult
from shared.model.invariants import InvariantViolation
from shared.model.objects import Owner, Queue
from tests.services.gang_planner.core.inside import state_of
from tests.services.gang_planner.core.invariants import validate
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

FULL = make_shape({"cpu": 4000})


def one_gang(size: int = 2, *, nodes: int = 2, **pods: Any) -> tuple[Scene, GangDecision]:
    """A gang that fills as many nodes as it has members, decided."""
    scene = Scene(make_node(f"n{i}") for i in range(nodes))
    scene.put(make_group("a", size), *make_pods("a", size, FULL, **pods))
    (decision,) = scene.settle()
    return scene, decision


def another_fits(scene: Scene, name: str = "probe") -> bool:
    scene.put(make_group(name, 1), *make_pods(name, 1, FULL))
    return bool(scene.settle())


def test_assumed_room_ends_when_the_pod_is_bound_and_its_place_is_taken_by_the_pod() -> None:
    scene, decision = one_gang()
    scene.bind(decision)
    scene.step()
    assert not scene.state.reservations.every()
    assert not scene.state.open
    assert not another_fits(scene)


def test_assumed_room_ends_when_the_pod_is_gone() -> None:
    scene, _ = one_gang()
    scene.remove(*scene.pods.copy().values())
    assert another_fits(scene)


def test_neither_time_nor_a_good_outcome_ends_assumed_room() -> None:
    scene, decision = one_gang()
    scene.outcome(decision)
    scene.step(after_ms=3_600_000)
    assert not another_fits(scene)


def test_a_member_that_the_outcome_lists_as_bound_keeps_its_room() -> None:
    scene, decision = one_gang()
    scene.outcome(decision, {one.uid: "bound" for one in decision.bindings})
    for _ in range(3):
        scene.step(after_ms=LATE_RESERVATION_MS)
    assert not another_fits(scene)
    assert [one.gang for _, one in scene.decisions] == ["team/a"]


def in_a_later_epoch(scene: Scene, decision: GangDecision, **outcome: Any) -> None:
    """The API server has lost its last writes: what an outcome calls bound is not."""
    scene.outcome(decision, **outcome)
    lose_writes(scene)


def lose_writes(scene: Scene) -> None:
    scene.step()
    scene.cluster_seq += 1
    scene.load_snapshot(
        [make_node("n0"), make_node("n1")],
        epoch=scene.cluster_seq,
        objects=[make_group("a", 2)],
    )


def test_bindings_that_the_api_server_has_forgotten_are_decided_again_after_a_while() -> None:
    scene, decision = one_gang()
    in_a_later_epoch(scene, decision)
    assert scene.settle() == []
    assert scene.step(after_ms=FORGOTTEN_MS - 1).decisions == []
    scene.step(after_ms=1)
    again = scene.decisions[-1][1]
    assert again is not decision
    assert {one.uid for one in again.bindings} == {one.uid for one in decision.bindings}
    assert len(scene.state.reservations.every()) == 2


def test_one_that_finds_forgotten_bindings_when_it_starts_decides_them_again_too() -> None:
    scene = LoggedScene(make_node(f"n{i}") for i in range(2))
    scene.put(make_group("a", 2), *make_pods("a", 2, FULL))
    (decision,) = scene.settle()
    scene.answer(scene.acts[0][0], decision)
    scene.step()
    scene.cluster_seq += 5
    scene.epoch = scene.cluster_seq
    scene.restart(checkpoint=True)
    assert scene.settle() == []
    scene.step(after_ms=FORGOTTEN_MS)
    assert len(scene.decisions) == 2


def test_a_decision_without_an_outcome_has_no_forgotten_bindings() -> None:
    scene, decision = one_gang()
    lose_writes(scene)
    for _ in range(3):
        scene.step(after_ms=FORGOTTEN_MS)
    assert [one for _, one in scene.decisions] == [decision]


def test_room_of_a_request_that_may_come_late_outlasts_the_forgotten_bindings_of_its_decision() -> (
    None
):
    scene, decision = one_gang(nodes=3)
    late = decision.bindings[0].uid
    in_a_later_epoch(scene, decision, results={late: "unknown"})
    scene.step(after_ms=1_000)
    assert len(scene.decisions) == 2, "it is placed elsewhere"
    scene.step(after_ms=FORGOTTEN_MS)
    reasons = [one.reason for one in scene.state.reservations.rows(late)]
    assert sorted(reasons) == ["assumed", "late"]


def test_a_binding_that_the_snapshot_of_its_own_epoch_does_not_show_yet_is_not_forgotten() -> None:
    scene, decision = one_gang()
    scene.outcome(decision)
    scene.step()
    scene.step(after_ms=FORGOTTEN_MS)
    scene.step(after_ms=FORGOTTEN_MS)
    assert [one for _, one in scene.decisions] == [decision]


def test_no_decision_counts_as_forgotten_by_an_old_snapshot_or_once_it_is_shown() -> None:
    scene, decision = one_gang()
    in_a_later_epoch(scene, decision)
    scene.settle()
    scene.step(after_ms=FORGOTTEN_MS, fresh=False)
    scene.step()
    assert scene.decisions[-1][1] is decision
    assert scene.wakeup_ms == scene.now_ms + FORGOTTEN_MS
    scene.bind(decision)
    scene.step(after_ms=2 * FORGOTTEN_MS)
    assert scene.decisions[-1][1] is decision
    assert not scene.state.reservations.every()


def test_a_pod_bound_elsewhere_frees_the_assumed_node_and_loads_the_other() -> None:
    scene, decision = one_gang(1)
    (binding,) = decision.bindings
    other = {"n0": "n1", "n1": "n0"}[binding.node]
    scene.change(binding.uid, node=other)
    scene.put(make_group("probe", 1), *make_pods("probe", 1, FULL))
    (decided,) = scene.settle()
    assert decided.bindings[0].node == binding.node


@pytest.mark.parametrize("result", ["refused", "conflict", "skipped", "gone"])
def test_a_definite_answer_to_a_message_delivered_once_frees_the_room_at_once(
    result: MemberResult,
) -> None:
    scene, decision = one_gang(1, nodes=1)
    scene.outcome(decision, {decision.bindings[0].uid: result})
    scene.step()
    assert another_fits(scene)


@pytest.mark.parametrize(("result", "delivered"), [("refused", 2), ("unknown", 1)])
def test_a_doubtful_answer_keeps_the_room_for_two_minutes_and_frees_the_member(
    result: MemberResult, delivered: int
) -> None:
    scene, decision = one_gang(1)
    uid = decision.bindings[0].uid
    scene.outcome(decision, {uid: result}, delivered=delivered)
    assert scene.settle() == [], "it is tried again after a pause"
    scene.step(after_ms=1_000)
    again = scene.decisions[-1][1]
    assert again.attempt == 2
    assert again.bindings[0].node != decision.bindings[0].node
    reservations = scene.state.reservations.rows(uid)
    assert sorted(reservation.reason for reservation in reservations) == ["assumed", "late"]
    scene.step(after_ms=118_999)
    assert len(scene.state.reservations.rows(uid)) == 2
    scene.step(after_ms=1)
    assert [reservation.reason for reservation in scene.state.reservations.rows(uid)] == ["assumed"]


def test_a_late_post_finds_its_room_and_ends_the_newer_assumption() -> None:
    scene, first = one_gang(1)
    (binding,) = first.bindings
    scene.outcome(first, {binding.uid: "unknown"})
    scene.step()
    scene.step(after_ms=1_000)
    assert len(scene.decisions) == 2
    scene.change(binding.uid, node=binding.node)
    scene.step()
    assert not scene.state.reservations.every()
    assert another_fits(scene), "the second node is free again"


def test_members_that_were_not_bound_are_planned_again_while_the_others_stay() -> None:
    scene, first = one_gang(3, nodes=4)
    missing = first.bindings[1]
    for binding in (first.bindings[0], first.bindings[2]):
        scene.change(binding.uid, node=binding.node)
    scene.outcome(first, {missing.uid: "unknown"})
    step = scene.step()
    (repair,) = step.notes
    assert isinstance(repair, NoteOpened)
    assert (repair.kind, repair.until_ms - repair.at_ms) == ("repair", 30_000)
    (second,) = step.decisions
    assert isinstance(second, GangDecision)
    assert [one.uid for one in second.bindings] == [missing.uid]
    assert second.bindings[0].node != missing.node, "the pair that failed is avoided"
    assert (second.attempt, second.quorum) == (2, 1)
    assert second.trace_id == gang_trace_id("group-a", 2)


def test_pauses_double_up_to_a_minute_and_start_again_after_success() -> None:
    scene, decision = one_gang(1, nodes=20)
    pauses: list[int] = []
    for _ in range(8):
        scene.outcome(decision, {decision.bindings[0].uid: "refused"})
        (note,) = scene.step().notes
        assert isinstance(note, NoteOpened)
        pauses.append(note.until_ms - note.at_ms)
        scene.step(after_ms=pauses[-1])
        decision = scene.decisions[-1][1]
    assert pauses == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]
    scene.run(decision)
    scene.step()
    assert scene.state.gangs.by_id["group-a"].history.failures == 0


def test_a_half_placed_gang_is_completed_although_its_queue_was_closed_meanwhile() -> None:
    scene, decision = one_gang(2, nodes=4)
    scene.bind(decision, only=1)
    scene.outcome(decision, {decision.bindings[1].uid: "conflict"})
    closed = Queue(uid="q", dialect="volcano", name="default", resource_version=1, state="Closed")
    scene.put(closed)
    assert len(scene.step().decisions) == 1


def test_the_only_node_that_refused_is_named_and_tried_again_after_a_minute() -> None:
    scene = Scene([make_node("n0", {"cpu": 8000, "pods": 110})])
    scene.put(make_group("a", 1), *make_pods("a", 1, FULL))
    (decision,) = scene.settle()
    scene.outcome(decision, {decision.bindings[0].uid: "unknown"})
    scene.step()
    assert scene.step(after_ms=1_000).decisions == []
    why = scene.verdict("a").why
    assert why is not None
    assert "1 node(s) refused one of its members recently" in why.sentence
    assert scene.wakeup_ms is not None
    assert len(scene.step(after_ms=59_000).decisions) == 1


def test_a_refused_member_of_a_started_gang_waits_for_a_minute_and_the_others_do_not() -> None:
    scene, decision = one_gang(1, nodes=9)
    scene.run(decision)
    scene.put(*make_pods("a", 2, FULL)[1:])
    (extra,) = scene.settle()
    scene.outcome(extra, {extra.bindings[0].uid: "refused"})
    assert scene.settle() == []
    why = scene.verdict("a").why
    assert why is not None
    assert (why.reason, "denied by policy" in why.sentence) == ("BindingRefused", True)
    scene.put(*make_pods("a", 3, FULL)[2:])
    (other,) = scene.settle()
    assert [one.name for one in other.bindings] == ["a-worker-2"]
    scene.run(other)
    assert scene.step(after_ms=59_999).decisions == []
    (again,) = scene.step(after_ms=1).decisions
    assert [one.name for one in again.bindings] == ["a-worker-1"]


def test_a_member_of_a_started_gang_that_was_not_bound_for_another_reason_pauses() -> None:
    scene, decision = one_gang(1, nodes=9)
    scene.run(decision)
    scene.put(*make_pods("a", 2, FULL)[1:])
    (extra,) = scene.settle()
    scene.outcome(extra, {extra.bindings[0].uid: "conflict"})
    assert scene.settle() == []
    assert scene.step(after_ms=999).decisions == []
    assert len(scene.step(after_ms=1).decisions) == 1


def test_a_clock_set_back_makes_no_process_wait_until_it_has_caught_up() -> None:
    scene, decision = one_gang(2, nodes=4)
    scene.outcome(decision, {one.uid: "unknown" for one in decision.bindings})
    scene.settle()
    assert scene.verdict("a").why is not None
    scene.now_ms -= 3_600_000
    assert len(scene.settle()) == 1, "the pause ended"
    scene.step(after_ms=120_000)
    assert all(reservation.reason == "assumed" for reservation in scene.state.reservations.every())


def test_preflight_is_asked_for_where_a_release_costs_and_from_the_second_attempt_on() -> None:
    job = Owner(api_version="batch/v1", kind="Job", name="j", uid="o")
    _, cheap = one_gang(2)
    _, costly = one_gang(2, owner=job)
    _, bare = one_gang(2, owner=None)
    _, single = one_gang(1, owner=None)
    assert [one.preflight for one in (cheap, costly, bare, single)] == [False, True, True, False]
    scene, first = one_gang(2, nodes=4)
    scene.outcome(first, {one.uid: "skipped" for one in first.bindings})
    scene.step()
    scene.step(after_ms=1_000)
    assert scene.decisions[-1][1].preflight
    always = Scene(
        [make_node("n0"), make_node("n1")], conf=with_defaults("", Defaults(preflight="always"))
    )
    always.put(make_group("a", 2), *make_pods("a", 2, FULL))
    assert always.settle()[0].preflight


def test_a_gang_is_started_once_its_quorum_is_placed_and_later_members_come_one_by_one() -> None:
    scene, decision = one_gang(2, nodes=3)
    scene.bind(decision, only=1)
    assert not scene.step().notes
    scene.bind(decision)
    (note,) = scene.step().notes
    assert isinstance(note, GangStarted)
    scene.put(*make_pods("a", 3, FULL)[2:])
    (extra,) = scene.settle()
    assert (len(extra.bindings), extra.quorum, extra.preflight) == (1, 0, False)


def test_members_of_a_started_gang_are_not_preflighted_because_none_is_ever_released() -> None:
    scene, decision = one_gang(2, nodes=5, owner=None)
    scene.run(decision)
    scene.put(*make_pods("a", 4, FULL, owner=None)[2:])
    (extras,) = scene.settle()
    assert (len(extras.bindings), extras.preflight) == (2, False)


@pytest.mark.parametrize("reason", ["OutOfcpu", "NodeAffinity"])
def test_a_member_that_its_kubelet_refused_is_not_placed(reason: str) -> None:
    scene, decision = one_gang(2)
    scene.bind(decision, only=1)
    scene.change(
        decision.bindings[1].uid, node=decision.bindings[1].node, phase="Failed", reason=reason
    )
    assert not any(isinstance(note, GangStarted) for note in scene.step().notes)
    assert scene.verdict("a").phase == "Starting"


def test_a_member_on_a_node_that_does_not_exist_is_not_placed() -> None:
    scene, decision = one_gang(2)
    scene.bind(decision, only=1)
    scene.change(decision.bindings[1].uid, node="imaginary")
    assert not any(isinstance(note, GangStarted) for note in scene.step().notes)
    scene.put(make_node("imaginary"))
    assert any(isinstance(note, GangStarted) for note in scene.step().notes)


def test_a_gang_of_which_nothing_is_left_is_placed_whole_again() -> None:
    scene, decision = one_gang(2)
    scene.run(decision)
    scene.step()
    scene.remove(*scene.pods.copy().values())
    scene.step()
    scene.put(
        *(msgspec.structs.replace(pod, uid=pod.uid + "x") for pod in make_pods("a", 2, FULL)[:1])
    )
    assert scene.settle() == []
    scene.put(
        *(msgspec.structs.replace(pod, uid=pod.uid + "x") for pod in make_pods("a", 2, FULL)[1:])
    )
    (again,) = scene.settle()
    assert (again.quorum, again.attempt) == (2, 2)


def test_a_deleted_group_leaves_what_is_in_flight_accounted() -> None:
    scene, _ = one_gang(2)
    scene.remove(make_group("a", 2))
    scene.step()
    assert not another_fits(scene)
    assert scene.verdicts["group-a"].phase == "Gone"


def test_a_group_created_again_under_its_name_inherits_attempts_and_open_decisions() -> None:
    scene, decision = one_gang(2)
    scene.remove(make_group("a", 2))
    scene.step()
    scene.put(make_group("a", 2, uid="group-a2", resource_version=9))
    assert scene.settle() == [], "its pods are decided already"
    assert dict(scene.planner.gangs_by_phase())["Starting"] == 1
    scene.outcome(decision, {one.uid: "skipped" for one in decision.bindings})
    scene.step()
    scene.step(after_ms=1_000)
    again = scene.decisions[-1][1]
    assert (again.gang_id, again.attempt) == ("group-a2", 2)


def test_the_next_cycle_is_refused_while_records_are_not_in_the_log() -> None:
    scene = Scene([make_node("n0")])
    scene.put(make_group("a", 1), *make_pods("a", 1, FULL))
    scene.heartbeat()
    scene.planner.step(scene.now_ms)
    with pytest.raises(InvariantViolation, match="not in the log"):
        scene.planner.step(scene.now_ms)


def test_no_decision_gets_the_number_of_another_one() -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    for name in "ab":
        scene.put(make_group(name, 1), *make_pods(name, 1, FULL))
    scene.heartbeat()
    _, second = scene.planner.step(scene.now_ms).decisions
    with pytest.raises(InvariantViolation, match="not the next one that was made"):
        number(scene.state, 2, second)


def test_a_standby_that_reads_a_decision_before_its_pods_assumes_them_when_they_come() -> None:
    scene, decision = one_gang(2)
    late = Scene([make_node("n0"), make_node("n1")], leading=False)
    late.planner.apply_decision(2, msgspec.structs.replace(decision))
    assert not late.state.reservations.every()
    late.put(make_group("a", 2), *scene.pods.values())
    validate(late.planner)
    reservations = {
        reservation.uid: late.state.nodes.names[reservation.slot]
        for reservation in late.state.reservations.every()
    }
    assert reservations == {one.uid: one.node for one in decision.bindings}


def test_a_standby_assumes_no_pod_that_ended_without_a_node() -> None:
    scene, decision = one_gang(2)
    late = Scene([make_node("n0"), make_node("n1")], leading=False)
    late.put(*(msgspec.structs.replace(one, phase="Failed") for one in scene.pods.values()))
    late.planner.apply_decision(2, decision)
    validate(late.planner)
    assert not late.state.reservations.every()


def test_nothing_is_decided_while_the_log_names_pods_newer_than_the_cluster_state() -> None:
    _, decision = one_gang(2)
    ahead = msgspec.structs.replace(
        decision, cycle=msgspec.structs.replace(decision.cycle, cluster_seq=999)
    )
    late = Scene([make_node("n0"), make_node("n1")])
    late.planner.apply_decision(2, ahead)
    late.decision_seq = 2
    assert not another_fits(late)
    # CLUSTER was re-created: the pods will never come, and waiting ends.
    late.step(after_ms=120_000)
    assert late.decisions


def test_a_checkpoint_brings_back_open_decisions_attempts_and_pauses() -> None:
    scene, decision = one_gang(2, nodes=3)
    scene.put(make_group("b", 1), *make_pods("b", 1, FULL))
    (other,) = scene.settle()
    scene.outcome(other, {other.bindings[0].uid: "refused"})
    scene.step()
    pages = scene.planner.checkpoint(scene.outcome_seq)
    assert [page.pages for page in pages] == [1]

    twin = Planner(parse_configuration(""))
    twin.restore(pages)
    revived = Scene([make_node(f"n{i}") for i in range(3)], leading=False)
    revived.pods = scene.pods
    revived.now_ms = scene.now_ms
    revived.planner = twin
    revived.cluster_seq = scene.cluster_seq
    revived.decision_seq = scene.decision_seq
    revived.load_snapshot(
        [make_node(f"n{i}") for i in range(3)], objects=[make_group("a", 2), make_group("b", 1)]
    )
    validate(twin)
    assert {reservation.uid for reservation in state_of(twin).reservations.every()} == {
        one.uid for one in decision.bindings
    }
    assert state_of(twin).gangs.by_id["group-b"].history.attempt == 1
    twin.lead(revived.decision_seq)
    revived.step()
    assert revived.decisions == [], "the pause goes on"
    revived.step(after_ms=1_000)
    assert [one.gang for _, one in revived.decisions] == ["team/b"]
