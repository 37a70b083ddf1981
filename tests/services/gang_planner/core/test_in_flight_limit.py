"""How many pods may be in flight: what was answered within the last seconds, never too few."""

from services.gang_planner.core.in_flight_limit import InFlightLimit
from tests.support.reachable import largest


def test_as_many_may_be_under_way_as_were_answered_within_the_span() -> None:
    limit = InFlightLimit(2_000, 10)
    assert limit.in_flight_max(1_000, 0) == 10
    assert limit.in_flight_max(1_500, 300) == 300
    assert limit.in_flight_max(2_500, 800) == 800
    assert limit.in_flight_max(3_499, 800) == 800
    assert limit.in_flight_max(3_500, 800) == 500
    assert limit.in_flight_max(4_500, 800) == 10


def test_what_was_answered_before_it_began_is_not_counted() -> None:
    limit = InFlightLimit(2_000, 10)
    limit.begin(1_000, 5_000, 0)
    assert limit.in_flight_max(1_100, 5_040) == 40


def test_it_goes_on_from_what_another_planner_allowed() -> None:
    limit = InFlightLimit(2_000, 10)
    limit.begin(1_000, 0, 700)
    assert limit.in_flight_max(1_100, 100) == 800
    assert limit.in_flight_max(3_050, 100) == 100


def test_without_a_span_there_is_no_bound() -> None:
    assert InFlightLimit(0, 10).in_flight_max(1_000, 500) == 0


def test_answers_are_kept_in_few_steps_however_many_come() -> None:
    limit = InFlightLimit(2_000, 10)
    for at_ms in range(10_000):
        limit.in_flight_max(at_ms, at_ms)
    assert largest(limit) <= 101
    # A step is forgotten as a whole.
    assert 1_980 <= limit.in_flight_max(9_999, 9_999) <= 2_000


def test_a_clock_that_is_set_back_begins_again() -> None:
    limit = InFlightLimit(2_000, 10)
    assert limit.in_flight_max(50_000, 400) == 400
    assert limit.in_flight_max(10_000, 420) == 20
    assert limit.in_flight_max(12_100, 420) == 10
