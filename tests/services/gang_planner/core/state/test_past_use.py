"""The integral of past use, and accounts."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gang_planner.core.state.past_use import FINE, averaged, by_name
from shared.contracts.decisions import AccountUse

LIVES = st.integers(1_000, 400 * 86_400_000)
SHARES = st.integers(0, 1_000_000)
TIMES = st.integers(0, 10**10)


@given(past=SHARES, held=SHARES, lasts_ms=TIMES, half_life_ms=LIVES)
def test_the_integral_is_that_of_the_formula(
    past: int, held: int, lasts_ms: int, half_life_ms: int
) -> None:
    left = 2.0 ** (-lasts_ms / half_life_ms)
    exact = past * FINE * left + held * FINE * (1 - left)
    assert averaged(past * FINE, held, lasts_ms, half_life_ms) == pytest.approx(
        exact, rel=1e-8, abs=2e3
    )


@given(
    held=SHARES, parts=st.lists(st.integers(0, 10**8), min_size=1, max_size=20), half_life_ms=LIVES
)
def test_it_does_not_matter_in_how_many_parts_it_is_charged(
    held: int, parts: list[int], half_life_ms: int
) -> None:
    """No gain by gangs that are split, or by records at other instants."""
    in_parts = 0
    for part in parts:
        in_parts = averaged(in_parts, held, part, half_life_ms)
    whole = averaged(0, held, sum(parts), half_life_ms)
    assert in_parts == pytest.approx(whole, abs=1e-8 * held * FINE * len(parts) + len(parts))


@given(held=st.lists(SHARES, min_size=1, max_size=20), half_life_ms=LIVES, times=st.randoms())
def test_use_is_never_negative_and_never_more_than_the_largest_share(
    held: list[int], half_life_ms: int, times: random.Random
) -> None:
    past = 0
    for share in held:
        past = averaged(past, share, times.randrange(10**9), half_life_ms)
        assert 0 <= past <= max(held) * FINE


def test_a_share_that_is_held_for_one_half_life_is_half_of_the_past_use() -> None:
    assert averaged(0, 1_000_000, 60_000, 60_000) == 500_000 * FINE
    assert averaged(500_000 * FINE, 0, 60_000, 60_000) == 250_000 * FINE
    assert averaged(500_000 * FINE, 0, 100 * 60_000, 60_000) == 0


def test_a_queue_comes_before_its_users() -> None:
    uses = [
        AccountUse(queue=queue, user=user, at_ms=0, past=0, held=0)
        for queue in ("b", "a")
        for user in ("x", "", None)
    ]
    assert [(use.queue, use.user) for use in sorted(uses, key=by_name)] == [
        *(("a", None), ("a", ""), ("a", "x")),
        *(("b", None), ("b", ""), ("b", "x")),
    ]
