"""Evicting pods for a gang: all is proven before any pod is evicted, refusals are reported."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from services.binder.core.answers import Answer, PodView
from services.binder.core.commands import Command, Evict, Finish, Limits, Mark, Post, Read
from services.binder.core.eviction import Eviction
from services.binder.core.outcome import Sender
from shared.contracts.decisions import Binding, Cycle, EvictionDecision, Victim
from shared.contracts.outcomes import Outcome
from tests.services.binder.core.samples import BUSY, LIMITS, SILENT

DONE = Answer(201)
BUDGET = Answer(
    429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget."
)
SEVERAL = Answer(
    500,
    "InternalError",
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support.",
)
DENIED = Answer(403, "Forbidden", "policy says no")


def make_eviction(
    bindings: int, victims: int, *, delivered: int = 1, limits: Limits = LIMITS
) -> Eviction:
    decision = EvictionDecision(
        gang_id="g",
        gang="team/high",
        epoch=2,
        attempt=0,
        victims=tuple(
            Victim(uid=f"v-{i}", namespace="team", name=f"v-{i}") for i in range(victims)
        ),
        via="eviction",
        reason="Preempted",
        bindings=tuple(
            Binding(uid=f"u-{i}", namespace="team", name=f"w-{i}", node=f"n-{i}")
            for i in range(bindings)
        ),
        trace_id="0" * 32,
        cycle=Cycle(cluster_seq=1, outcomes_seq=0, now_ms=0, configuration="c"),
        until_ms=60_000,
    )
    sender = Sender(binder="binder-0", decision_seq=17, delivered=delivered)
    return Eviction(decision, sender, limits)


def outcome_in(commands: tuple[Command, ...]) -> Outcome:
    (command,) = commands
    assert isinstance(command, Finish)
    return command.outcome


def proven(bindings: int = 1, victims: int = 2) -> Eviction:
    """A machine whose proofs have all passed; its victims wait for their marks."""
    machine = make_eviction(bindings, victims)
    found = machine.start(0)
    for command in found:
        assert isinstance(command, Post | Evict)
        found = machine.answered(command.index, DONE, 1)
    assert found == tuple(Mark(bindings + index) for index in range(victims))
    return machine


def test_bindings_and_evictions_are_proven_together_and_then_victims_are_marked_and_evicted() -> (
    None
):
    machine = make_eviction(1, 2)
    assert machine.start(5) == (
        Post(0, dry_run=True),
        Evict(1, dry_run=True),
        Evict(2, dry_run=True),
    )
    assert machine.answered(2, DONE, 6) == ()
    assert machine.answered(0, DONE, 6) == ()
    assert machine.answered(1, DONE, 6) == (Mark(1), Mark(2))
    assert machine.answered(2, DONE, 7) == (Evict(2),)
    assert machine.answered(1, DONE, 7) == (Evict(1),)
    assert machine.answered(1, DONE, 8) == ()
    outcome = outcome_in(machine.answered(2, DONE, 8))
    assert (outcome.reason, outcome.evicted, outcome.bound, outcome.members) == ("", 2, 0, ())


def test_no_pod_is_evicted_while_a_budget_protects_one_of_the_victims() -> None:
    machine = make_eviction(1, 2)
    machine.start(0)
    machine.answered(0, DONE, 0)
    machine.answered(1, DONE, 0)
    outcome = outcome_in(machine.answered(2, BUDGET, 0))
    assert (outcome.reason, outcome.evicted) == ("PreflightFailed", 0)
    found = {one.uid: (one.result, one.code, one.message) for one in outcome.members}
    assert found["v-1"] == ("refused", 429, BUDGET.message)
    assert found["v-0"][0] == "skipped"


def test_a_pod_with_several_budgets_is_refused_at_once() -> None:
    machine = make_eviction(0, 1)
    machine.start(0)
    outcome = outcome_in(machine.answered(0, SEVERAL, 0))
    assert [one.result for one in outcome.members] == ["refused"]


def test_no_pod_is_evicted_for_a_gang_that_a_policy_would_refuse() -> None:
    machine = make_eviction(2, 1)
    machine.start(0)
    machine.answered(1, DONE, 0)
    machine.answered(2, DONE, 0)
    outcome = outcome_in(machine.answered(0, DENIED, 0))
    assert (outcome.reason, outcome.evicted) == ("PreflightFailed", 0)
    assert {(one.uid, one.node): one.result for one in outcome.members} == {
        ("u-0", "n-0"): "refused",
        ("v-0", ""): "skipped",
    }


def test_a_busy_server_is_no_budget_and_is_asked_again() -> None:
    machine = make_eviction(0, 1)
    machine.start(0)
    (again,) = machine.answered(0, BUSY, 0)
    assert isinstance(again, Evict)
    assert (again.dry_run, again.delay_ms > 0) == (True, True)


def test_a_victim_that_is_gone_already_is_not_asked_for_again_and_counts() -> None:
    machine = make_eviction(0, 2)
    machine.start(0)
    machine.answered(0, Answer(404), 0)
    assert machine.answered(1, DONE, 0) == (Mark(1),)
    machine.answered(1, DONE, 0)
    assert outcome_in(machine.answered(1, DONE, 0)).evicted == 2


def test_when_all_victims_are_gone_already_there_is_nothing_left_to_do() -> None:
    machine = make_eviction(0, 1)
    machine.start(0)
    outcome = outcome_in(machine.answered(0, Answer(404), 0))
    assert (outcome.reason, outcome.evicted) == ("", 1)


def test_a_pod_made_again_under_a_victims_name_is_left() -> None:
    machine = make_eviction(0, 1)
    machine.start(0)
    assert machine.answered(0, Answer(409, "Conflict"), 0) == (Read(0),)
    assert outcome_in(machine.read_back(0, PodView("another"), 0)).evicted == 1


def test_a_preemptor_that_is_bound_already_needs_nobodys_room() -> None:
    machine = make_eviction(1, 1)
    machine.start(0)
    machine.answered(1, DONE, 0)
    assert machine.answered(0, Answer(409, "Conflict"), 0) == (Read(0),)
    outcome = outcome_in(machine.read_back(0, PodView("u-0", "elsewhere"), 0))
    assert (outcome.reason, outcome.evicted) == ("PreflightFailed", 0)


def test_a_budget_that_fills_up_between_proof_and_eviction_stops_that_victim_only() -> None:
    machine = proven()
    machine.answered(1, DONE, 2)
    machine.answered(2, DONE, 2)
    machine.answered(1, DONE, 3)
    outcome = outcome_in(machine.answered(2, BUDGET, 3))
    assert (outcome.reason, outcome.evicted) == ("", 1)
    assert [(one.uid, one.result) for one in outcome.members] == [("v-1", "refused")]


def test_a_proof_without_an_answer_evicts_no_pod() -> None:
    machine = make_eviction(0, 1)
    commands = machine.start(0)
    while not isinstance(commands[0], Finish):
        (command,) = commands
        if isinstance(command, Read):
            commands = machine.read_back(0, SILENT, 0)
        else:
            assert isinstance(command, Evict)
            assert command.dry_run
            commands = machine.answered(0, SILENT, 0)
    assert (outcome_in(commands).reason, outcome_in(commands).evicted) == ("PreflightFailed", 0)


def test_what_was_delivered_too_often_is_only_read_back() -> None:
    machine = make_eviction(1, 1, delivered=LIMITS.deliveries_max + 1)
    machine.start(0)
    assert machine.looked_up(outcome_exists=False) == (Read(0), Read(1))
    machine.read_back(0, PodView("u-0"), 0)
    outcome = outcome_in(machine.read_back(1, PodView("v-0", "n", deleting=True), 0))
    assert (outcome.reason, outcome.evicted) == ("BinderGaveUp", 1)


ANSWERS = st.sampled_from([DONE, BUDGET, DENIED, BUSY, SILENT, Answer(404), Answer(409, "C")])
READS = st.sampled_from([None, SILENT, PodView("v-0"), PodView("u-0", "n-0"), PodView("x")])


@given(st.randoms(use_true_random=False), st.data())
def test_under_any_answers_in_any_order_no_pod_is_evicted_before_all_proofs_passed(
    chance: Random, data: st.DataObject
) -> None:
    machine = make_eviction(1, 2)
    waiting = list(machine.start(0))
    proofs = 3
    now_ms = 0
    while True:
        command = waiting.pop(chance.randrange(len(waiting)))
        if isinstance(command, Finish):
            break
        now_ms += 500
        if isinstance(command, Read):
            found = machine.read_back(command.index, data.draw(READS), now_ms)
        else:
            assert isinstance(command, Post | Evict | Mark)
            real = isinstance(command, Mark) or not command.dry_run
            assert not (real and proofs), "a pod is touched before all is proven"
            found = machine.answered(command.index, data.draw(ANSWERS), now_ms)
        if any(isinstance(one, Mark) for one in found):
            proofs = 0
        waiting += found
    outcome = command.outcome
    assert waiting == []
    assert outcome.evicted + sum(one.uid.startswith("v-") for one in outcome.members) == 2
    if outcome.reason == "PreflightFailed":
        assert outcome.evicted == 0
