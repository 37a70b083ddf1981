"""The planner's advice on a real nats-server: answered, late, away, never too many questions."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from services.admission_webhook.adviser import REQUESTS_MAX, Adviser
from shared.bus.connection import Bus
from shared.bus.questions import serve
from shared.contracts import codec, subjects
from shared.contracts.questions import FitAnswer, FitRequest
from shared.model.objects import PodGroup
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer

pytestmark = pytest.mark.integration

QUESTION = FitRequest(
    group=PodGroup(uid="u", dialect="volcano", namespace="n", name="g", resource_version=0)
)
ANSWER = FitAnswer(fits=False, ever=False, sentence="never")


class Planner:
    """Answers when it is let."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.free.set()

    async def answer(self, question: FitRequest) -> FitAnswer:
        assert question == QUESTION
        await self.free.wait()
        return ANSWER


class Asking:
    """An adviser and how its questions ended."""

    def __init__(self, bus: Bus, timeout_s: float) -> None:
        self.endings: Counter[str] = Counter()
        self.adviser = Adviser(bus, timeout_s=timeout_s, on_end=self._ended)

    def _ended(self, ending: str) -> None:
        self.endings[ending] += 1


@asynccontextmanager
async def a_bus(url: str) -> AsyncIterator[Bus]:
    bus = await Bus.connect(url, name="test")
    try:
        yield bus
    finally:
        await bus.close()


async def test_an_answer_in_time_is_taken(nats_server: NatsServer) -> None:
    async with a_bus(nats_server.url) as bus, a_bus(nats_server.url) as other:
        await serve(other, subjects.ASK_FIT, codec.decode_fit_request, Planner().answer)
        asking = Asking(bus, 5)
        assert await asking.adviser.fit(QUESTION) == ANSWER
        assert asking.endings == {"answered": 1}


async def test_a_planner_that_thinks_too_long_is_not_waited_for(nats_server: NatsServer) -> None:
    async with a_bus(nats_server.url) as bus, a_bus(nats_server.url) as other:
        planner = Planner()
        planner.free.clear()
        await serve(other, subjects.ASK_FIT, codec.decode_fit_request, planner.answer)
        asking = Asking(bus, 0.05)
        assert await asking.adviser.fit(QUESTION) is None
        assert asking.endings == {"unanswered": 1}
        planner.free.set()


async def test_a_dry_run_has_the_patience_to_wait(nats_server: NatsServer) -> None:
    async with a_bus(nats_server.url) as bus, a_bus(nats_server.url) as other:
        planner = Planner()
        planner.free.clear()
        await serve(other, subjects.ASK_FIT, codec.decode_fit_request, planner.answer)
        asking = Asking(bus, 0.05)
        async with asyncio.TaskGroup() as tasks:
            tried = tasks.create_task(asking.adviser.fit(QUESTION, dry_run=True))
            assert await asking.adviser.fit(QUESTION) is None, "the usual time is over"
            planner.free.set()
        assert tried.result() == ANSWER


async def test_without_a_planner_the_answer_is_none_at_once(nats_server: NatsServer) -> None:
    async with a_bus(nats_server.url) as bus:
        asking = Asking(bus, 30)
        async with asyncio.timeout(15):
            assert await asking.adviser.fit(QUESTION) is None


async def test_without_nats_nothing_is_asked(nats_server: NatsServer) -> None:
    async with a_bus(nats_server.url) as bus:
        asking = Asking(bus, 30)
        await nats_server.stop()
        await eventually(lambda: not bus.connected)
        async with asyncio.timeout(15):
            assert await asking.adviser.fit(QUESTION) is None
        assert asking.endings == {"skipped": 1}


async def test_only_so_many_questions_are_under_way(nats_server: NatsServer) -> None:
    async with a_bus(nats_server.url) as bus, a_bus(nats_server.url) as other:
        planner = Planner()
        planner.free.clear()
        await serve(other, subjects.ASK_FIT, codec.decode_fit_request, planner.answer)
        asking = Asking(bus, 5)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(REQUESTS_MAX + 3):
                tasks.create_task(asking.adviser.fit(QUESTION))
            await eventually(lambda: asking.endings["skipped"] == 3)
            planner.free.set()
        assert asking.endings == {"skipped": 3, "answered": REQUESTS_MAX}


async def test_a_timeout_of_nothing_asks_nothing(nats_server: NatsServer) -> None:
    async with a_bus(nats_server.url) as bus:
        asking = Asking(bus, 0)
        assert await asking.adviser.fit(QUESTION) is None
        assert not asking.endings
