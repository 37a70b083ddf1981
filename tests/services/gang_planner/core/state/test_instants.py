"""Instants and durations in messages."""

from services.gang_planner.core.state.instants import duration, in_words
from services.gang_planner.core.state.run_limits import NEVER


def test_an_instant_has_seconds_and_the_time_zone() -> None:
    assert in_words(1_764_498_005_999) == "2025-11-30 10:20:05 UTC"


def test_an_instant_beyond_all_dates_ends_no_planner() -> None:
    assert in_words(NEVER).startswith("9999-12-31")


def test_a_duration_has_the_units_that_it_needs() -> None:
    assert [duration(ms) for ms in (999, 45_000, 5_400_000, 3_601_000)] == [
        "0s",
        "45s",
        "1h30m",
        "1h1s",
    ]
