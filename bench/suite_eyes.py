"""What a running suite shows of itself over time: memory, descriptors, tasks, streams."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path

import msgspec
import psutil

from shared.bus.connection import Bus
from shared.bus.errors import BusError
from shared.bus.jetstream_api import ApiAnswer
from shared.bus.questions import ask_all
from shared.contracts.codec import decode_status
from shared.contracts.questions import ServiceStatus, StatusRequest
from shared.contracts.subjects import ASK_STATUS, CLUSTER, DECISIONS, OUTCOMES, VERDICTS
from tutti.service_access import ServiceBus

STREAMS = (CLUSTER, DECISIONS, OUTCOMES, VERDICTS)
_ANSWERS_S = 0.5
_PATIENCE_S = 3.0
_ALL = 1000
_AGAIN_S = 0.2


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """One process at one instant."""

    at_s: float
    instance: str
    pid: int
    #: Private memory and what it shares with others.
    memory_bytes: int
    descriptors: int
    threads: int
    #: asyncio's tasks; 0 for what is not ours.
    tasks: int = 0


class StreamLook(msgspec.Struct, frozen=True, kw_only=True):
    """One stream at one instant."""

    at_s: float
    name: str
    messages: int
    bytes: int


class _State(msgspec.Struct, frozen=True):
    messages: int = 0
    bytes: int = 0


class _Stream(ApiAnswer, frozen=True):
    state: _State = _State()


def tasks_of(status: ServiceStatus) -> int:
    """Tasks of a service's event loop, as it answers. Raises KeyError: it does not say."""
    return int(status.figures["event_loop_tasks"])


class SuiteEyes:
    """Asks the services of a `tutti up` over its bus, and looks at their processes."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.looks: list[Look] = []
        self.streams: list[StreamLook] = []

    async def services(self, count: int | None = None) -> Sequence[ServiceStatus]:
        """All that answer within half a second, or within more time the first `count`."""
        wait_s = _ANSWERS_S if count is None else _PATIENCE_S
        return await ask_all(
            self._bus,
            ASK_STATUS,
            StatusRequest(),
            decode_status,
            wait_s=wait_s,
            answers_max=count or _ALL,
        )

    async def look(self) -> None:
        """Note everything as it is now."""
        now_s = time.monotonic()
        for one in await self.services():
            self._note(now_s, one.instance, one.pid, tasks_of(one))
        for name in STREAMS:
            state = (await self._bus.api(f"STREAM.INFO.{name}", None, _Stream)).state
            seen = StreamLook(at_s=now_s, name=name, messages=state.messages, bytes=state.bytes)
            self.streams.append(seen)

    def note(self, instance: str, pid: int) -> None:
        """Note a process that answers no questions."""
        self._note(time.monotonic(), instance, pid, 0)

    def _note(self, now_s: float, instance: str, pid: int, tasks: int) -> None:
        try:
            process = psutil.Process(pid)
            with process.oneshot():
                self.looks.append(
                    Look(
                        at_s=now_s,
                        instance=instance,
                        pid=pid,
                        memory_bytes=process.memory_info().rss,
                        descriptors=process.num_fds(),
                        threads=process.num_threads(),
                        tasks=tasks,
                    )
                )
        except psutil.NoSuchProcess:
            return  # It was stopped between its answer and our look.


async def keep_looking(
    eyes: SuiteEyes, every_s: float, also: Callable[[], None] = lambda: None
) -> None:
    """Look until cancelled. A look that the bus does not answer is left out: see `blind_s`."""
    while True:
        with suppress(BusError):
            await eyes.look()
        also()
        await asyncio.sleep(every_s)


def blind_s(looks: Sequence[Look], since_s: float, until_s: float) -> float:
    """The longest time between two instants in which the benchmark did not look at our own
    processes.
    """
    seen = sorted({one.at_s for one in looks if one.tasks and since_s <= one.at_s <= until_s})
    return max(later - before for before, later in pairwise((since_s, *seen, until_s)))


@asynccontextmanager
async def eyes_on(data_dir: Path) -> AsyncIterator[SuiteEyes]:
    """Eyes on the suite whose folder this is. Raises Refusal, BusError."""
    async with ServiceBus(data_dir=data_dir).connected("bench-eyes") as bus:
        yield SuiteEyes(bus)


async def replaced(eyes: SuiteEyes, gone: Sequence[int], count: int, timeout_s: float) -> float:
    """Wait until `count` services answer ready and none of the processes `gone` is among them.

    Returns:
        How many seconds that took.

    Raises:
        TimeoutError: See there.
    """
    began_s = time.monotonic()
    while True:
        found = await eyes.services(count)
        ready = [one for one in found if one.ready and one.pid not in gone]
        took_s = time.monotonic() - began_s
        if len(ready) >= count:
            return took_s
        if took_s > timeout_s:
            answers = ", ".join(f"{one.instance} {' '.join(one.not_ready)}" for one in found)
            raise TimeoutError(f"{len(ready)} of {count} are ready; answers: {answers}")
        await asyncio.sleep(_AGAIN_S)
