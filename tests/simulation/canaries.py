"""Planted bugs: each must be caught by a checker within a stated number of seeds."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Run what is inside with that bug; "" plants none."""
    del name
    yield
