import pytest

from services.binder.core.answers import Answer, PodView
from services.binder.core.commands import Command, Finish, Forget, LookUp, Post, Read
from services.binder.core.machine import Machine
from shared.contracts.outcomes import Member, Outcome
from shared.model.invariants import InvariantViolation
from tests.services.binder.core.samples import (
    BOUND,
    BUSY,
    LIMITS,
    SILENT,
    TAKEN,
    make_machine,
    on_its_node,
)


def outcome_in(commands: tuple[Command, ...]) -> Outcome:
    (command,) = commands
    assert isinstance(command, Finish)
    return command.outcome


def post_in(commands: tuple[Command, ...]) -> Post:
    (command,) = commands
    assert isinstance(command, Post)
    return command


def exhaust(machine: Machine, index: int, answer: Answer, now_ms: int = 0) -> tuple[Command, ...]:
    """Answer member `index` alike until the machine stops asking."""
    commands = machine.answered(index, answer, now_ms)
    while commands and isinstance(commands[0], Post):
        commands = machine.answered(index, answer, now_ms)
    return commands


def test_all_bindings_go_out_at_once_and_the_last_answer_ends_it() -> None:
    machine = make_machine(3)
    assert machine.start(1_000) == (Post(0), Post(1), Post(2))
    assert machine.answered(1, BOUND, 1_010) == ()
    assert machine.answered(0, BOUND, 1_011) == ()
    outcome = outcome_in(machine.answered(2, BOUND, 1_015))
    assert outcome == Outcome(
        gang_id="g",
        decision_seq=17,
        epoch=2,
        binder="binder-0",
        delivered=1,
        bound=3,
        received_ms=1_000,
        first_bound_ms=1_010,
        last_bound_ms=1_015,
    )


def test_one_refusal_does_not_stop_the_others_and_is_named() -> None:
    machine = make_machine(2)
    machine.start(0)
    machine.answered(0, Answer(403, "Forbidden", "no"), 1)
    outcome = outcome_in(machine.answered(1, BOUND, 2))
    assert outcome.bound == 1
    assert outcome.reason == ""
    assert outcome.members == (
        Member(uid="u-0", node="n-0", result="refused", code=403, reason="Forbidden", message="no"),
    )


def test_a_conflict_is_read_and_a_pod_on_the_node_decided_is_bound() -> None:
    machine = make_machine(1)
    machine.start(0)
    assert machine.answered(0, TAKEN, 1) == (Read(0),)
    outcome = outcome_in(machine.read_back(0, on_its_node(0), 2))
    assert (outcome.bound, outcome.members) == (1, ())


@pytest.mark.parametrize(
    ("view", "result"),
    [
        pytest.param(PodView("u-0", "elsewhere"), "conflict", id="bound elsewhere"),
        pytest.param(PodView("other"), "conflict", id="re-created"),
        pytest.param(None, "gone", id="deleted before the answer"),
    ],
)
def test_a_conflict_that_is_not_ours_is_reported(view: PodView | None, result: str) -> None:
    machine = make_machine(1)
    machine.start(0)
    machine.answered(0, TAKEN, 1)
    (member,) = outcome_in(machine.read_back(0, view, 2)).members
    assert member.result == result


def test_a_conflict_whose_cause_has_gone_is_tried_again() -> None:
    machine = make_machine(1)
    machine.start(0)
    machine.answered(
        0, Answer(409, "Conflict", "please apply your changes to the latest version"), 1
    )
    again = post_in(machine.read_back(0, PodView("u-0"), 2))
    assert again.delay_ms > 0
    assert outcome_in(machine.answered(0, BOUND, 60)).bound == 1


@pytest.mark.parametrize(
    ("first", "late"),
    [
        pytest.param(SILENT, True, id="no answer"),
        pytest.param(Answer(504, "Timeout"), True, id="a server that gave up waiting"),
        pytest.param(BUSY, False, id="turned away before it was looked at"),
    ],
)
def test_a_refusal_says_whether_an_earlier_request_may_still_bind(
    first: Answer, late: bool
) -> None:
    """Found by tests/model: the room was given away, then the first POST arrived."""
    machine = make_machine(1)
    machine.start(0)
    post_in(machine.answered(0, first, 1))
    (member,) = outcome_in(machine.answered(0, Answer(403, "Forbidden", "no"), 2)).members
    assert (member.result, member.late) == ("refused", late)


