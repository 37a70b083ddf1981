"""Delays between attempts."""

import random
from collections.abc import Iterator


def delays_s(
    rng: random.Random, *, first_s: float = 0.1, factor: float = 2.0, max_s: float = 30.0
) -> Iterator[float]:
    """Endless delays that grow by `factor` up to `max_s`, each drawn from the upper half of its interval."""
    raise NotImplementedError
