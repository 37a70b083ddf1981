"""The observer's shell on a real nats-server, where junk is stored, too."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.observer.config import ObserverSettings
from services.observer.service import Observer
from shared.bus.connection import Bus
from shared.bus.setup import ensure_streams
from shared.contracts import codec, subjects
from shared.contracts.foreign_messages import is_foreign
from shared.contracts.outcomes import Outcome
from tests.services.gang_planner.running import Hall, a_hall
from tests.support.background import in_background
from tests.support.junk import store_answer
from tests.support.standing import Stand
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer

pytestmark = pytest.mark.integration


@asynccontextmanager
async def an_observer(hall: Hall) -> AsyncIterator[Stand[ObserverSettings]]:
    await ensure_streams(hall.bus, observed=True)
    bus = await Bus.connect(hall.url, name="observer")
    stand = Stand("observer", "observer-0", ObserverSettings(stand_s=0.5), bus)
    try:
        async with in_background(Observer(stand).run(), name="observer") as task:
            await eventually(lambda: stand.ready.ready or task.done())
            yield stand
    finally:
        await bus.close()


async def outcomes(hall: Hall, gang: str, seq: int) -> list[Outcome]:
    """The outcomes that binders, or the observer for them, have stored of a decision."""
    subject, found, at = subjects.outcome(f"uid-{gang}", seq), [], 1
    while (one := await hall.bus.get_next(subjects.OUTCOMES, subject, at)) is not None:
        at = one.seq + 1
        if not is_foreign(subjects.OUTCOMES, one.payload):
            record = codec.decode_outcome(one.payload)
            assert isinstance(record, Outcome)
            found.append(record)
    return found


async def test_an_observer_steps_over_junk_and_answers_each_decision_once(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    async with a_hall(nats_server.url, tmp_path) as hall:
        await hall.start(0)
        await hall.wait_active()
        await hall.watcher.submit("first", 3)
        await hall.wait_decided("first")
        seq = (await hall.bus.stream_info(subjects.DECISIONS)).last_seq
        for stream, subject in (
            (subjects.CLUSTER, subjects.cluster("pod")),
            (subjects.DECISIONS, subjects.act("uid-first")),
            (subjects.OUTCOMES, subjects.outcome("uid-first", seq)),
        ):
            await store_answer(hall.bus, stream, subject)

        async def answered() -> bool:
            return len(await outcomes(hall, "first", seq)) == 1

        async with an_observer(hall) as first:
            await eventually(answered, because="it stood for long enough")
            await hall.watcher.submit("second", 3)
            figures = first.metrics.figures()
        assert figures['strays_total{stream="DECISIONS"}'] == 1
        assert figures['strays_total{stream="OUTCOMES"}'] == 1
        # One that begins again answers what it finds again, and finds that it has its answer.
        await store_answer(hall.bus, subjects.OUTCOMES, subjects.outcome("uid-first", seq))
        async with an_observer(hall) as second:
            await eventually(lambda: second.metrics.figures()["decisions_standing"] > 0)
            await eventually(
                lambda: second.metrics.figures()['strays_total{stream="OUTCOMES"}'] == 2
            )
        assert len(await outcomes(hall, "first", seq)) == 1
