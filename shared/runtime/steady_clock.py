"""A wall clock that never jumps and never runs backwards.

A machine's clock may be wrong, and may be set while a process runs. Code that measures durations
with it would see deadlines pass at once, or never. This clock advances with the machine's monotonic
clock and approaches the wall clock by at most a tenth of the elapsed time: a duration is at most
ten percent wrong, whatever happens to the wall clock.

A process that continues another process's log adopts that log's time (`adopt`): its own wall clock
then only decides in which direction the time drifts.
"""

import time
from collections.abc import Callable
from typing import Final

#: The clock approaches the wall clock by at most this part of the elapsed time.
SLEW: Final = 0.1
#: Counts the time that a machine sleeps, too, where the system has such a clock.
_STEADY: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_s() -> float:
    """Seconds of a clock that is never set; only differences mean anything."""
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
        """Begin with the wall clock's time.

        Args:
            wall_ms: The machine's clock, in milliseconds since the epoch.
            steady: Seconds of a clock that is never set.
        """
        self._wall_ms = wall_ms
        self._steady = steady
        self._ms = wall_ms()
        self._at_s = steady()

    def now_ms(self) -> int:
        """The time now; never less than at an earlier call, unless `adopt` came between."""
        at_s = self._steady()
        elapsed_ms = max(at_s - self._at_s, 0.0) * 1000
        self._at_s = at_s
        straight = self._ms + elapsed_ms
        most = elapsed_ms * SLEW
        self._ms = straight + min(max(self._wall_ms() - straight, -most), most)
        return int(self._ms)

    def adopt(self, instant_ms: int, age_ms: int = 0) -> None:
        """Continue from another clock's instant, which was read from it `age_ms` ago.

        An age that was not measured here, because the instant was stored before this process began
        to read, is the server's word: it counts only as far as the wall clock agrees that so much
        time has passed. Time that is too late makes deadlines late; time that is too early would
        make all of them pass at once.
        """
        now_ms = instant_ms + age_ms
        if age_ms:
            now_ms = min(now_ms, max(instant_ms, int(self._wall_ms())))
        self._ms = float(now_ms)
        self._at_s = self._steady()
