"""Sends requests to the API server: how many at once, and in which order.

A fixed number of workers take requests from one queue, so that a decision of five thousand members
does not cost a task per member. The oldest decision goes first, whatever its request: with a
pre-flight, one gang after the other is bound, instead of all being proved before any is bound.

The queue is *short* while fewer requests wait in it than the window allows in flight: then another
decision is worth starting, because workers could become idle before it is pulled. A longer queue
binds no pod sooner; it only leaves more gangs partly bound, and more deliveries to renew.

When the API server sheds load, the window shrinks (`core.window`), and a request that was shed is
sent again after its Retry-After. Its state machine is not informed: a busy server says nothing
about the pod, and a gang whose binding was abandoned for it would be released and bound again,
which is more load. So decisions wait in the stream, where no member of them is bound.
"""

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, NoReturn, Protocol, TypeAlias, assert_never

from services.binder.active_decision import ActiveDecision
from services.binder.core.answers import TIMEOUT, Answer, PodView, is_shed
from services.binder.core.claim_preparation import Preparation, Progress
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
from services.binder.core.window import Window
from shared.contracts.decisions import Binding, Victim
from shared.model.invariants import InvariantViolation

#: Pause after a 429 without a Retry-After.
_SHED_S: Final = 1.0
#: A request is sent again this often before its machine gets the 429: about a minute. A server that
#: answers 429 to one pod for ever must not keep a decision here for ever.
_SHEDS_MAX: Final = 60


class Pods(Protocol):
    """The requests to the API server. Failures are answers; only cancellation is raised."""

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

    async def undo(self, preparation: Preparation) -> bool:
        """Undo a preparation unless a controller has completed it; False when one of its writes may
        still be carried out.
        """
        ...

    async def evict(self, victim: Victim, *, dry_run: bool) -> Answer:
        """Evict the pod by the eviction API, its UID as precondition."""
        ...

    async def read(self, pod: Binding | Victim) -> PodView | Answer | None:
        """Read the pod; None: there is no pod of that name."""
        ...


Proceed: TypeAlias = Callable[[ActiveDecision, tuple[Command, ...]], None]


class _Request(NamedTuple):
    """Ordered by the decision's sequence, then by the order of the requests."""

    seq: int
    number: int
    active: ActiveDecision
    command: Request
    #: How often the API server answered 429.
    sheds: int = 0


