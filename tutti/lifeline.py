"""Ties a child process to its parent, so that the child ends even when the parent is killed; and
reads the end of a child's log.

A parent that ends in order stops its children itself. If it ends without running a handler
(SIGKILL, a crash), the kernel sends the child a signal. Linux only: on other platforms the children
of a killed parent continue.
"""

import ctypes
import os
import signal
import sys
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
