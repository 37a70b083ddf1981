"""Delays between failures double up to a bound; tokens pass in a burst and then at a rate."""

import itertools
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from shared.pacing import Backoff, TokenBucket


class _Most(Random):
    @override
    def uniform(self, a: float, b: float) -> float:
        return b


def test_backoff_doubles_its_bound_and_forgets_failures_after_a_success() -> None:
    backoff = Backoff(base_s=0.2, max_s=3.0, random=_Most())
    assert [backoff.next_s() for _ in range(6)] == [0.2, 0.4, 0.8, 1.6, 3.0, 3.0]
    backoff.reset()
    assert backoff.next_s() == 0.2


def test_backoff_waits_as_long_as_the_api_server_asks_up_to_its_bound() -> None:
    backoff = Backoff(base_s=0.2, max_s=3.0, random=_Most())
    assert backoff.next_s(retry_after_s=2.0) == 2.0
    assert backoff.next_s(retry_after_s=9999.0) == 3.0


@given(st.integers(), st.floats(0.001, 1), st.floats(1, 100))
def test_backoff_draws_each_delay_from_the_upper_half_of_its_bound(
    seed: int, base_s: float, max_s: float
) -> None:
    backoff = Backoff(base_s=base_s, max_s=max_s, random=Random(seed))
    for failures in range(50):
        bound_s = min(max_s, base_s * 2**failures)
        assert bound_s / 2 <= backoff.next_s() <= bound_s


def test_backoff_gives_the_same_delays_for_the_same_seed() -> None:
    first, second = (Backoff(max_s=30.0, random=Random(7)) for _ in range(2))
    assert [first.next_s() for _ in range(9)] == [second.next_s() for _ in range(9)]


def test_a_burst_after_a_quiet_time_never_waits() -> None:
    bucket = TokenBucket(burst=4, per_s=100)
    assert [bucket.draw(5.0) for _ in range(4)] == [0.0] * 4


def test_a_lasting_stream_is_held_to_the_rate_and_not_below() -> None:
    bucket = TokenBucket(burst=4, per_s=100)
    now_s, draws = 0.0, 0
    while now_s < 2.0:
        now_s += bucket.draw(now_s) + 0.001
        draws += 1
    assert 190 <= draws <= 210


def test_a_draw_of_four_tokens_passes_at_a_quarter_of_the_rate() -> None:
    bucket = TokenBucket(burst=4, per_s=100)
    now_s, draws = 0.0, 0
    while now_s < 2.0:
        now_s += bucket.draw(now_s, 4) + 0.001
        draws += 1
    assert 48 <= draws <= 53


def test_the_bucket_saves_unused_tokens_up_to_its_burst_and_no_further() -> None:
    bucket = TokenBucket(burst=4, per_s=100)
    for _ in range(10):
        bucket.draw(0.0)
    assert bucket.draw(0.0) > 0.05
    assert [bucket.draw(60.0) for _ in range(5)] == [0.0] * 4 + [0.01]


def test_a_token_put_back_is_there_for_the_next_draw() -> None:
    bucket = TokenBucket(burst=1, per_s=100)
    assert [bucket.draw(0.0), bucket.draw(0.0)] == [0.0, 0.01]
    bucket.put_back()
    assert bucket.draw(0.0) == 0.01


def test_try_draw_takes_nothing_from_an_empty_bucket() -> None:
    bucket = TokenBucket(burst=1, per_s=10)
    assert bucket.try_draw(0.0)
    assert not bucket.try_draw(0.0)
    assert not bucket.try_draw(0.09)
    assert bucket.try_draw(0.125)


def test_a_pause_delays_every_later_draw_once() -> None:
    bucket = TokenBucket(burst=3, per_s=10)
    bucket.pause(0.0, 5.0)
    assert [round(bucket.draw(0.0), 3) for _ in range(2)] == [5.1, 5.2]


def test_a_clock_that_steps_back_gains_nothing_and_breaks_nothing() -> None:
    bucket = TokenBucket(burst=1, per_s=100)
    assert bucket.draw(10.0) == 0.0
    assert 0.0 < bucket.draw(3.0) <= 0.01


@given(st.integers(1, 500), st.integers(1, 50), st.lists(st.integers(0, 300), max_size=60))
def test_no_second_has_more_draws_than_rate_and_burst(
    rate: int, burst: int, steps_ms: list[int]
) -> None:
    bucket = TokenBucket(burst=burst, per_s=rate)
    now_s = 0.0
    used_s = []
    for now_ms in itertools.accumulate(steps_ms):
        now_s = now_ms / 1000
        used_s.append(now_s + bucket.draw(now_s))
    for first_s in used_s:
        within = [at_s for at_s in used_s if first_s <= at_s < first_s + 1]
        # Rounding may move one draw into the second before.
        assert len(within) <= rate + burst + 1
