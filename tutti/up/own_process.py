"""The start time, the CPU time and the name of a process, from the kernel."""

import ctypes
import os
import sys
import time
from pathlib import Path

_PR_SET_NAME = 15


def age_s() -> float:
    """Seconds since this process was started, including the start of the interpreter; without
    /proc, since this module was imported.
    """
    ticks = start_ticks(os.getpid())
    if ticks is None:
        return time.monotonic() - _IMPORTED_S
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def start_ticks(pid: int) -> int | None:
    """When a process was started, in clock ticks since boot; None: there is none, or no /proc."""
    fields = _stat_fields(pid)
    return int(fields[19]) if fields else None


def cpu_s(pid: int) -> float | None:
    """CPU time that a process has used; None: there is none, or no /proc."""
    fields = _stat_fields(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else None


def _stat_fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; [] without a process or /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
    except OSError:
        return []
    # The name, in parentheses, may itself hold parentheses and blanks.
    return stat.rpartition(")")[2].split()


def set_name(name: str) -> None:
    """Name this process for `top` and `ps -c`; the kernel keeps 15 characters. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)


_IMPORTED_S = time.monotonic()
