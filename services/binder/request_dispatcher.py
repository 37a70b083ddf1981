"""The lanes to the API server: how many requests at once, and in which order.

A fixed number of tasks take requests from one line, so that a decision of five thousand members
does not cost a task each. The oldest decision goes first, whatever it asks: with a pre-flight in
front, one gang after the other is bound, instead of all being proved before any is.

The line is *short* while fewer requests wait in it than there are open lanes: then another decision
is worth starting, because the lanes could run dry before it is asked for. A longer line binds
nothing sooner; it only leaves more gangs partly bound, and more messages to be kept ours.

When the API server sheds load, lanes close (`core.window`), and what it shed is sent again after
its Retry-After, without its machine hearing of it: "not now" is no doubt about a pod, and a
gang whose binding was given up for it would be released and bound all over again, which is more
load. So decisions wait in the stream, and what waits has begun in no part.
"""

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, assert_never

from services.binder.active_decision import ActiveDecision
from services.binder.core.answers import TIMEOUT, Answer, Sight, is_shed
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

#: Where the API server sheds load and does not say for how long.
_SHED_S: Final = 1.0
#: A request is shed so often until its machine is informed: a minute, as a rule. A server that
#: answers 429 for ever to one pod must not keep a decision here for ever.
_SHEDS_MAX: Final = 60


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

    async def undo(self, preparation: Preparation) -> bool:
        """Undo a preparation as far as no controller has completed it; False: a write of it may be
        carried out yet.
        """
        ...

    async def evict(self, victim: Victim, *, dry_run: bool) -> Answer:
        """Evict the pod by the eviction API, its UID as precondition."""
        ...

    async def see(self, pod: Binding | Victim) -> Sight | Answer | None:
        """Read the pod; None: there is no pod of that name."""
        ...


Proceed: TypeAlias = Callable[[ActiveDecision, tuple[Command, ...]], None]


class _Request(NamedTuple):
    """Ordered by the decision's sequence, then by when it was asked."""

    seq: int
    number: int
    active: ActiveDecision
    command: Request
    #: How often the API server had no time for it.
    sheds: int = 0


class RequestDispatcher:
    """Sends what machines ask for and gives them what came back."""

    def __init__(
        self,
        pods: Pods,
        proceed: Proceed,
        now_ms: Callable[[], int],
        *,
        requests_max: int,
        on_short: Callable[[], None],
    ) -> None:
        """Send over `pods`, at most `requests_max` at once; `proceed` takes what a machine wants
        next, `on_short` is called whenever the line has become short.
        """
        self._pods = pods
        self._proceed = proceed
        self._now_ms = now_ms
        self._dispatcher = requests_max
        self._window = Window(requests_max)
        self._on_short = on_short
        # Bounded by the decisions in progress, each of which is at most one message long.
        self._line: list[_Request] = []
        #: Requests that were shed, until they are in line again.
        self._shed = 0
        self._numbers = itertools.count()
        self._ready = asyncio.Semaphore(0)
        #: Pulsed when a lane opens.
        self._wider = asyncio.Event()

    @property
    def short(self) -> bool:
        """Whether fewer requests wait than there are open lanes."""
        return len(self._line) + self._shed < self._window.width

    @property
    def width(self) -> int:
        """How many lanes are open."""
        return self._window.width

    def send(self, active: ActiveDecision, command: Request) -> None:
        """Have `command` sent in its turn; one with a delay waits outside the line first."""
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
            for number in range(self._dispatcher):
                group.create_task(self._lane(number), name=f"lane-{number}")

    def _enqueue(self, request: _Request) -> None:
        heapq.heappush(self._line, request)
        self._ready.release()

    async def _lane(self, number: int) -> None:
        while True:
            await self._ready.acquire()
            if number >= self._window.width:
                self._ready.release()
                await self._wider.wait()
                continue
            request = heapq.heappop(self._line)
            if self.short:
                self._on_short()
            if not request.active.lease.ours(time.monotonic()):
                continue  # its machine is never answered, its message is delivered again
            pause_s = await self._serve(request)
            if pause_s and self._window.width == 1:
                # There is no narrower request: none is sent.
                await asyncio.sleep(pause_s)

    async def _serve(self, request: _Request) -> float:
        """Send one request and let its machine judge the answer; returns for how long the API
        server wants it not to come again, 0.0 mostly.
        """
        active, command = request.active, request.command
        match command:
            case Prepare() | Undo():
                commands = await self._serve_claim(active, command)
            case Post() | Mark() | Delete() | Evict() | Read():
                sent_s = time.monotonic()
                answer = await self._ask(active, command)
                shed = isinstance(answer, Answer) and is_shed(answer)
                self._weigh(answer, sent_s, shed=shed)
                if isinstance(answer, Answer) and shed and request.sheds < _SHEDS_MAX:
                    return self._put_back(request, answer)
                commands = self._judge(active, command, answer)
            case _:
                assert_never(command)
        if commands:
            self._proceed(active, commands)
        return 0.0

    async def _ask(
        self, active: ActiveDecision, command: Post | Mark | Delete | Evict | Read
    ) -> Answer | Sight | None:
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
                return await self._pods.see(active.machine.targets[index])
            case _:
                assert_never(command)

    def _judge(
        self, active: ActiveDecision, command: Request, answer: Answer | Sight | None
    ) -> tuple[Command, ...]:
        if isinstance(command, Read):
            return active.machine.seen(command.index, answer, self._now_ms())
        assert isinstance(answer, Answer), "who writes is answered"
        return active.machine.answered(command.index, answer, self._now_ms())

    async def _serve_claim(
        self, active: ActiveDecision, command: Prepare | Undo
    ) -> tuple[Command, ...]:
        machine, index = active.machine, command.index
        assert isinstance(machine, Machine), "only bindings need claims"
        if isinstance(command, Prepare):
            preparation = machine.preparations[index]
            progress = await self._pods.prepare(preparation, again=command.again)
            return machine.prepared(index, progress, self._now_ms())
        settled = await self._pods.undo(machine.preparations[index])
        return machine.undone(index, self._now_ms(), settled=settled)

    def _weigh(self, answer: Answer | Sight | None, sent_s: float, *, shed: bool) -> None:
        """Close lanes when it was too much, open them while the API server keeps up."""
        if shed or (isinstance(answer, Answer) and answer.reason == TIMEOUT):
            self._window.overrun(sent_s, time.monotonic())
            return
        before = self._window.width
        self._window.answered()
        if self._window.width > before:
            self._wider.set()
            self._wider.clear()

    def _put_back(self, request: _Request, answer: Answer) -> float:
        """Have a request that was shed sent again, after as long as the API server says."""
        pause_s = answer.retry_after_ms / 1000 or _SHED_S
        again = request._replace(sheds=request.sheds + 1)
        self._shed += 1
        asyncio.get_running_loop().call_later(pause_s, self._line_up, again)
        return pause_s

    def _line_up(self, request: _Request) -> None:
        self._shed -= 1
        self._enqueue(request)
