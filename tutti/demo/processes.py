"""The demo's two processes: the embedded cluster, and `tutti up` with everything below it.

Both end with the demo, however it ends: in order when it can, by the kernel when it was killed.
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

from tutti.demo.cluster_process import READY
from tutti.lifeline import dying_with_parent
from tutti.up.readiness import ReadyFile

Say = Callable[[str], None]

#: An embedded cluster starts in half a second on an idle core, the suite in two to three.
_START_S: Final = 60.0
#: `tutti up` gives its services 12 s each in turn before it kills them.
_STOP_S: Final = 60.0
_ORDER_S: Final = 10.0
_LINES_MAX: Final = 40


class ProcessFailed(Exception):
    """A process of the demo did not start or has ended; the message holds what it said last."""


class Ground:
    """The embedded cluster's process; see `tutti.demo.cluster_process` for the orders."""

    def __init__(self, process: Process, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._process = process
        self._lock = asyncio.Lock()

    async def order(self, line: str) -> None:
        """Give an order and wait until it is done. Raises ProcessFailed when it is not."""
        assert self._process.stdin is not None, "started without a pipe"
        async with self._lock:
            self._process.stdin.write(f"{line}\n".encode())
            await self.answered(line)

    async def answered(self, line: str) -> None:
        """Wait for a line. Raises ProcessFailed when another one comes, or none in time."""
        assert self._process.stdout is not None, "started without a pipe"
        try:
            async with asyncio.timeout(_START_S if line == READY else _ORDER_S):
                got = (await self._process.stdout.readline()).decode().strip()
        except TimeoutError:
            got = "nothing"
        if got != line:
            raise ProcessFailed(f"the embedded cluster says {got!r}, not {line!r}")


@contextlib.asynccontextmanager
async def ground(folder: Path) -> AsyncIterator[Ground]:
    """Run the embedded cluster. Raises ProcessFailed."""
    kubeconfig = folder / "kubeconfig"
    with (folder / "cluster.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "tutti.demo.cluster_process",
            str(kubeconfig),
            stdin=PIPE,
            stdout=PIPE,
            stderr=log,
            preexec_fn=dying_with_parent(),
            start_new_session=True,
        )
    async with _ending(process):
        cluster = Ground(process, kubeconfig)
        await cluster.answered(READY)
        yield cluster


class Suite:
    """`tutti up` as a process.

    Attributes:
        said: The last lines of its standard error: restarts, warnings.
    """

    def __init__(self, process: Process, ready_file: Path, say: Say) -> None:
        self.said: deque[str] = deque(maxlen=_LINES_MAX)
        self._process = process
        self._ready_file = ready_file
        self._say = say

    async def ready(self) -> ReadyFile:
        """Wait until all is ready. Raises ProcessFailed."""
        assert self._process.stdout is not None, "started without a pipe"
        try:
            async with asyncio.timeout(_START_S):
                line = (await self._process.stdout.readline()).decode().strip()
        except TimeoutError:
            line = ""
        if not line:
            raise ProcessFailed("\n".join(["tutti up did not become ready:", *self.said]))
        self._say(line)
        return msgspec.json.decode(self._ready_file.read_bytes(), type=ReadyFile)

    async def ended(self) -> NoReturn:
        """Raise ProcessFailed as soon as it has ended."""
        status = await self._process.wait()
        raise ProcessFailed("\n".join([f"tutti up ended with status {status}:", *self.said]))

    async def listen(self) -> None:
        """Take what it says on standard error, until it ends."""
        assert self._process.stderr is not None, "started without a pipe"
        while line := (await self._process.stderr.readline()).decode(errors="replace").strip():
            self.said.append(line)
            self._say(line)


@contextlib.asynccontextmanager
async def suite(folder: Path, kubeconfig: Path, say: Say) -> AsyncIterator[Suite]:
    """Run `tutti up` against a cluster; it may not be ready yet."""
    ready_file = folder / "ready.json"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "tutti.cli",
        "up",
        f"--kubeconfig={kubeconfig}",
        f"--data-dir={folder / 'data'}",
        f"--ready-file={ready_file}",
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        preexec_fn=dying_with_parent(),
        start_new_session=True,
    )
    running = Suite(process, ready_file, say)
    # It speaks while it stops, too; a full pipe would keep it from ending.
    listening = asyncio.create_task(running.listen(), name="listen-to-up")
    try:
        async with _ending(process):
            yield running
    finally:
        await listening


@contextlib.asynccontextmanager
async def _ending(process: Process) -> AsyncIterator[None]:
    """However this is left, the process has ended: by SIGTERM if it heeds it, else killed."""
    try:
        yield
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
