import pytest

from services.gang_planner.core.state.past_runs import PartsOfLimits, PastRuns
from shared.contracts.decisions import PAST_RUN_STEPS, PastRunsOfUser

HOUR = 3_600_000
DAY = 24 * HOUR
#: A tenth of an octave, as a factor.
PRECISION = 1.04


def user(queue: str, namespace: str, *halvings: int) -> PastRunsOfUser:
    """Runs that were half as long as their limits so many times."""
    parts = bytes(PAST_RUN_STEPS * times for times in halvings)
    return PastRunsOfUser(queue=queue, namespace=namespace, parts=parts)


def test_the_newest_runs_of_the_users_with_the_latest_ones_are_kept() -> None:
    past = PastRuns()
    for number in range(500):
        for _ in range(60):
            past.add("q", f"user-{number}", 1, 2)
        past.add("q", "user-0", HOUR, HOUR)
    listed = past.listed()
    assert len(listed) == 400
    assert {len(user.parts) for user in listed} == {48}
    assert listed[-1] == user("q", "user-0", *(0,) * 48)


@pytest.mark.parametrize("ran_ms", [60_000, HOUR, DAY, 29 * DAY])
def test_runs_of_a_minute_and_of_a_month_have_the_same_precision(ran_ms: int) -> None:
    past = PastRuns()
    for _ in range(10):
        past.add("q", "n", ran_ms, 30 * DAY)
    lasts_ms = PartsOfLimits(past.listed()).lasts_ms("q", "n", 0, 30 * DAY, 50)
    assert ran_ms / PRECISION <= lasts_ms <= ran_ms * PRECISION


def test_runs_of_a_user_count_before_those_of_the_queue_and_these_before_all() -> None:
    parts = PartsOfLimits(
        [user("a", "long", *(0,) * 10), user("a", "new", 5), user("b", "short", *(3,) * 40)]
    )
    assert parts.lasts_ms("a", "long", 0, 1_000, 50) == 1_000
    assert parts.lasts_ms("a", "new", 0, 1_000, 50) == 1_000
    assert parts.lasts_ms("a", "new", 0, 1_000, 1) == 31
    assert parts.lasts_ms("b", "none", 0, 1_000, 50) == 125
    assert parts.lasts_ms("c", "none", 0, 1_000, 50) == 125
    assert parts.lasts_ms("b", "short", 125, 1_000, 50) == 1_000, "longer than all others"


def test_a_few_runs_say_nothing() -> None:
    few = user("a", "n", *(1,) * 9)
    assert not PartsOfLimits([few]).known
    assert PartsOfLimits([few, user("a", "m", 1)]).known


def test_runs_longer_than_their_limit_and_clocks_that_went_back_are_bounded() -> None:
    past = PastRuns()
    past.add("q", "n", 10**12, 1)
    past.add("q", "n", -5, 0)
    past.add("q", "n", 0, 10**18)
    (only,) = past.listed()
    assert list(only.parts) == [0, 0, 255]
