"""Kills every process of Tutti once, at random moments, with SIGKILL."""

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from typing import Final

from shared.bus.connection import Bus
from shared.bus.questions import ask_all
from shared.contracts.codec import decode_status
from shared.contracts.questions import ServiceStatus, StatusRequest
from shared.contracts.subjects import ASK_STATUS
from tutti.up.readiness import ReadyFile

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
            found = {each.instance: each.pid for each in answers.values() if each.ready}
            # Services answer over NATS.
            found |= {NATS: 0} if answers else {}
            if found.keys() >= set(self.expected) or time.monotonic() > until_s:
                return found
            await asyncio.sleep(_POLL_S)

    async def _pid(self, name: str) -> int:
        while True:
            answers = await self._ask()
            if name in answers:
                return answers[name].pid
            await asyncio.sleep(_POLL_S)

    async def _ask(self) -> dict[str, ServiceStatus]:
        """The services that answer, without killed processes, whose last answer may be late."""
        answers = await ask_all(
            self._bus, ASK_STATUS, StatusRequest(), decode_status, wait_s=_ANSWERS_S
        )
        dead = set(self.killed.values())
        return {each.instance: each for each in answers if each.pid not in dead}
