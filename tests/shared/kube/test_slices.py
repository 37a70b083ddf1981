"""Slices of a busy connection on real sockets: what the kernel holds back, and what not."""

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
from typing_extensions import override

from shared.kube.slices import BURST, NEWS_S, Slices
from tests.support.waiting import eventually

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux holds back in the kernel"
)


class Ear(asyncio.Protocol):
    """Notes what it hears, piece by piece, on a connection whose other end is `speaker`."""

    def __init__(self) -> None:
        self.pieces: list[int] = []
        self.lost = False
        self.transport: asyncio.BaseTransport
        self.speaker: socket.socket

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    @override
    def data_received(self, data: bytes) -> None:
        self.pieces.append(len(data))

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True

    def readable_from(self) -> int:
        """From how many bytes on the socket counts as readable."""
        mine: socket.socket = self.transport.get_extra_info("socket")
        return mine.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)


@asynccontextmanager
async def listening() -> AsyncGenerator[Ear]:
    loop = asyncio.get_running_loop()
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        _, ear = await loop.create_connection(Ear, *server.getsockname())
        ear.speaker, _ = server.accept()
        ear.speaker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        yield ear
    finally:
        ear.speaker.close()
        ear.transport.close()
        await eventually(lambda: ear.lost)


@asynccontextmanager
async def a_slice_without_end(slices: Slices) -> AsyncGenerator[Callable[[], bool]]:
    """Wait in a slice that outlasts the test; yields whether it still does."""
    for _ in range(10 * BURST):
        turn = asyncio.ensure_future(slices.turn(news=False))
        await asyncio.sleep(0)
        if not turn.done():
            turn.cancel()
            await asyncio.wait([turn])
    turn = asyncio.ensure_future(slices.turn(news=False))
    await asyncio.sleep(0)
    try:
        yield lambda: not turn.done()
    finally:
        turn.cancel()
        await asyncio.wait([turn])


async def test_after_a_quiet_while_a_burst_is_read_without_waiting() -> None:
    async with listening() as ear:
        slices = Slices(ear.transport)
        for _ in range(BURST):
            turn = slices.turn(news=True)
            with pytest.raises(StopIteration):
                turn.send(None)


async def test_changes_of_known_objects_have_time_and_those_among_new_ones_have_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Counted in turns that need not wait: so many of the one, a quarter of the other."""
    loop = asyncio.get_running_loop()
    now_s = loop.time()
    monkeypatch.setattr(loop, "time", lambda: now_s)

    async def turns(slices: Slices, *, news: bool) -> int:
        count = 0
        while True:
            turn = asyncio.ensure_future(slices.turn(news=news))
            await asyncio.sleep(0)
            if not turn.done():
                turn.cancel()
                return count
            count += 1

    assert await turns(Slices(None), news=False) == BURST // 4
    after_news = Slices(None)
    await after_news.turn(news=True)
    now_s += NEWS_S / 2
    assert await turns(after_news, news=False) == BURST
    long_after = Slices(None)
    await long_after.turn(news=True)
    now_s += NEWS_S * 2
    assert await turns(long_after, news=False) == BURST // 4


async def test_what_arrives_in_a_slice_is_read_in_one_piece_after_it() -> None:
    async with listening() as ear, listening() as control:
        async with a_slice_without_end(Slices(ear.transport)) as lasts:
            for _ in range(5):
                control.pieces.clear()
                ear.speaker.sendall(b"x" * 100)
                control.speaker.sendall(b"x" * 100)
                await eventually(lambda: control.pieces)
            assert lasts()
            assert ear.pieces == []
        await eventually(lambda: ear.pieces)
        assert ear.pieces == [500]
        assert ear.readable_from() == 1


async def test_a_flood_is_read_before_the_slice_is_over() -> None:
    async with listening() as ear, a_slice_without_end(Slices(ear.transport)) as lasts:
        flood = asyncio.to_thread(ear.speaker.sendall, b"x" * (3 << 20))
        sending = asyncio.ensure_future(flood)
        await eventually(lambda: sum(ear.pieces) > 1 << 20)
        assert lasts()
    # The rest was read as soon as the slice was over, or before it.
    await sending


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_the_end_of_a_connection_is_reported_within_a_slice(reset: bool) -> None:
    async with listening() as ear, a_slice_without_end(Slices(ear.transport)) as lasts:
        if reset:
            ear.speaker.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        else:
            ear.speaker.sendall(b"last words")
        ear.speaker.close()
        await eventually(lambda: ear.lost)
        assert lasts()
        assert ear.pieces == ([] if reset else [10])


async def test_a_connection_that_is_gone_needs_no_care() -> None:
    async with listening() as ear:
        ear.transport.close()
        await eventually(lambda: ear.lost)
        async with a_slice_without_end(Slices(ear.transport)) as lasts:
            assert lasts()
    async with a_slice_without_end(Slices(None)) as lasts:
        assert lasts()
