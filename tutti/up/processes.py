"""Starts one process of a service, which ends with this process, with its output in a log file."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final, Protocol, Self

import msgspec

from tutti.lifeline import dying_with_parent
from tutti.up.watchdog import Watched

#: A larger log is renamed (one generation is kept) before the process starts again, so that daily
#: starts do not fill a laptop's disk.
LOG_BYTES_MAX: Final = 8 * 1024 * 1024


#: Keep the working directory off the path: a folder named `services` there is another program's.
ISOLATED: Final = ("-P",)


class ProcessSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One process of one service."""

    service: str
    ordinal: int
    #: Flags of `python -m services.NAME`.
    flags: tuple[str, ...]
    #: File for its output; None for our standard error.
    log: Path | None

    @property
    def title(self) -> str:
        """Its instance name: "binder-0"."""
        return f"{self.service}-{self.ordinal}"

    @property
    def module(self) -> str:
        """Its module, for `python -m`."""
        return f"services.{self.service.replace('-', '_')}"

    @property
    def orphan_signal(self) -> signal.Signals:
        """What the kernel sends it when `tutti up` was killed. Services may be killed at any
        instant by design, and a hung one would not handle SIGTERM. Only the API service stops in
        order: its registration must not stay (ADR 0092).
        """
        return signal.SIGTERM if self.service == "api" else signal.SIGKILL


class Child(Watched, Protocol):
    """A process that was started."""

    async def wait(self) -> int:
        """Wait for its end; the exit status, negative for a signal."""
        ...


class Launcher(Protocol):
    """Starts processes."""

    async def launch(self, spec: ProcessSpec) -> Child:
        """Start one; after a failure or a cancellation none is left. Raises OSError."""
        ...


class ExecLauncher:
    """Starts `python -m services.NAME` with this interpreter, on platforms without the fork server.

    Call it from the thread of the event loop that lives as long as the program: the kernel kills
    the child when the thread that started it ends.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        """`environ` is added to the environment of each process."""
        self._environ = environ or {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """There is nothing to release."""

    async def launch(self, spec: ProcessSpec) -> Child:
        """Start one; see `Launcher`."""
        log = open_log(spec.log)
        command = (sys.executable, *ISOLATED, "-m", spec.module, *spec.flags)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=child_environ(self._environ),
                preexec_fn=dying_with_parent(spec.orphan_signal),
                # Ctrl-C must reach the supervisor only, which stops everything in order.
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
    """The environment of every service, with `more`.

    Numpy's BLAS would start a thread per core at import, which integer arithmetic never uses.
    """
    own = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **own, **(more or {})}


def open_log(path: Path | None) -> IO[bytes] | None:
    """Open a log for appending, after renaming a large one; None for None."""
    if path is None:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > LOG_BYTES_MAX:
        path.replace(path.with_name(f"{path.name}.1"))
    return path.open("ab")
