"""`tutti up` as people run it: a process, its ready file, and every process that it started."""

import asyncio
import os
import signal
import subprocess
import sysconfig
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import psutil

from tests.support.waiting import eventually
from tutti.lifeline import start_ticks
from tutti.up.readiness import ReadyFile

READY_S = 60.0
TUTTI = Path(sysconfig.get_path("scripts")) / "tutti"


class Ended(AssertionError):
    """`tutti up` ended instead of becoming ready."""


class Suite:
    """One `tutti up`."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self.process = process
        self.folder = folder
        #: Process id and start of everything that it ever ran, as far as it was seen.
        self.seen: dict[int, int | None] = {}

    @property
    def ready_path(self) -> Path:
        return self.folder / "ready.json"

    @property
    def output(self) -> str:
        return (self.folder / "up.out").read_text()

    @property
    def errors(self) -> str:
        return (self.folder / "up.err").read_text()

    def ready(self) -> ReadyFile:
        return msgspec.json.decode(self.ready_path.read_bytes(), type=ReadyFile)

    def pid(self, service: str, ordinal: int = 0) -> int:
        """As the ready file says."""
        rows = {(row.service, row.ordinal): row.pid for row in self.ready().services}
        return rows[service, ordinal]

    def look(self) -> list[psutil.Process]:
        """Every process that it has now; they are remembered."""
        try:
            found = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        self.seen.update({each.pid: start_ticks(each.pid) for each in found})
        return found

    def left(self) -> list[int]:
        """Which of the processes seen still live."""
        return [
            pid
            for pid, started in self.seen.items()
            if start_ticks(pid) == started and psutil.Process(pid).status() != "zombie"
        ]

    async def wait_ready(self) -> ReadyFile:
        """Wait for the ready file. Raises Ended when it ended instead."""

        def written() -> bool:
            if self.process.returncode is not None:
                raise Ended(f"status {self.process.returncode}: {self.errors}")
            return self.ready_path.is_file()

        try:
            await eventually(written, timeout_s=READY_S, because="tutti up is ready")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.errors}") from None
        self.look()
        return self.ready()

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Signal it and wait for its end; returns the exit status."""
        self.look()
        if self.process.returncode is None:
            self.process.send_signal(number)
        async with asyncio.timeout(READY_S):
            return await self.process.wait()


@asynccontextmanager
async def suite(
    kubeconfig: Path, folder: Path, *flags: str, source: Path | None = None
) -> AsyncIterator[Suite]:
    """Run one for the length of the block; none of its processes outlives it. `source`: the source
    tree that it runs instead of this one.
    """
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    arguments = [
        "up",
        f"--kubeconfig={kubeconfig}",
        f"--data-dir={folder / 'data'}",
        f"--ready-file={folder / 'ready.json'}",
        # A process less, where a test does not ask for it.
        "--no-api",
        *flags,
    ]
    (folder / "ready.json").unlink(missing_ok=True)
    with (folder / "up.out").open("wb") as out, (folder / "up.err").open("wb") as err:
        process = await asyncio.create_subprocess_exec(
            str(TUTTI),
            *arguments,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=os.environ if source is None else {**os.environ, "PYTHONPATH": str(source)},
        )
    running = Suite(process, folder)
    try:
        yield running
    finally:
        await running.stop()
        await eventually(lambda: not running.left(), because="no process is left")


async def healthy(*flags: str) -> str:
    """Wait until `tutti status` has the answers of all services, and is content: what it prints."""

    async def answered() -> str:
        status, text, errors = await tutti("status", "--interval=0.1", *flags)
        assert status == 0, text + errors
        return text

    return await eventually(answered, timeout_s=READY_S, because="all services answer")


async def tutti(*arguments: str) -> tuple[int, str, str]:
    """Run a command that ends by itself: status, output, errors."""
    process = await asyncio.create_subprocess_exec(
        str(TUTTI),
        *arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    async with asyncio.timeout(READY_S):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()
