"""The request dispatcher against an API server that sheds load: its retries, and the answers that
state machines get.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest
from typing_extensions import override

from services.binder.active_decision import ActiveDecision, DeliveryLease, activate
from services.binder.core.answers import Answer
from services.binder.core.commands import Command, Finish, Limits, Post
from services.binder.core.outcome import Sender
from services.binder.request_dispatcher import RequestDispatcher
from shared.contracts.decisions import Binding
from tests.services.binder.core.samples import make_decision
from tests.services.binder.harness import MemoryPods
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from shared.bus.pull import Delivery
    from shared.contracts.outcomes import Outcome

RETRY_MS = 20
SHED = Answer(429, "", "Too many requests, please try again later.", RETRY_MS)


class BusyPods(MemoryPods):
    """Has so many seats, each taken for a hundredth of a second, and sheds the rest."""

    def __init__(self, seats: int) -> None:
        super().__init__()
        self.seats = seats
        self.taken = 0
        self.taken_max = 0
        self.sheds = 0

    @override
    async def bind(self, binding: Binding, marks: Mapping[str, str], *, dry_run: bool) -> Answer:
        if self.taken >= self.seats:
            self.sheds += 1
            return SHED
        self.taken += 1
        self.taken_max = max(self.taken_max, self.taken)
        try:
            await asyncio.sleep(0.01)
            return await super().bind(binding, marks, dry_run=dry_run)
        finally:
            self.taken -= 1


class Stage:
    """A dispatcher, and the outcomes of its decisions."""

    def __init__(self, pods: MemoryPods, lanes: int) -> None:
        self.dispatcher = RequestDispatcher(
            cast("Any", pods), self.proceed, lambda: 0, requests_max=lanes, on_short=lambda: None
        )
        self.outcomes: list[Outcome] = []
        #: Requests that machines repeated.
        self.heard: list[Post] = []

    def proceed(self, active: ActiveDecision, commands: tuple[Command, ...]) -> None:
        for command in commands:
            if isinstance(command, Finish):
                self.outcomes.append(command.outcome)
                continue
            assert isinstance(command, Post)
            if command.delay_ms:
                self.heard.append(command)
                continue
            self.dispatcher.send(active, command)

    def decide(self, seq: int, members: int) -> None:
        delivery = cast("Delivery", _Delivery(seq))
        lease = DeliveryLease(delivery, time.monotonic() + 3600, connection=1)
        sender = Sender(binder="binder-0", decision_seq=seq, delivered=1)
        active = activate(make_decision(members), lease, sender, Limits(), "i")
        self.proceed(active, active.machine.start(0))


class _Delivery:
    def __init__(self, seq: int) -> None:
        self.seq = seq


@asynccontextmanager
async def a_stage(pods: MemoryPods, lanes: int) -> AsyncIterator[Stage]:
    stage = Stage(pods, lanes)
    running = asyncio.create_task(stage.dispatcher.run(), name="lanes")
    try:
        yield stage
    finally:
        running.cancel()
        await asyncio.wait([running])


async def test_a_busy_api_server_binds_all_and_no_machine_gets_its_429() -> None:
    pods = BusyPods(seats=2)
    async with a_stage(pods, 32) as stage:
        stage.decide(5, 120)
        await eventually(lambda: stage.outcomes, timeout_s=10)
    (outcome,) = stage.outcomes
    assert (outcome.bound, outcome.members, outcome.reason) == (120, (), "")
    assert pods.taken_max == 2, "its seats were used"
    assert pods.sheds < 120, "fewer retries than bindings"


async def test_the_queue_is_not_short_while_requests_that_were_shed_wait() -> None:
    pods = BusyPods(seats=0)
    async with a_stage(pods, 8) as stage:
        stage.decide(5, 8)
        await eventually(lambda: stage.dispatcher.width == 1)
        assert not stage.dispatcher.short, "shed requests wait, so no other decision may start"


async def test_a_pod_that_is_shed_for_ever_is_reported_to_its_machine_in_the_end() -> None:
    pods = MemoryPods()
    for_ever = Answer(429, "TooManyRequests", "a proxy", 1)
    pods.answers = {"w-0": for_ever}
    async with a_stage(pods, 4) as stage:
        stage.decide(5, 1)
        await eventually(lambda: stage.heard, timeout_s=10)
    assert len(pods.posts) == 61


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            Answer(429, "TooManyRequests", 'admission webhook "q" denied the request: quota'),
            id="a webhook of one pod",
        ),
        pytest.param(
            Answer(429, "TooManyRequests", "it would violate the pod's disruption budget"),
            id="a budget",
        ),
    ],
)
async def test_a_429_about_one_pod_does_not_shrink_the_window(answer: Answer) -> None:
    pods = MemoryPods()
    pods.answers = {"w-0": answer}
    async with a_stage(pods, 8) as stage:
        stage.decide(5, 3)
        await eventually(lambda: len(pods.bound) == 2)
        assert stage.dispatcher.width == 8
