"""Every pair of a state and an event in the table of a gang's life has a scenario that leads a
planner through it. Only pairs that need a race between records which no scenario can arrange are
applied to a bare history.
"""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from services.gang_planner.core import cycle_context, transitions
from services.gang_planner.core.lifecycle import assessment
from services.gang_planner.core.state.gang_history import History
from services.gang_planner.core.state.gang_states import GangEvent, GangState
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.transitions import TABLE, Effect, apply_event
from shared.model.invariants import InvariantViolation
from tests.services.gang_planner.core.lifecycle import gang_lives

CORE: Final = Path(cycle_context.__file__).parent
Pair = tuple[GangState, GangEvent]
PAIRS: Final[list[Pair]] = [
    (state, event) for event, row in TABLE.items() for state in row.transitions
]

#: The scenario that leads a planner through each pair.
SCENARIOS: Final[dict[Pair, Callable[[], None]]] = {
    (GangState.WAITING, GangEvent.NOTHING_HELD): gang_lives.a_gang_runs_completes_and_is_cleaned_up,
    (GangState.STARTING, GangEvent.NOTHING_HELD): gang_lives.the_pods_of_a_decision_vanish,
    (
        GangState.BACKING_OFF,
        GangEvent.NOTHING_HELD_IN_BACKOFF,
    ): gang_lives.a_restarted_planner_reads_that_a_decision_failed,
    (
        GangState.STARTING,
        GangEvent.NOTHING_HELD_IN_BACKOFF,
    ): gang_lives.the_last_assumed_member_vanishes_while_its_gang_backs_off,
    (
        GangState.WAITING,
        GangEvent.MEMBERS_HELD,
    ): gang_lives.a_restarted_planner_finds_a_decision_in_flight,
    (
        GangState.BACKING_OFF,
        GangEvent.MEMBERS_HELD,
    ): gang_lives.the_last_assumed_member_vanishes_while_its_gang_backs_off,
    (
        GangState.WAITING,
        GangEvent.DECISION_MISSING,
    ): gang_lives.a_planner_without_a_log_finds_a_gang_bound_in_part,
    (
        GangState.RELEASING,
        GangEvent.DECISION_MISSING,
    ): gang_lives.a_released_gang_without_a_log_gets_a_node_back,
    (GangState.STARTING, GangEvent.MEMBERS_HELD): gang_lives.a_gang_is_bound_over_two_cycles,
    (GangState.WAITING, GangEvent.QUORUM_PLACED): gang_lives.a_gang_runs_that_no_decision_bound,
    (
        GangState.BACKING_OFF,
        GangEvent.QUORUM_PLACED,
    ): gang_lives.late_bindings_complete_a_gang_that_backs_off,
    (GangState.STARTING, GangEvent.QUORUM_PLACED): gang_lives.a_gang_is_bound_over_two_cycles,
    (
        GangState.REPAIRING,
        GangEvent.QUORUM_PLACED,
    ): gang_lives.a_repair_fails_once_and_completes_the_gang,
    (
        GangState.RELEASING,
        GangEvent.QUORUM_PLACED,
    ): gang_lives.a_late_binding_completes_a_gang_whose_release_was_decided,
    (
        GangState.DORMANT,
        GangEvent.MEMBERS_RETURNED,
    ): gang_lives.all_nodes_of_a_gang_leave_and_come_back,
    (
        GangState.RUNNING,
        GangEvent.ALL_LOST,
    ): gang_lives.a_gang_that_lost_all_members_is_placed_again,
    (GangState.DEGRADED, GangEvent.ALL_LOST): gang_lives.a_degraded_gang_loses_its_last_member,
    (
        GangState.RELEASING_STARTED,
        GangEvent.ALL_LOST,
    ): gang_lives.a_gang_does_not_run_by_its_start_deadline,
    (GangState.RUNNING, GangEvent.QUORUM_HELD): gang_lives.a_gang_runs_completes_and_is_cleaned_up,
    (GangState.DEGRADED, GangEvent.QUORUM_HELD): gang_lives.a_completed_gang_becomes_larger,
    (
        GangState.COMPLETED,
        GangEvent.RUN_CONTINUED,
    ): gang_lives.a_completed_gang_gets_another_member,
    (GangState.COMPLETED, GangEvent.RUN_BEGUN): gang_lives.a_completed_gang_runs_again,
    (GangState.RUNNING, GangEvent.QUORUM_LOST): gang_lives.a_lost_member_is_replaced,
    (GangState.DEGRADED, GangEvent.QUORUM_LOST): gang_lives.a_lost_member_is_replaced,
    (GangState.RUNNING, GangEvent.ALL_ENDED): gang_lives.a_completed_gang_gets_another_member,
    (GangState.DEGRADED, GangEvent.ALL_ENDED): gang_lives.the_last_members_of_a_degraded_gang_end,
    (GangState.COMPLETED, GangEvent.ALL_ENDED): gang_lives.a_gang_runs_completes_and_is_cleaned_up,
    (
        GangState.WAITING,
        GangEvent.MEMBERS_DECIDED,
    ): gang_lives.a_restarted_planner_finds_a_decision_in_flight,
    (
        GangState.STARTING,
        GangEvent.MEMBERS_DECIDED,
    ): gang_lives.a_policy_refuses_a_member_that_others_can_replace,
    (
        GangState.DORMANT,
        GangEvent.MEMBERS_DECIDED,
    ): gang_lives.a_gang_that_lost_all_members_is_placed_again,
    (
        GangState.REPAIRING,
        GangEvent.MEMBERS_DECIDED,
    ): gang_lives.a_repair_fails_once_and_completes_the_gang,
    (GangState.RUNNING, GangEvent.MEMBERS_DECIDED): gang_lives.a_completed_gang_gets_another_member,
    (GangState.DEGRADED, GangEvent.MEMBERS_DECIDED): gang_lives.a_completed_gang_becomes_larger,
    (
        GangState.WAITING,
        GangEvent.REPAIR_NEEDED,
    ): gang_lives.a_restarted_planner_finds_a_gang_bound_in_part,
    (
        GangState.BACKING_OFF,
        GangEvent.REPAIR_NEEDED,
    ): gang_lives.a_member_fails_when_another_is_bound,
    (GangState.STARTING, GangEvent.REPAIR_NEEDED): gang_lives.a_repair_does_not_end_by_its_deadline,
    (
        GangState.REPAIRING,
        GangEvent.NOTHING_BOUND,
    ): gang_lives.the_only_bound_member_under_repair_is_deleted,
    (
        GangState.WAITING,
        GangEvent.MEMBER_REFUSED,
    ): gang_lives.a_restarted_planner_reads_that_a_policy_refused_a_needed_member,
    (
        GangState.BACKING_OFF,
        GangEvent.MEMBER_REFUSED,
    ): gang_lives.a_late_binding_and_a_refusal_meet_a_gang_that_backs_off,
    (GangState.STARTING, GangEvent.MEMBER_REFUSED): gang_lives.a_policy_refuses_a_needed_member,
    (
        GangState.REPAIRING,
        GangEvent.MEMBER_REFUSED,
    ): gang_lives.a_member_fails_shortly_before_the_repair_deadline,
    (
        GangState.REPAIRING,
        GangEvent.REPAIR_DEADLINE_PASSED,
    ): gang_lives.a_repair_does_not_end_by_its_deadline,
    (GangState.REPAIRING, GangEvent.REPAIRS_BLOCKED): gang_lives.two_repairs_block_each_other,
    (
        GangState.RUNNING,
        GangEvent.START_DEADLINE_PASSED,
    ): gang_lives.an_extra_member_fails_shortly_before_the_start_deadline,
    (
        GangState.DEGRADED,
        GangEvent.START_DEADLINE_PASSED,
    ): gang_lives.a_degraded_gang_does_not_run_by_its_start_deadline,
    (
        GangState.RUNNING,
        GangEvent.RUN_LIMIT_PASSED,
    ): gang_lives.a_gang_runs_until_its_limit,
    (
        GangState.DEGRADED,
        GangEvent.RUN_LIMIT_PASSED,
    ): gang_lives.a_degraded_gang_runs_until_its_limit,
    (
        GangState.RUNNING,
        GangEvent.GRACE_PASSED,
    ): gang_lives.a_grace_passes_before_a_restarted_planner_assesses_the_gang,
    (
        GangState.DEGRADED,
        GangEvent.GRACE_PASSED,
    ): gang_lives.a_degraded_gang_is_released_after_its_grace,
    (
        GangState.RELEASING,
        GangEvent.RELEASE_WITHDRAWN,
    ): gang_lives.a_late_binding_completes_a_gang_before_its_release_is_decided,
    (GangState.RELEASING, GangEvent.RELEASED): gang_lives.a_policy_refuses_a_needed_member,
    (
        GangState.RELEASING_STARTED,
        GangEvent.RELEASED,
    ): gang_lives.a_degraded_gang_is_released_after_its_grace,
    (
        GangState.WAITING,
        GangEvent.DECISION_FAILED,
    ): gang_lives.a_restarted_planner_reads_that_a_decision_failed,
    (
        GangState.BACKING_OFF,
        GangEvent.DECISION_FAILED,
    ): gang_lives.a_binder_reports_again_that_the_bindings_are_unknown,
    (
        GangState.STARTING,
        GangEvent.DECISION_FAILED,
    ): gang_lives.a_member_fails_when_another_is_bound,
    (
        GangState.REPAIRING,
        GangEvent.DECISION_FAILED,
    ): gang_lives.a_member_fails_again_shortly_before_the_repair_deadline,
    (GangState.RUNNING, GangEvent.DECISION_FAILED): gang_lives.an_extra_member_fails,
    (GangState.DEGRADED, GangEvent.DECISION_FAILED): gang_lives.one_of_two_lost_members_fails_again,
    (
        GangState.DORMANT,
        GangEvent.DECISION_FAILED,
    ): gang_lives.a_binder_reports_again_on_an_extra_member_of_a_gang_that_lost_the_others,
    (GangState.BACKING_OFF, GangEvent.BACKOFF_ENDED): gang_lives.a_decision_fails_altogether,
    (
        GangState.STARTING,
        GangEvent.BACKOFF_ENDED,
    ): gang_lives.a_policy_refuses_a_member_that_others_can_replace,
    (
        GangState.REPAIRING,
        GangEvent.BACKOFF_ENDED,
    ): gang_lives.a_repair_fails_once_and_completes_the_gang,
    (
        GangState.RELEASING,
        GangEvent.BACKOFF_ENDED,
    ): gang_lives.a_member_fails_again_shortly_before_the_repair_deadline,
    (GangState.RUNNING, GangEvent.BACKOFF_ENDED): gang_lives.an_extra_member_fails,
    (GangState.DEGRADED, GangEvent.BACKOFF_ENDED): gang_lives.a_replacement_fails,
    (GangState.COMPLETED, GangEvent.BACKOFF_ENDED): gang_lives.a_gang_completes_while_it_backs_off,
    (
        GangState.RELEASING_STARTED,
        GangEvent.BACKOFF_ENDED,
    ): gang_lives.an_extra_member_fails_shortly_before_the_start_deadline,
    (
        GangState.DORMANT,
        GangEvent.BACKOFF_ENDED,
    ): gang_lives.a_gang_loses_all_members_while_it_backs_off,
}
#: Pairs that no scenario arranges, and why a planner may meet them.
NOT_ARRANGED: Final[dict[Pair, str]] = {
    (GangState.BACKING_OFF, GangEvent.NOTHING_HELD): (
        "its backoff has ended in the log alone: an assessment may find each of the three"
    ),
    **dict.fromkeys(
        [
            (GangState.STARTING, GangEvent.DECISION_MISSING),
            (GangState.BACKING_OFF, GangEvent.DECISION_MISSING),
        ],
        "records of its decision are in the log, but not the decision itself",
    ),
    (GangState.WAITING, GangEvent.NOTHING_HELD_IN_BACKOFF): "likewise, its backoff was restored",
    (GangState.DORMANT, GangEvent.MEMBER_REFUSED): (
        "a late outcome refuses a member in the cycle in which other members come back"
    ),
    (GangState.COMPLETED, GangEvent.DECISION_FAILED): (
        "an outcome arrives after the other members have ended"
    ),
}


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch) -> set[Pair]:
    """The pairs that planners apply during the test."""
    found: set[Pair] = set()

    def record(history: History, event: GangEvent, gang: Gang | str) -> Effect:
        found.add((history.state, event))
        return apply_event(history, event, gang)

    monkeypatch.setattr(assessment, "apply_event", record)
    monkeypatch.setattr(cycle_context, "apply_event", record)
    monkeypatch.setattr(transitions, "apply_event", record)
    return found


