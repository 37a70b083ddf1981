"""The lanes to the API server: how many requests at once, and in which order.

A fixed number of tasks take requests from one line, so that a decision of five thousand members
does not cost a task each. The oldest decision goes first, whatever it asks: with a pre-flight in
front, one gang after the other is bound, instead of all being proved before any is.
"""

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from services.binder.carrying import Carrying
from services.binder.core.answers import Answer, Sight
from services.binder.core.machine import Command, Post, Read
from shared.contracts.decisions import Binding


class Pods(Protocol):
    """What the lanes need of the API server. Failures are answers; only cancellation is raised."""

    async def bind(self, binding: Binding, marks: Mapping[str, str], *, dry_run: bool) -> Answer:
        """Send a Binding, the pod's UID as precondition and `marks` as its annotations."""
        ...

    async def see(self, binding: Binding) -> Sight | Answer | None:
        """Read the pod; None: there is no pod of that name."""
        ...


Proceed: TypeAlias = Callable[[Carrying, tuple[Command, ...]], None]


class _Request(NamedTuple):
    """Ordered by the decision's sequence, then by when it was asked."""

    seq: int
    number: int
    carrying: Carrying
    command: Post | Read


class Lanes:
    """Sends what machines ask for and gives them what came back."""

    def __init__(
        self, pods: Pods, proceed: Proceed, now_ms: Callable[[], int], *, lanes: int
    ) -> None:
        """Send over `pods`, at most `lanes` at once; `proceed` takes what a machine wants next."""
        self._pods = pods
        self._proceed = proceed
        self._now_ms = now_ms
        self._lanes = lanes
        # Bounded by the decisions in progress, each of which is at most one message long.
        self._line: list[_Request] = []
        self._numbers = itertools.count()
        self._ready = asyncio.Semaphore(0)

    def send(self, carrying: Carrying, command: Post | Read) -> None:
        """Have `command` sent in its turn; one with a delay waits outside the line first."""
        seq = carrying.holding.delivery.seq
        request = _Request(seq, next(self._numbers), carrying, command)
        if command.delay_ms:
            loop = asyncio.get_running_loop()
            loop.call_later(command.delay_ms / 1000, self._enqueue, request)
            return
        self._enqueue(request)

    async def run(self) -> None:
        """Send until cancelled; what is under way then may or may not be carried out."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._lanes):
                group.create_task(self._lane(), name=f"lane-{number}")

    def _enqueue(self, request: _Request) -> None:
        heapq.heappush(self._line, request)
        self._ready.release()

    async def _lane(self) -> None:
        while True:
            await self._ready.acquire()
            _, _, carrying, command = heapq.heappop(self._line)
            if not carrying.holding.ours(time.monotonic()):
                continue  # its machine is never answered, its message is delivered again
            machine, index = carrying.machine, command.index
            binding = carrying.bindings[index]
            if isinstance(command, Post):
                answer = await self._pods.bind(binding, carrying.marks, dry_run=command.dry_run)
                commands = machine.answered(index, answer, self._now_ms())
            else:
                sight = await self._pods.see(binding)
                commands = machine.seen(index, sight, self._now_ms())
            if commands:
                self._proceed(carrying, commands)