def test_a_conflict_after_silence_may_still_bind_unless_the_pod_is_gone() -> None:
    machine = make_machine(2)
    machine.start(0)
    for index in (0, 1):
        machine.answered(index, SILENT, 1)
        machine.answered(index, TAKEN, 2)
    machine.read_back(0, PodView("u-0", gated=True), 3)
    first, second = outcome_in(machine.read_back(1, None, 4)).members
    assert (first.result, first.late) == ("conflict", True)
    assert (second.result, second.late) == ("gone", False)


def test_a_dry_run_that_went_unanswered_binds_nothing_late() -> None:
    machine = make_machine(1, preflight=True)
    machine.start(0)
    machine.answered(0, SILENT, 1)
    machine.answered(0, BOUND, 2)
    (member,) = outcome_in(machine.answered(0, Answer(403, "Forbidden", "no"), 3)).members
    assert (member.result, member.late) == ("refused", False)


def test_conflicts_for_ever_end_as_a_conflict() -> None:
    machine = make_machine(1)
    machine.start(0)
    commands: tuple[Command, ...] = (Post(0),)
    posts = 0
    while not isinstance(commands[0], Finish):
        if isinstance(commands[0], Post):
            posts += 1
            commands = machine.answered(0, TAKEN, 1)
        else:
            commands = machine.read_back(0, PodView("u-0"), 1)
    assert posts == LIMITS.posts_max
    assert outcome_in(commands).members[0].result == "conflict"


def test_a_busy_server_is_asked_again_not_before_it_said() -> None:
    machine = make_machine(1)
    machine.start(0)
    again = post_in(machine.answered(0, Answer(429, "TooManyRequests", "", 3_000), 1))
    assert again.delay_ms >= 3_000
    assert outcome_in(machine.answered(0, BOUND, 3_100)).bound == 1


def test_delays_grow_and_differ_between_members() -> None:
    machine = make_machine(40)
    machine.start(0)
    first = [post_in(machine.answered(index, BUSY, 0)).delay_ms for index in range(40)]
    second = [post_in(machine.answered(index, BUSY, 0)).delay_ms for index in range(40)]
    assert len(set(first)) > 10
    assert all(50 <= delay_ms <= 100 for delay_ms in first)
    assert all(100 <= delay_ms <= 200 for delay_ms in second)


def test_a_retry_after_beyond_our_patience_is_not_waited_for_but_read_back() -> None:
    machine = make_machine(1)
    machine.start(0)
    late = Answer(429, "TooManyRequests", "", LIMITS.patience_ms + 1)
    assert machine.answered(0, late, 1) == (Read(0),)


def test_silence_is_asked_a_bounded_number_of_times_then_read_then_unknown() -> None:
    machine = make_machine(1)
    machine.start(0)
    assert exhaust(machine, 0, SILENT) == (Read(0),)
    (member,) = outcome_in(machine.read_back(0, PodView("u-0"), 9)).members
    assert (member.result, member.reason) == ("unknown", "Timeout")


def test_silence_that_did_bind_is_found_by_the_read() -> None:
    machine = make_machine(1)
    machine.start(0)
    exhaust(machine, 0, SILENT)
    assert outcome_in(machine.read_back(0, on_its_node(0), 9)).bound == 1


def test_reads_that_fail_too_are_bounded_and_leave_the_member_unknown() -> None:
    machine = make_machine(1)
    machine.start(0)
    commands = exhaust(machine, 0, SILENT)
    reads = 0
    while isinstance(commands[0], Read):
        reads += 1
        commands = machine.read_back(0, Answer(503), 1)
    assert reads == LIMITS.reads_max
    assert outcome_in(commands).members[0].result == "unknown"


def test_patience_ends_by_the_clock_too() -> None:
    machine = make_machine(1)
    machine.start(0)
    machine.answered(0, BUSY, 0)
    assert machine.answered(0, BUSY, LIMITS.patience_ms) == (Read(0),)


def test_preflight_proves_every_binding_before_the_first_is_sent() -> None:
    machine = make_machine(2, preflight=True)
    assert machine.start(0) == (Post(0, dry_run=True), Post(1, dry_run=True))
    assert machine.answered(0, BOUND, 5) == ()
    assert machine.answered(1, BOUND, 6) == (Post(0), Post(1))
    machine.answered(0, BOUND, 7)
    outcome = outcome_in(machine.answered(1, BOUND, 8))
    assert (outcome.bound, outcome.preflight_ms, outcome.first_bound_ms) == (2, 6, 7)


