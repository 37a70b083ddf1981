"""Starts one process of a service, tied to our life, with its output in a log file."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final, Protocol

from tutti.lifeline import dying_with_parent
from tutti.up.plan import ProcessSpec

#: A log beyond this is put aside (one generation) before the process starts again: a laptop's disk
#: is not filled by a suite that is started every day.
LOG_BYTES_MAX: Final = 8 * 1024 * 1024


#: Without the folder that we were started in on the path: a folder named `services` there is
#: another program's.
ISOLATED: Final = ("-P",)


class Child(Protocol):
    """A process that was started."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    async def wait(self) -> int:
        """Wait for its end; the exit status, negative for a signal."""
        ...

    def send_signal(self, number: signal.Signals, /) -> None:
        """Signal it; nothing happens when it has ended."""
        ...


class Launcher(Protocol):
    """Starts processes."""

    async def launch(self, spec: ProcessSpec) -> Child:
        """Start one; after a failure or a cancellation none is left. Raises OSError."""
        ...


class Launching(Launcher, Protocol):
    """A launcher that holds something while it is in use."""

    async def __aenter__(self) -> Launcher:
        """Get ready to launch."""
        ...

    async def __aexit__(self, *_: object) -> None:
        """End what it holds; what it launched ends with it."""
        ...


class ExecLauncher:
    """Starts `python -m services.NAME` with this interpreter: where there is no fork server.

    Call it from the thread of the event loop that lives as long as the program: the kernel kills
    the child when the thread that started it ends.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        """`environ` is added to the environment of each process."""
        self._environ = environ or {}

    async def __aenter__(self) -> Launcher:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is held."""

    async def launch(self, spec: ProcessSpec) -> Child:
        """Start one; see `Launcher`."""
        log = open_log(spec.log)
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *ISOLATED,
                "-m",
                spec.module,
                *spec.flags,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=child_environ(self._environ),
                # Any process of ours may be killed at any instant by design, so a lost parent needs
                # no better manners; SIGTERM might be waiting in a loop that hangs.
                preexec_fn=dying_with_parent(signal.SIGKILL),
                # Ctrl-C is for the supervisor, which stops everything in order.
                start_new_session=True,
            )
        finally:
            if log is not None:
                log.close()
        return _ExecChild(process)


class _ExecChild:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait(self) -> int:
        return await self._process.wait()

    def send_signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            self._process.send_signal(number)


def child_environ(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of every service, `more` included.

    Numpy's BLAS would start a thread per core at import and keep their stacks; integers never use
    it.
    """
    own = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **own, **(more or {})}


def open_log(path: Path | None) -> IO[bytes] | None:
    """Open a log for appending, the old one put aside when it is large; None for None."""
    if path is None:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > LOG_BYTES_MAX:
        path.replace(path.with_name(f"{path.name}.1"))
    return path.open("ab")


def log_tail(path: Path | None, bytes_max: int = 2_000) -> str:
    """The end of a log, for messages; "" when there is none."""
    if path is None or not path.is_file():
        return ""
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - bytes_max))
        return log.read().decode(errors="replace").strip()
