"""Finds a process that hangs: it is there, and does nothing.

A process beats for as long as its event loop turns. One that neither beats nor uses any CPU hangs:
it was stopped, or waits in a system call that does not return. One that does not beat and works is
given longer: a large cluster's first list and a long planning cycle block the loop for seconds, and
killing it would only have the next one begin with the same work.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

#: Without a beat and without CPU time. Far above what a loaded machine keeps a process waiting, and
#: with a restart (2 s) and a redelivery (2 s) behind it far below the 30 s within which a gang that
#: is bound in part is promised to be repaired.
SILENT_MAX_S: Final = 10.0
#: Without a beat, but at work.
BUSY_MAX_S: Final = 60.0
LOOK_EVERY_S: Final = 1.0
#: When we look later than this we were not running ourselves: silence then proves nothing.
_LATE_S: Final = 3 * LOOK_EVERY_S

Say = Callable[[str], None]


class Watchdog:
    """Judges one process. Pure: times come from the caller's monotonic clock."""

    def __init__(self, now_s: float) -> None:
        """Watch a process that has just been started."""
        self._looked_s = self._beat_s = self._sign_s = now_s
        self._cpu_s: float | None = None

    def judge(self, now_s: float, beat_s: float | None, cpu_s: float | None) -> str:
        """Why the process hangs; "" while it may be well.

        Args:
            now_s: Now.
            beat_s: When it beat last; None: not yet.
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
        """Signal it."""
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


def cpu_s(pid: int) -> float | None:
    """CPU time that a process has used; None: there is none, or no /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
    except OSError:
        return None
    # The name, in parentheses, may itself hold parentheses and blanks.
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