def test_nothing_is_bound_when_one_member_fails_the_preflight() -> None:
    machine = make_machine(3, preflight=True)
    machine.start(0)
    machine.answered(0, BOUND, 5)
    machine.answered(1, Answer(403, "Forbidden", "policy"), 6)
    outcome = outcome_in(machine.answered(2, BOUND, 7))
    assert (outcome.reason, outcome.bound) == ("PreflightFailed", 0)
    assert [member.result for member in outcome.members] == ["skipped", "refused", "skipped"]


def test_a_preflight_without_answer_binds_nothing_and_claims_no_late_binding() -> None:
    machine = make_machine(2, preflight=True)
    machine.start(0)
    machine.answered(0, BOUND, 5)
    exhaust(machine, 1, SILENT)
    outcome = outcome_in(machine.read_back(1, PodView("u-1"), 9))
    assert outcome.reason == "PreflightFailed"
    assert [member.result for member in outcome.members] == ["skipped", "skipped"]
    assert outcome.members[1].reason == "Timeout"


def test_a_webhook_without_dry_run_support_is_bound_anyway_and_said() -> None:
    machine = make_machine(2, preflight=True)
    machine.start(0)
    words = 'admission webhook "w.example" does not support dry run'
    machine.answered(0, Answer(400, "BadRequest", words), 5)
    assert machine.answered(1, BOUND, 6) == (Post(0), Post(1))
    machine.answered(0, BOUND, 7)
    outcome = outcome_in(machine.answered(1, BOUND, 8))
    assert (outcome.reason, outcome.bound) == ("", 2)
    assert outcome.notes == (f"PreflightUntested: {words}",)


def test_a_redelivery_first_asks_whether_the_decision_has_its_outcome() -> None:
    machine = make_machine(1, delivered=2)
    assert machine.start(0) == (LookUp(),)
    assert machine.looked_up(outcome_exists=True) == (Forget(),)


def test_a_redelivery_without_outcome_is_carried_out_and_says_so() -> None:
    machine = make_machine(1, delivered=2)
    machine.start(0)
    assert machine.looked_up(outcome_exists=False) == (Post(0),)
    machine.answered(0, TAKEN, 1)
    outcome = outcome_in(machine.read_back(0, on_its_node(0), 2))
    assert (outcome.bound, outcome.delivered) == (1, 2)


def test_a_redelivered_preflight_does_not_bind_again_what_is_bound() -> None:
    machine = make_machine(2, preflight=True, delivered=2)
    machine.start(0)
    machine.looked_up(outcome_exists=False)
    assert machine.answered(0, TAKEN, 1) == (Read(0),)
    assert machine.read_back(0, on_its_node(0), 2) == ()
    assert machine.answered(1, BOUND, 3) == (Post(1),)
    assert outcome_in(machine.answered(1, BOUND, 4)).bound == 2


def test_what_was_delivered_too_often_is_only_read_back() -> None:
    machine = make_machine(3, delivered=LIMITS.deliveries_max + 1)
    machine.start(0)
    assert machine.looked_up(outcome_exists=False) == (Read(0), Read(1), Read(2))
    machine.read_back(0, on_its_node(0), 1)
    machine.read_back(1, None, 2)
    outcome = outcome_in(machine.read_back(2, PodView("u-2"), 3))
    assert (outcome.reason, outcome.bound) == ("BinderGaveUp", 1)
    assert [(member.uid, member.result) for member in outcome.members] == [
        ("u-1", "gone"),
        ("u-2", "unknown"),
    ]


def test_a_decision_without_bindings_has_an_outcome_all_the_same() -> None:
    assert outcome_in(make_machine(0).start(5)).bound == 0
    assert outcome_in(make_machine(0, preflight=True).start(5)).reason == ""


def test_an_answer_to_no_request_is_a_bug_and_loud() -> None:
    machine = make_machine(1)
    machine.start(0)
    machine.answered(0, BOUND, 1)
    with pytest.raises(InvariantViolation, match="answer to no request"):
        machine.answered(0, BOUND, 2)


def test_a_second_answer_to_one_request_is_a_bug_while_others_are_in_flight() -> None:
    machine = make_machine(2)
    machine.start(0)
    machine.answered(0, BOUND, 1)
    with pytest.raises(InvariantViolation, match="answer to no request"):
        machine.answered(0, BOUND, 2)
