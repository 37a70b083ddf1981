"""A session's fixtures take none of a test's time."""

import signal
from contextlib import suppress

import pytest

from tests.support.timers import stopped_timer


def left_s() -> float:
    """What the running test has left."""
    return signal.getitimer(signal.ITIMER_REAL)[0]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("fails", [False, True])
def test_the_timer_is_off_in_the_block_and_continues_after_it(fails: bool) -> None:
    before = left_s()
    assert 0 < before <= 30
    with suppress(OSError), stopped_timer(), stopped_timer():
        assert left_s() == 0
        if fails:
            raise OSError
    assert 0 < left_s() <= before
