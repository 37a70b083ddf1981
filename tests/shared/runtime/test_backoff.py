"""Delays between attempts grow, are drawn at random, and have a bound."""

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from shared.runtime.backoff import delays_s


def test_delays_double_up_to_their_bound() -> None:
    drawn = list(itertools.islice(delays_s(random.Random(1), first_s=1.0, max_s=8.0), 6))
    for delay, ceiling in zip(drawn, [1, 2, 4, 8, 8, 8], strict=True):
        assert ceiling / 2 <= delay <= ceiling


def test_the_same_seed_gives_the_same_delays() -> None:
    first, second = (list(itertools.islice(delays_s(random.Random(7)), 9)) for _ in range(2))
    assert first == second


@given(st.integers(), st.floats(0.001, 1), st.floats(1, 5), st.floats(1, 100))
def test_no_delay_exceeds_its_bound(seed: int, first: float, factor: float, most: float) -> None:
    delays = delays_s(random.Random(seed), first_s=first, factor=factor, max_s=most)
    assert all(0 < delay <= most for delay in itertools.islice(delays, 50))
