"""`tutti up` as a process of the demo. It ends with the demo: in order, or by the kernel when the
demo was killed. On request, every process of it is killed once, at random moments, with SIGKILL.
"""

import asyncio
import contextlib
import os
import random
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final, NoReturn

import msgspec

from shared.bus.connection import Bus
from shared.contracts.questions import ServiceStatus
from shared.model.invariants import required
from tutti.api.failures import Refusal
from tutti.lifeline import dying_with_parent
from tutti.up.readiness import ReadyFile, ask_services

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


NATS: Final = "nats"
#: Between two kills: short enough that all happen during the acts; some processes have restarted
#: when the next one is killed, others have not.
_PAUSE_S: Final = (0.3, 1.2)
_ANSWERS_S: Final = 0.2
_POLL_S: Final = 0.1


class Killer:
    """Kills each process of one `tutti up` once."""

    def __init__(self, bus: Bus, ready: ReadyFile, say: Callable[[str], None]) -> None:
        #: The names of all processes: "binder-0", and NATS; and the pid that was killed, by name.
        self.expected = [f"{row.service}-{row.ordinal}" for row in ready.services] + [NATS]
        self.killed: dict[str, int] = {}
        self._bus = bus
        self._nats_pid = ready.nats_pid
        self._say = say
        self._random = random.SystemRandom()

    async def run(self) -> None:
        """Kill all of them, in a random order; each must run first."""
        for name in self._random.sample(self.expected, len(self.expected)):
            await asyncio.sleep(self._random.uniform(*_PAUSE_S))
            while name not in self.killed:
                pid = self._nats_pid if name == NATS else await self._pid(name)
                # It may have ended since it answered; its successor answers soon.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    self.killed[name] = pid
            self._say(f"SIGKILL to {name} (pid {self.killed[name]})")

    async def ready(self, *, timeout_s: float) -> dict[str, int]:
        """The pids of the ready processes, once all are ready, or after the timeout."""
        until_s = time.monotonic() + timeout_s
        while True:
            answers = await self._ask()
            pids = {each.instance: each.pid for each in answers.values() if each.ready}
            # Services answer over NATS.
            pids |= {NATS: 0} if answers else {}
            if pids.keys() >= set(self.expected) or time.monotonic() > until_s:
                return pids
            await asyncio.sleep(_POLL_S)

    async def _pid(self, name: str) -> int:
        while True:
            answers = await self._ask()
            if name in answers:
                return answers[name].pid
            await asyncio.sleep(_POLL_S)

    async def _ask(self) -> dict[str, ServiceStatus]:
        """The services that answer, without killed processes, whose last answer may be late."""
        answers = await ask_services(self._bus, _ANSWERS_S)
        dead = set(self.killed.values())
        return {each.instance: each for each in answers if each.pid not in dead}
