"""A wall clock that never jumps and never runs backwards.

A machine's clock may be wrong, and may be set while a process runs. Deadlines measured with it
would then pass at once, or never. This clock advances with the machine's monotonic clock and
approaches the wall clock by at most a tenth of the elapsed time, so a duration is at most ten
percent wrong.

A process that continues another process's log adopts that log's time (`adopt`). Its own wall clock
then only determines in which direction the time drifts.
"""

import time
from collections.abc import Callable
from typing import Final

#: The clock approaches the wall clock by at most this part of the elapsed time.
SLEW: Final = 0.1
#: Where the system has such a clock, one that also counts the time in which the machine sleeps.
_STEADY: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_s() -> float:
    """Seconds of a clock that is never set; only differences are meaningful."""
    return time.clock_gettime(_STEADY)


def _wall_ms() -> float:
    return time.time_ns() / 1_000_000


class SteadyClock:
    """Milliseconds since the epoch, without jumps."""

    def __init__(
        self,
        wall_ms: Callable[[], float] = _wall_ms,
        steady: Callable[[], float] = steady_s,
    ) -> None:
        """Begin with the time of the wall clock, in milliseconds since the epoch; `steady` has the
        seconds of a clock that is never set.
        """
        self._wall_ms = wall_ms
        self._steady = steady
        self._ms = wall_ms()
        self._at_s = steady()

    def now_ms(self) -> int:
        """The current time; never less than in an earlier call since the last `adopt`."""
        at_s = self._steady()
        elapsed_ms = max(at_s - self._at_s, 0.0) * 1000
        self._at_s = at_s
        straight = self._ms + elapsed_ms
        most = elapsed_ms * SLEW
        self._ms = straight + min(max(self._wall_ms() - straight, -most), most)
        return int(self._ms)

    def adopt(self, instant_ms: int, age_ms: int = 0) -> None:
        """Continue from another clock's instant, which was read from it `age_ms` ago.

        An age is the server's measurement, from before this process began to read. It counts only
        as far as the wall clock confirms it: a clock that is slow delays deadlines, but one that is
        fast would make all of them pass at once.
        """
        now_ms = instant_ms + age_ms
        if age_ms:
            now_ms = min(now_ms, max(instant_ms, int(self._wall_ms())))
        self._ms = float(now_ms)
        self._at_s = self._steady()
