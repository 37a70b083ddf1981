"""One clock for everything a controller plans: an instant since the epoch that never steps."""

import time


class SteadyClock:
    """Wall time as it was at the start, moved on by the monotonic clock.

    Delays and rates must not stop for an hour because an operator corrects the wall clock; instants
    in verdicts are close enough to it.
    """

    def __init__(self) -> None:
        """Read the wall clock, once."""
        self._offset_ns = time.time_ns() - time.monotonic_ns()

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return (self._offset_ns + time.monotonic_ns()) // 1_000_000
