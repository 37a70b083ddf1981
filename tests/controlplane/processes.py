"""One server process under our care: started, paused, killed and stopped by its process id.

No process outlives the test run: each is killed by the kernel when the process that started it
ends, however it ends. The kernel watches the *thread* that started a child, so all children are
started from one thread that lives as long as the interpreter.
"""

import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from os import getpid
from pathlib import Path

# An API server with watches open takes up to a minute to end by itself; nothing here needs its
# grace.
STOP_TIMEOUT_S = 3.0
_DEATHSIG = Path(__file__).with_name("deathsig.py")
_spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="controlplane-spawner")


class ComponentError(RuntimeError):
    """A component did not start, or is in no state for what was asked; with its last log lines."""


class Component:
    """A named process with its own log file; it can be started again after it was stopped."""

    def __init__(self, name: str, command: Sequence[str], log_path: Path) -> None:
        self.name = name
        self.command = tuple(command)
        self.log_path = log_path
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id.

        Raises:
            ComponentError: the component is not running.
        """
        return self._running().pid

    @property
    def is_running(self) -> bool:
        """Whether the process exists (a paused one does)."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_status(self) -> int | None:
        """How the process ended, a signal as a negative number; None while it runs."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Start the process; its log is appended to.

        Raises:
            ComponentError: it runs already.
        """
        if self.is_running:
            raise ComponentError(f"{self.name} is running already")
        self._process = _spawner.submit(self._spawn).result()

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End the process: asked at first, killed after the timeout; nothing if it has ended."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)  # a paused process would never see the first signal
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """Kill the process without warning and wait until it is gone."""
        process = self._running()
        process.kill()
        process.wait()

    def pause(self) -> None:
        """Freeze the process: its connections stay open without answers."""
        self._running().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process continue."""
        self._running().send_signal(signal.SIGCONT)

    def log_tail(self, lines: int = 25) -> str:
        """Return the last lines of the log."""
        if not self.log_path.exists():
            return ""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            raise ComponentError(f"{self.name} is not running; its log ends:\n{self.log_tail()}")
        return self._process

    def _spawn(self) -> subprocess.Popen[bytes]:
        wrapper = [sys.executable, "-I", "-S", str(_DEATHSIG), str(getpid())]
        with self.log_path.open("ab") as log:
            return subprocess.Popen(
                [*wrapper, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C in the terminal reaches us alone, and we stop them in order.
                start_new_session=True,
            )


class ReservedPort:
    """A free loopback port that stays ours while a server that shares ports comes and goes.

    The socket held here is bound and never listens, so it takes no connection from the server.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]

    def release(self) -> None:
        """Give the port back; repeating it does no harm."""
        self._socket.close()
