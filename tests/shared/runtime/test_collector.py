"""The collector of cycles runs rarely, and still runs."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from shared.runtime import collector


class Cycle:
    """Refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_cycles_are_still_collected_while_others_are_allocated() -> None:
    collector.relax()
    gone = weakref.ref(Cycle())
    kept = [[at] for at in range(30_000)]
    assert gone() is None
    assert len(kept) == 30_000
