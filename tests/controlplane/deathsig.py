"""Runs a command that is killed as soon as the thread that started it is gone (Linux).

A program, not a module to import: ``python deathsig.py PARENT_PID COMMAND...``. It keeps its
process id through the exec. Doing this in a ``preexec_fn`` instead may deadlock a parent that has
threads. Elsewhere than on Linux the command just runs.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Arm the signal, then become the command."""
    parent_pid, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
        # The parent may have died before the signal was armed; then it would never be sent.
        if os.getppid() != parent_pid:
            sys.exit(1)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
