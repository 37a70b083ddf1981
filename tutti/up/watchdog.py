"""Detects hung processes.

A process sends heartbeats while its event loop runs. A process that sends none and uses no CPU
hangs: it was stopped, or a system call does not return. A process that sends none but uses CPU gets
more time: a large cluster's first list and a long planning cycle block the loop for seconds, and
after a restart the same work would begin again.
"""

import asyncio
import signal
import time
from collections.abc import Callable
from typing import Final, Protocol

from tutti.up.own_process import cpu_s

#: Limit without a heartbeat and without CPU time: far above the scheduling delays of a loaded
#: machine and, with a restart (2 s) and a redelivery (2 s), far below the 30 s within which a gang
#: that is bound in part is repaired.
SILENT_MAX_S: Final = 10.0
#: Limit without a heartbeat, but with CPU time.
BUSY_MAX_S: Final = 60.0
LOOK_EVERY_S: Final = 1.0
#: After a longer pause of our own the silence of a process proves nothing.
_LATE_S: Final = 3 * LOOK_EVERY_S

Say = Callable[[str], None]


class Watchdog:
    """Detects whether one process hangs. Pure: times come from the caller's monotonic clock."""

    def __init__(self, now_s: float) -> None:
        """Watch a process that has just been started."""
        self._looked_s = self._beat_s = self._sign_s = now_s
        self._cpu_s: float | None = None

    def judge(self, now_s: float, beat_s: float | None, cpu_s: float | None) -> str:
        """Why the process hangs; "" if it does not seem to.

        Args:
            now_s: Now.
            beat_s: Time of its last heartbeat; None: none yet.
            cpu_s: CPU time that it has used; None: unknown.
        """
        late, self._looked_s = now_s - self._looked_s > _LATE_S, now_s
        if late:
            self._beat_s = self._sign_s = now_s
        if beat_s is not None and beat_s > self._beat_s:
            self._beat_s = beat_s
        if cpu_s != self._cpu_s:
            self._cpu_s, self._sign_s = cpu_s, now_s
        self._sign_s = max(self._sign_s, self._beat_s)
        if now_s - self._sign_s >= SILENT_MAX_S:
            return f"no sign of life for {now_s - self._sign_s:.0f} s"
        if now_s - self._beat_s >= BUSY_MAX_S:
            return f"busy, and no heartbeat for {now_s - self._beat_s:.0f} s"
        return ""


class Watched(Protocol):
    """A process that may be killed."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    def send_signal(self, number: signal.Signals, /) -> None:
        """Signal it; nothing happens when it has ended."""
        ...


async def kill_when_hung(
    process: Watched, title: str, last_beat_s: Callable[[], float | None], say: Say
) -> None:
    """Watch a process until it hangs, then kill it and return."""
    watchdog = Watchdog(time.monotonic())
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        why = watchdog.judge(time.monotonic(), last_beat_s(), cpu_s(process.pid))
        if why:
            say(f"{title} (pid {process.pid}) hangs, {why}: killed")
            process.send_signal(signal.SIGKILL)
            return
