"""Reading VERDICTS: when its gangs can be served, also after the stream was created again; and
outcomes after their decisions.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from types import SimpleNamespace

import msgspec
import pytest

from services.api import followers
from services.api.core.decision_history import EARLY_MAX
from services.api.followers import HistoryFollower, VerdictFollower
from services.api.state import ApiState
from shared.bus.connection import Bus
from shared.bus.errors import StreamReplaced
from shared.bus.pull import Delivery
from shared.bus.setup import ensure_streams
from shared.contracts import codec, subjects
from shared.contracts.decisions import GangDecision
from shared.contracts.outcomes import Outcome
from shared.contracts.verdicts import Verdict
from tests.services.api.core.test_decision_history import bound, outcome
from tests.services.api.scene import verdict
from tests.support.background import in_background
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer

Take = Callable[[list[Delivery]], Awaitable[None]]


class Stream:
    """In place of NATS and its reader: one stream after the other, as the test delivers it."""

    def __init__(self, last_seq: int) -> None:
        self.last_seq = last_seq
        self.take: Take | None = None
        self._replaced: asyncio.Future[None] | None = None

    async def get_last(self, *_: object) -> object:
        return SimpleNamespace(seq=self.last_seq) if self.last_seq else None

    async def wait(self, *_: object) -> object:
        return SimpleNamespace(first_seq=1)

    async def run(self, _first: int, take: Take) -> None:
        self.take, self._replaced = take, asyncio.get_running_loop().create_future()
        await self._replaced

    def replace(self, last_seq: int) -> None:
        assert self._replaced is not None
        self.last_seq, self.take = last_seq, None
        self._replaced.set_exception(StreamReplaced(subjects.VERDICTS))

    async def deliver(self, seq: int, one: Verdict) -> None:
        await eventually(lambda: self.take is not None)
        assert self.take is not None
        await self.take([SimpleNamespace(seq=seq, payload=codec.encode(one), subject="")])  # type: ignore[list-item]


async def test_gangs_are_served_once_all_that_a_stream_had_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = Stream(last_seq=2)
    monkeypatch.setattr(followers, "LogReader", lambda *_, **__: stream)
    monkeypatch.setattr(followers, "wait_for_stream", stream.wait)
    state, replaced = ApiState(), asyncio.Event()
    follower = VerdictFollower(
        stream,  # type: ignore[arg-type]  # it is asked for the last message only
        0,
        state,
        lambda _places: None,
        replaced.set,
        lambda *_: None,
    )
    running = asyncio.create_task(follower.run())
    try:
        await stream.deliver(1, verdict("a", "x"))
        assert not follower.complete.is_set()
        await stream.deliver(2, verdict("a", "y"))
        assert follower.complete.is_set()
        stream.replace(last_seq=1)
        await replaced.wait()
        assert not follower.complete.is_set(), "a list would lack gangs"
        assert len(state.gangs) == 0
        await stream.deliver(1, verdict("a", "y"))
        assert follower.complete.is_set()
        assert list(state.gangs.places("", None)) == [("a", "y")]
    finally:
        running.cancel()


@pytest.mark.integration
async def test_a_service_that_starts_knows_what_came_of_each_former_decision(
    nats_server: NatsServer,
) -> None:
    """Each stream is read by itself: outcomes would otherwise come before their decisions."""
    count = 3 * EARLY_MAX
    bus = await Bus.connect(nats_server.url, name="api")
    try:
        await ensure_streams(bus)

        async def append(subject: str, record: GangDecision | Outcome) -> int:
            payload = codec.encode(record)
            return (await bus.append(subject, payload, timeout_s=5.0, headers={})).seq

        for number in range(count):
            gang_id = f"g{number}"
            act = msgspec.structs.replace(bound(f"u{number}"), gang_id=gang_id)
            seq = await append(subjects.act(gang_id), act)
            await append(subjects.outcome(gang_id, seq), outcome(seq, gang_id=gang_id))
        state = ApiState()

        follow = partial(HistoryFollower, bus, 0, state, lambda *_: None)
        decisions = follow(subjects.DECISIONS, subjects.DECISIONS)
        outcomes = follow(subjects.OUTCOMES, subjects.OUTCOMES, after=decisions)
        async with (
            in_background(outcomes.run(), name="outcomes"),
            in_background(decisions.run(), name="decisions"),
        ):
            await eventually(outcomes.complete.is_set)
        events = [len(one.status.events) for one in state.decisions.oldest_first()]
        assert events == [1] * count
    finally:
        await bus.close()
