"""The lanes to the API server: how many requests at once, and in which order.

A fixed number of tasks take requests from one line, so that a decision of five thousand members
does not cost a task each. The oldest decision goes first, whatever it asks: with a pre-flight in
front, one gang after the other is bound, instead of all being proved before any is.

The line is *short* while fewer requests wait in it than there are lanes: then another decision is
worth starting, because the lanes could run dry before it is asked for. A longer line binds nothing
sooner; it only leaves more gangs partly bound, and more messages to be kept ours.
"""

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias, assert_never

from services.binder.carrying import Carrying
from services.binder.core.answers import Answer, Sight
from services.binder.core.commands import (
    Command,
    Delete,
    Evict,
    Mark,
    Post,
    Prepare,
    Read,
    Request,
    Undo,
)
from services.binder.core.machine import Machine
from services.binder.core.preparing import Preparation, Progress
from shared.contracts.decisions import Binding, Victim


class Pods(Protocol):
    """What the lanes need of the API server. Failures are answers; only cancellation is raised."""

    async def bind(self, binding: Binding, marks: Mapping[str, str], *, dry_run: bool) -> Answer:
        """Send a Binding, the pod's UID as precondition and `marks` as its annotations."""
        ...

    async def mark(self, victim: Victim, condition: Mapping[str, Any]) -> Answer:
        """Write a condition into the pod's status, its UID as precondition."""
        ...

    async def delete(self, victim: Victim) -> Answer:
        """Delete the pod, its UID as precondition, within its own grace period."""
        ...

    async def prepare(self, preparation: Preparation, *, again: bool) -> Progress:
        """Write what a claim needs before its pod is bound, as far as it goes now."""
        ...

    async def undo(self, preparation: Preparation) -> None:
        """Take a preparation back as far as nobody has completed it."""
        ...

    async def evict(self, victim: Victim, *, dry_run: bool) -> Answer:
        """Evict the pod by the eviction API, its UID as precondition."""
        ...

    async def see(self, pod: Binding | Victim) -> Sight | Answer | None:
        """Read the pod; None: there is no pod of that name."""
        ...


Proceed: TypeAlias = Callable[[Carrying, tuple[Command, ...]], None]


class _Request(NamedTuple):
    """Ordered by the decision's sequence, then by when it was asked."""

    seq: int
    number: int
    carrying: Carrying
    command: Request


class Lanes:
    """Sends what machines ask for and gives them what came back."""

    def __init__(
        self,
        pods: Pods,
        proceed: Proceed,
        now_ms: Callable[[], int],
        *,
        lanes: int,
        on_short: Callable[[], None],
    ) -> None:
        """Send over `pods`, at most `lanes` at once; `proceed` takes what a machine wants next,
        `on_short` is called whenever the line has become short.
        """
        self._pods = pods
        self._proceed = proceed
        self._now_ms = now_ms
        self._lanes = lanes
        self._on_short = on_short
        # Bounded by the decisions in progress, each of which is at most one message long.
        self._line: list[_Request] = []
        self._numbers = itertools.count()
        self._ready = asyncio.Semaphore(0)

    @property
    def short(self) -> bool:
        """Whether fewer requests wait than there are lanes."""
        return len(self._line) < self._lanes

    def send(self, carrying: Carrying, command: Request) -> None:
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
            if len(self._line) == self._lanes - 1:
                self._on_short()
            if not carrying.holding.ours(time.monotonic()):
                continue  # its machine is never answered, its message is delivered again
            commands = await self._ask(carrying, command)
            if commands:
                self._proceed(carrying, commands)

    async def _ask(self, carrying: Carrying, request: Request) -> tuple[Command, ...]:
        """Send one request and let its machine judge the answer."""
        machine, index = carrying.machine, request.index
        match request:
            case Post():
                answer = await self._pods.bind(
                    carrying.binding(index), carrying.marks, dry_run=request.dry_run
                )
            case Mark():
                answer = await self._pods.mark(carrying.victim(index), carrying.marks)
            case Delete():
                answer = await self._pods.delete(carrying.victim(index))
            case Evict():
                victim = carrying.victim(index)
                answer = await self._pods.evict(victim, dry_run=request.dry_run)
            case Prepare():
                assert isinstance(machine, Machine), "only bindings need claims"
                preparation = machine.preparations[index]
                progress = await self._pods.prepare(preparation, again=request.again)
                return machine.prepared(index, progress, self._now_ms())
            case Undo():
                assert isinstance(machine, Machine), "only bindings need claims"
                await self._pods.undo(machine.preparations[index])
                return machine.undone(index, self._now_ms())
            case Read():
                sight = await self._pods.see(machine.targets[index])
                return machine.seen(index, sight, self._now_ms())
            case _:
                assert_never(request)
        return machine.answered(index, answer, self._now_ms())
