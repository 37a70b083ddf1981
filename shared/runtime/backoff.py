"""Delays between attempts."""

import random
from collections.abc import Iterator


def delays_s(
    rng: random.Random, *, first_s: float = 0.1, factor: float = 2.0, max_s: float = 30.0
) -> Iterator[float]:
    """Endless delays that grow by `factor` up to `max_s`, each drawn from the upper half of its
    interval, so that clients that failed together do not come back together.
    """
    assert 0 < first_s <= max_s, (first_s, max_s)
    assert factor >= 1, factor
    ceiling_s = first_s
    while True:
        yield rng.uniform(ceiling_s / 2, ceiling_s)
        ceiling_s = min(max_s, ceiling_s * factor)
