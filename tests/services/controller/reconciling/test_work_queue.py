"""Keys are worked at once each, one call at a time, and come back after failures."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from services.controller.reconciling.work_queue import Work, WorkQueue
from shared.kube.errors import ApiError, ConnectionLost
from tests.support.waiting import eventually


class Timers:
    """The timers of keys that the event loop was asked for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._call_at = loop.call_at
        self._handles: dict[str, asyncio.TimerHandle] = {}

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, **named: Any
    ) -> asyncio.TimerHandle:
        handle = self._call_at(when, callback, *args, **named)
        if len(args) == 1 and isinstance(args[0], str):
            self._handles[args[0]] = handle
        return handle

    def pending(self) -> dict[str, float]:
        """When each key's newest timer is due, on the loop's clock."""
        return {
            key: handle.when() for key, handle in self._handles.items() if not handle.cancelled()
        }


@pytest.fixture
async def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    loop = asyncio.get_running_loop()
    timers = Timers(loop)
    monkeypatch.setattr(loop, "call_at", timers.call_at)
    return timers


@asynccontextmanager
async def working(work: Work, workers: int = 2) -> AsyncIterator[WorkQueue]:
    queue = WorkQueue("test", work, workers=workers)
    task = asyncio.create_task(queue.run(), name="queue")
    try:
        yield queue
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_a_key_added_many_times_while_it_waits_is_worked_at_once() -> None:
    calls: list[str] = []

    async def work(key: str) -> float | None:
        calls.append(key)
        return None

    async with working(work) as queue:
        for _ in range(5):
            queue.add("a")
            queue.add("b")
        await eventually(lambda: len(queue) == 0)
    assert calls == ["a", "b"]


async def test_a_key_added_while_it_is_worked_at_is_worked_at_once_more_afterwards() -> None:
    at_work = 0
    calls = 0
    gate = asyncio.Event()

    async def work(_key: str) -> float | None:
        nonlocal at_work, calls
        at_work += 1
        assert at_work == 1
        calls += 1
        await gate.wait()
        at_work -= 1
        return None

    async with working(work) as queue:
        queue.add("a")
        await eventually(lambda: calls == 1)
        queue.add("a")
        queue.add("a")
        gate.set()
        await eventually(lambda: len(queue) == 0)
    assert calls == 2


async def test_what_fails_comes_back_and_what_asks_for_it_too() -> None:
    calls: list[str] = []

    async def work(key: str) -> float | None:
        calls.append(key)
        if key == "fails" and calls.count(key) < 3:
            raise ConnectionLost("for the test")
        return 0.0 if key == "asks" and calls.count(key) < 3 else None

    async with working(work) as queue:
        queue.add("fails")
        queue.add("asks")
        await eventually(lambda: calls.count("fails") == 3 and calls.count("asks") == 3)


async def test_the_pause_that_the_api_server_asks_for_is_kept(timers: Timers) -> None:
    failed = asyncio.Event()

    async def work(_key: str) -> float | None:
        failed.set()
        raise ApiError(429, "TooManyRequests", "later", retry_after_s=20.0)

    loop = asyncio.get_running_loop()
    async with working(work) as queue:
        queue.add("a")
        await failed.wait()
        await eventually(timers.pending)
        assert timers.pending()["a"] - loop.time() > 15.0


async def test_the_earliest_requested_time_counts(timers: Timers) -> None:
    async def work(_key: str) -> float | None:
        return None

    async with working(work) as queue:
        queue.after("a", 100.0)
        queue.after("a", 50.0)
        queue.after("a", 70.0)
        due_s = timers.pending()["a"]
        assert due_s - asyncio.get_running_loop().time() <= 50.0
        queue.forget("a")
        assert not timers.pending()


async def test_a_bug_with_one_key_is_reported_and_delays_no_other_key(
    caplog: pytest.LogCaptureFixture, timers: Timers
) -> None:
    done = asyncio.Event()

    async def work(key: str) -> float | None:
        if key == "odd":
            raise ValueError("an unexpected error")
        done.set()
        return None

    async with working(work, workers=1) as queue:
        queue.add("odd")
        queue.add("plain")
        async with asyncio.timeout(5):
            await done.wait()
        assert list(timers.pending()) == ["odd"]
    (reported,) = caplog.records
    assert reported.exc_info is not None
    assert "odd: unexpected error, a bug" in reported.getMessage()
