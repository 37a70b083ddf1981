"""Processes: ties a child to its parent, so that the child ends even when the parent is killed;
reads the end of a child's log; the start time, the CPU time and the name of a process, from the
kernel.

A parent that ends in order stops its children itself. If it ends without running a handler
(SIGKILL, a crash), the kernel sends the child a signal. Linux only: on other platforms the children
of a killed parent continue.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_LOG_TAIL_BYTES = 2_000


def dying_with_parent(sent: signal.Signals = signal.SIGTERM) -> Callable[[], None] | None:
    """Make the ``preexec_fn`` that asks the kernel to send the child ``sent`` when its parent dies.

    The kernel watches the *thread* that forks, so start the child from a thread that lives as long
    as the process: the one that runs the event loop. The request survives ``exec`` of an ordinary
    binary (not of a set-user-id one).

    Returns None, the default of ``preexec_fn``, on platforms without such a request.
    """
    if sys.platform != "linux":
        return None
    # Looked up before the fork: between fork and exec only the two system calls below run.
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent_pid = os.getpid()

    def tie() -> None:
        if prctl(_PR_SET_PDEATHSIG, int(sent), 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
        # If the parent died between the fork and the request, no signal will come.
        if os.getppid() != parent_pid:
            os.kill(os.getpid(), sent)

    return tie


def log_tail(path: Path | None) -> str:
    """The end of a child's log, for messages; "" when there is none."""
    if path is None or not path.is_file():
        return ""
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - _LOG_TAIL_BYTES))
        return log.read().decode(errors="replace").strip()


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