@pytest.mark.parametrize("pair", SCENARIOS, ids=": ".join)
def test_a_planner_makes_the_transition(pair: Pair, applied: set[Pair]) -> None:
    SCENARIOS[pair]()
    assert pair in applied


def test_every_pair_of_the_table_has_a_scenario_or_a_reason() -> None:
    assert not SCENARIOS.keys() & NOT_ARRANGED.keys()
    assert SCENARIOS.keys() | NOT_ARRANGED.keys() == set(PAIRS)


@pytest.mark.parametrize("event", GangEvent)
@pytest.mark.parametrize("state", GangState)
def test_every_pair_leads_to_a_state_or_is_refused(state: GangState, event: GangEvent) -> None:
    history = History()
    history.enter(state)
    row = TABLE[event]
    if state in row.transitions:
        assert apply_event(history, event, "team/a") is row.transitions[state].effect
        assert history.state is row.transitions[state].next_state
    else:
        with pytest.raises(InvariantViolation, match=row.otherwise):
            apply_event(history, event, "team/a")
        assert history.state is state


def test_every_event_and_every_effect_is_in_the_table() -> None:
    assert TABLE.keys() == set(GangEvent)
    used = {one.effect for row in TABLE.values() for one in row.transitions.values()}
    assert used == set(Effect)


