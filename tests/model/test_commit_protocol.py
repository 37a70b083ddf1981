"""Every interleaving of two planners, two binders and an API server around one gang.

Each test names the faults that may happen, each at most once and at any instant; everything else
(which process takes over, in which order messages arrive, how far the watch lags) is explored
whole. The pairs that take long run in `make certify`.
"""

import itertools
from typing import Any, Final

import pytest

from tests.model import binders, planners
from tests.model.search import Found, Result, search
from tests.model.states import Rules

#: `crash-planner-1` is `crash-planner-0` with the names changed, but for the nodes they prefer.
FAULTS: Final = (
    "append-unanswered",
    "crash-binder",
    "crash-planner-0",
    "cut-off",
    "hang",
    "pod-deleted",
    "refused-once",
    "takeover",
    "unanswered",
)
#: All four processes in one life are more states than were visited in ten minutes and 2 GB.
CRASHES: Final = (
    ("crash-planner-0", "crash-planner-1", "crash-binder"),
    ("crash-binder", "crash-binder-again"),
)
PAIRS: Final = tuple(itertools.combinations(FAULTS, 2))
#: Of these the search of a gang of two is over within seconds.
SMALL_PAIRS: Final = tuple(
    pair for pair in PAIRS if "append-unanswered" in pair or "unanswered" in pair
)
CERTIFIED = (pytest.mark.certify, pytest.mark.timeout(1200))


def explore(*faults: str, members: int = 3, **rules: Any) -> Result:
    result = search(
        Rules(
            faults=frozenset(faults),
            faults_max=len(faults),
            gangs=(members,),
            nodes=members + 1,
            **rules,
        )
    )
    assert binders.machines.steps_taken, "no step of the real binder was taken"
    assert planners.fences.steps_taken, "no step of the real fence was taken"
    return result


def test_without_faults_the_gang_becomes_whole_whatever_the_order() -> None:
    result = explore()
    assert set(result.ends) == {"whole"}


def test_a_gang_that_a_policy_refuses_is_bound_in_part_once_and_released() -> None:
    result = explore(poisoned=frozenset({2}))
    assert set(result.ends) == {"released"}
    assert result.states > 1_000


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_at_any_instant_leaves_the_gang_whole_or_released(fault: str) -> None:
    result = explore(fault)
    assert "whole" in result.ends


@pytest.mark.slow
@pytest.mark.parametrize("pair", SMALL_PAIRS, ids="+".join)
def test_two_faults_at_any_two_instants_leave_the_gang_whole_or_released(
    pair: tuple[str, str],
) -> None:
    assert "whole" in explore(*pair, members=2).ends


@pytest.mark.slow
def test_a_planner_killed_in_a_release_leaves_it_to_the_next() -> None:
    result = explore("crash-planner-0", members=2, poisoned=frozenset({1}))
    assert set(result.ends) == {"released"}


@pytest.mark.slow
def test_a_delivery_cut_off_from_nats_does_no_harm_though_its_outcome_comes_late() -> None:
    assert "whole" in explore("cut-off", "refused-once", members=2).ends


@pytest.mark.certify
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("pair", [one for one in PAIRS if one not in SMALL_PAIRS], ids="+".join)
def test_any_two_faults_leave_a_gang_of_two_whole_or_released(pair: tuple[str, str]) -> None:
    assert "whole" in explore(*pair, members=2).ends


@pytest.mark.certify
@pytest.mark.timeout(1200)
def test_a_binder_that_hangs_needs_no_claims_as_long_as_it_lets_go_when_it_wakes_up() -> None:
    assert "whole" in explore("hang", "refused-once", members=2, redelivery_claims=False).ends


@pytest.mark.certify
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("crashes", CRASHES, ids="+".join)
def test_a_gang_of_two_outlives_one_crash_of_each(crashes: tuple[str, ...]) -> None:
    assert "whole" in explore(*crashes, members=2).ends


MUTATIONS: Final[dict[str, tuple[tuple[str, ...], int, dict[str, Any], str]]] = {
    "the stream takes every append": (("takeover",), 3, {"fenced": False}, "over-committed|open"),
    "room is assumed from the outcome on": ((), 2, {"decision_assumes": False}, "two open"),
    "late room is given away": (
        ("crash-binder", "refused-once"),
        2,
        {"late_room_is_kept": False},
        "over-committed",
    ),
    "a refusal hides an earlier request": (
        ("unanswered", "refused-once"),
        2,
        {"late_is_published": False},
        "over-committed",
    ),
    "the last outcome wins": (
        ("cut-off",),
        2,
        # A claim alone keeps the second one out, too.
        {"first_outcome_wins": False, "redelivery_claims": False},
        "two outcomes",
    ),
    "a redelivery does not claim": (
        ("cut-off", "refused-once"),
        2,
        {"redelivery_claims": False},
        "over-committed",
    ),
    "the API server ignores UIDs": (
        ("pod-deleted", "refused-once"),
        2,
        {"uid_is_precondition": False},
        "without a decision",
    ),
    "a binder that wakes up goes on": (
        ("hang", "refused-once"),
        2,
        # With claims alone two faults are not enough to see it: its outcome is refused.
        {"sleeper_abandons": False, "redelivery_claims": False},
        "over-committed",
    ),
    "a second attempt is not proved first": (
        (),
        2,
        {"preflighted_again": False, "poisoned": frozenset({1})},
        "a second time",
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_protocol_without_one_of_its_rules_is_found_out(name: str) -> None:
    faults, members, rules, words = MUTATIONS[name]
    with pytest.raises(Found, match=words):
        explore(*faults, members=members, **rules)
