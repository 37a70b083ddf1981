"""The timer behind a test's timeout (pytest-timeout, whose method is `signal`)."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stopped_timer() -> Iterator[None]:
    """Stop the running test's timer during the block, and continue it afterwards.

    For steps that are not what a test is about, have limits of their own, and take long on a busy
    machine, such as the start of a control plane. Blocks may be nested, and run in any thread.
    """
    left_s, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        yield
    finally:
        now_left_s, _ = signal.getitimer(signal.ITIMER_REAL)
        signal.setitimer(signal.ITIMER_REAL, max(left_s, now_left_s))