@pytest.mark.parametrize(
    "event",
    [
        GangEvent.NOTHING_HELD,
        GangEvent.NOTHING_HELD_IN_BACKOFF,
        GangEvent.MEMBERS_HELD,
        GangEvent.QUORUM_HELD,
        GangEvent.QUORUM_LOST,
        GangEvent.ALL_ENDED,
        GangEvent.RUN_CONTINUED,
        GangEvent.RUN_BEGUN,
        GangEvent.MEMBERS_DECIDED,
    ],
)
def test_an_event_that_is_applied_without_its_effect_has_none(event: GangEvent) -> None:
    effects_of_event = {one.effect for one in TABLE[event].transitions.values()}
    assert effects_of_event == {Effect.NOTHING}


def test_every_state_can_be_entered_and_left() -> None:
    entered, left = set[GangState](), set[GangState]()
    for row in TABLE.values():
        for state, one in row.transitions.items():
            if one.next_state is not state:
                left.add(state)
                entered.add(one.next_state)
    assert entered == left == set(GangState)


def test_only_the_table_changes_the_state_of_a_gang() -> None:
    writers = {
        path.relative_to(CORE)
        for path in CORE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and (node.attr == "enter" or _writes_state(node))
    }
    assert writers == {Path("transitions.py")}
    assert transitions.__file__ == str(CORE / "transitions.py")


def _writes_state(node: ast.Attribute) -> bool:
    written = node.attr == "state" and isinstance(node.ctx, ast.Store)
    return written and "history" in ast.unparse(node.value)
