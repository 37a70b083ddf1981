"""`tutti up` as a process of the demo. It ends with the demo: in order, or by the kernel when the
demo was killed.
"""

import asyncio
import contextlib
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final, NoReturn

import msgspec

from shared.model.invariants import required
from tutti.api.failures import Refusal
from tutti.lifeline import dying_with_parent
from tutti.up.readiness import ReadyFile

#: All services start in two to three seconds on idle cores.
_START_S: Final = 60.0
#: `tutti up` gives each service 12 s in turn before it kills it.
_STOP_S: Final = 60.0
_LINES_MAX: Final = 40


class TuttiProcess:
    """A running `tutti up`."""

    def __init__(self, process: Process, ready_file: Path, say: Callable[[str], None]) -> None:
        self._process = process
        self._ready_file = ready_file
        self._say = say
        #: The last lines of its standard error: restarts, warnings.
        self._lines: deque[str] = deque(maxlen=_LINES_MAX)

    async def ready(self) -> ReadyFile:
        """Wait until all services are ready. Raises Refusal, with its last lines."""
        stdout = required(self._process.stdout, "tutti up", "must write to a pipe")
        try:
            async with asyncio.timeout(_START_S):
                line = (await stdout.readline()).decode().strip()
        except TimeoutError:
            line = ""
        if not line:
            raise Refusal("\n".join(["tutti up did not become ready:", *self._lines]))
        self._say(line)
        return msgspec.json.decode(self._ready_file.read_bytes(), type=ReadyFile)

    async def ended(self) -> NoReturn:
        """Raise Refusal as soon as it has ended."""
        status = await self._process.wait()
        raise Refusal("\n".join([f"tutti up ended with status {status}:", *self._lines]))

    async def read_errors(self) -> None:
        """Show each line of its standard error, until it ends."""
        stderr = required(self._process.stderr, "tutti up", "must write to a pipe")
        while line := (await stderr.readline()).decode(errors="replace").strip():
            self._lines.append(line)
            self._say(line)


@contextlib.asynccontextmanager
async def tutti_up(
    folder: Path, kubeconfig: Path, say: Callable[[str], None]
) -> AsyncIterator[TuttiProcess]:
    """Start `tutti up` against a cluster, without waiting until it is ready; stop it afterwards."""
    ready_file = folder / "ready.json"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "tutti.cli", "up"),
        f"--kubeconfig={kubeconfig}",
        f"--data-dir={folder / 'data'}",
        f"--ready-file={ready_file}",
        "--api",
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        preexec_fn=dying_with_parent(),
        start_new_session=True,
    )
    running = TuttiProcess(process, ready_file, say)
    # It also writes while it stops; a full pipe would keep it from ending.
    reading = asyncio.create_task(running.read_errors(), name="errors of tutti up")
    try:
        yield running
    finally:
        try:
            if process.returncode is None:
                process.terminate()
            async with asyncio.timeout(_STOP_S):
                await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            await reading
