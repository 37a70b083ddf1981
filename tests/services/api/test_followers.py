"""Reading VERDICTS: when its gangs can be served, also after the stream was created again."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace

import pytest

from services.api import followers
from services.api.followers import VerdictFollower
from services.api.state import ApiState
from shared.bus.errors import StreamReplaced
from shared.bus.pull import Delivery
from shared.contracts import codec, subjects
from shared.contracts.verdicts import Verdict
from tests.services.api.scene import verdict
from tests.support.waiting import eventually

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
