"""A clock for planned instants: milliseconds since the epoch, without steps."""

import time


class SteadyClock:
    """The wall time at the start, advanced by the monotonic clock.

    A correction of the wall clock must not delay writes. The difference to instants in verdicts is
    small enough.
    """

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.monotonic_ns()

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return (self._offset_ns + time.monotonic_ns()) // 1_000_000
