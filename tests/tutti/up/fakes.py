"""Processes that are none, and a clock that only they move."""

import asyncio
import itertools
import signal
from pathlib import Path

from tutti.up.processes import ProcessSpec


def make_spec(service: str = "binder", ordinal: int = 0, log: Path | None = None) -> ProcessSpec:
    return ProcessSpec(service=service, ordinal=ordinal, flags=(), log=log)


class FakeChild:
    """A process that lives until a signal ends it.

    `obeys` are the signals that end it.
    """

    def __init__(self, pid: int, title: str, obeys: frozenset[signal.Signals]) -> None:
        self._pid = pid
        self.title = title
        self.obeys = obeys
        self.signals: list[signal.Signals] = []
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def alive(self) -> bool:
        return not self._ended.done()

    def end(self, status: int) -> None:
        if self.alive:
            self._ended.set_result(status)

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    def send_signal(self, number: signal.Signals) -> None:
        self.signals.append(number)
        if number in self.obeys:
            self.end(-number)


class FakeLauncher:
    """Launches fakes; `launched` gets each."""

    def __init__(
        self, obeys: frozenset[signal.Signals] = frozenset({signal.SIGTERM, signal.SIGKILL})
    ) -> None:
        self.children: list[FakeChild] = []
        self.launched: asyncio.Queue[FakeChild] = asyncio.Queue()
        self.obeys = obeys
        self._pids = itertools.count(100)

    async def launch(self, spec: ProcessSpec) -> FakeChild:
        child = FakeChild(next(self._pids), spec.title, self.obeys)
        self.children.append(child)
        self.launched.put_nowait(child)
        return child