class RequestDispatcher:
    """Sends the requests of state machines and gives them the answers."""

    def __init__(
        self,
        pods: Pods,
        proceed: Proceed,
        now_ms: Callable[[], int],
        *,
        requests_max: int,
        on_short: Callable[[], None],
    ) -> None:
        """Send over `pods`, at most `requests_max` at once; `proceed` takes the next commands of a
        machine, `on_short` is called whenever the queue has become short.
        """
        self._pods = pods
        self._proceed = proceed
        self._now_ms = now_ms
        self._workers = requests_max
        self._window = Window(requests_max)
        self._on_short = on_short
        # Bounded by the decisions in progress, each of which is at most one message long.
        self._queue: list[_Request] = []
        #: Requests that were shed and are not in the queue again.
        self._shed = 0
        self._numbers = itertools.count()
        self._ready = asyncio.Semaphore(0)
        #: Pulsed when the window grows.
        self._wider = asyncio.Event()

    @property
    def short(self) -> bool:
        """Whether fewer requests wait than may be in flight."""
        return len(self._queue) + self._shed < self._window.width

    @property
    def width(self) -> int:
        """How many requests may be in flight now."""
        return self._window.width

    def send(self, active: ActiveDecision, command: Request) -> None:
        """Queue `command`, after its delay."""
        seq = active.lease.delivery.seq
        request = _Request(seq, next(self._numbers), active, command)
        if command.delay_ms:
            loop = asyncio.get_running_loop()
            loop.call_later(command.delay_ms / 1000, self._enqueue, request)
            return
        self._enqueue(request)

    async def run(self) -> None:
        """Send until cancelled; what is in flight then may or may not be carried out."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(number), name=f"requests-{number}")

    def _enqueue(self, request: _Request) -> None:
        heapq.heappush(self._queue, request)
        self._ready.release()

    async def _work(self, number: int) -> NoReturn:
        while True:
            await self._ready.acquire()
            if number >= self._window.width:
                self._ready.release()
                await self._wider.wait()
                continue
            request = heapq.heappop(self._queue)
            if self.short:
                self._on_short()
            if not request.active.lease.is_held(time.monotonic()):
                continue  # its machine gets no answer, its message is delivered again
            pause_s = await self._serve(request)
            if pause_s and self._window.width == 1:
                # The window cannot shrink further: pause.
                await asyncio.sleep(pause_s)

    async def _serve(self, request: _Request) -> float:
        """Send one request and give its machine the answer; returns the Retry-After in seconds of
        one that was shed, otherwise 0.0.
        """
        active, command = request.active, request.command
        if isinstance(command, Prepare | Undo):
            commands = await self._serve_claim(active, command)
        else:
            sent_s = time.monotonic()
            answer = await self._send(active, command)
            shed = isinstance(answer, Answer) and is_shed(answer)
            self._adjust_window(answer, sent_s, shed=shed)
            if isinstance(answer, Answer) and shed and request.sheds < _SHEDS_MAX:
                return self._send_later(request, answer)
            commands = self._give_answer(active, command, answer)
        if commands:
            self._proceed(active, commands)
        return 0.0

    async def _send(
        self, active: ActiveDecision, command: Post | Mark | Delete | Evict | Read
    ) -> Answer | PodView | None:
        index = command.index
        match command:
            case Post():
                return await self._pods.bind(
                    active.binding(index), active.marks, dry_run=command.dry_run
                )
            case Mark():
                return await self._pods.mark(active.victim(index), active.marks)
            case Delete():
                return await self._pods.delete(active.victim(index))
            case Evict():
                return await self._pods.evict(active.victim(index), dry_run=command.dry_run)
            case Read():
                return await self._pods.read(active.machine.targets[index])
            case _:
                assert_never(command)

    def _give_answer(
        self, active: ActiveDecision, command: Request, answer: Answer | PodView | None
    ) -> tuple[Command, ...]:
        if isinstance(command, Read):
            return active.machine.read_back(command.index, answer, self._now_ms())
        if not isinstance(answer, Answer):
            raise InvariantViolation("write", "was answered with a pod", command=command)
        return active.machine.answered(command.index, answer, self._now_ms())

    async def _serve_claim(
        self, active: ActiveDecision, command: Prepare | Undo
    ) -> tuple[Command, ...]:
        machine, index = active.machine, command.index
        if not isinstance(machine, Machine):
            raise InvariantViolation("preparation", "is not of a decision that binds")
        if isinstance(command, Prepare):
            preparation = machine.preparations[index]
            progress = await self._pods.prepare(preparation, again=command.again)
            return machine.prepared(index, progress, self._now_ms())
        settled = await self._pods.undo(machine.preparations[index])
        return machine.undone(index, self._now_ms(), settled=settled)

    def _adjust_window(self, answer: Answer | PodView | None, sent_s: float, *, shed: bool) -> None:
        """Shrink the window after a 429 or a timeout, grow it after any other answer."""
        if shed or (isinstance(answer, Answer) and answer.reason == TIMEOUT):
            self._window.overrun(sent_s, time.monotonic())
            return
        before = self._window.width
        self._window.answered()
        if self._window.width > before:
            self._wider.set()
            self._wider.clear()

    def _send_later(self, request: _Request, answer: Answer) -> float:
        """Queue a request that was shed again after its Retry-After; returns that in seconds."""
        pause_s = answer.retry_after_ms / 1000 or _SHED_S
        again = request._replace(sheds=request.sheds + 1)
        self._shed += 1
        asyncio.get_running_loop().call_later(pause_s, self._enqueue_again, again)
        return pause_s

    def _enqueue_again(self, request: _Request) -> None:
        self._shed -= 1
        self._enqueue(request)
