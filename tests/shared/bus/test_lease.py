"""The lease on a real server: one holder, a quick release, a takeover from a holder that is gone,
hangs, or cannot do its work.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, Self

import pytest

from shared.bus.lease import OVERDUE_S, PATIENCE_S, Lease
from shared.contracts import subjects
from tests.shared.bus.conftest import ConnectBus, LossyBus
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer

_SUBJECT: Final = subjects.lease("planner")
#: What a server's answer looks like to a reader of the lease.
_ANSWER: Final = b'{"type":"an answer"}'


class Holder:
    """A lease with the changes that it reported."""

    def __init__(self, bus: LossyBus, name: str) -> None:
        self.changes: list[bool] = []
        self.able = self.awake = True
        self.lease = Lease(bus, "planner", name, able=lambda: self.able, alive=lambda: self.awake)
        self.task = asyncio.create_task(self.lease.run(self.changes.append))

    def die(self) -> None:
        """Stop without a word, as a killed process does."""
        self.task.cancel()


class Pauses:
    """How long the server, or this process, stood still while the context was open: the longest
    time from one stored message to the next. A busy machine makes a lease change hands late.
    """

    def __init__(self, bus: LossyBus) -> None:
        self._bus = bus
        self.longest_s = 0.0

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._measure())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _measure(self) -> None:
        while True:
            began = time.monotonic()
            await self._bus.append(subjects.lease("pulse"), b"", timeout_s=30.0, headers={})
            await asyncio.sleep(0.02)
            self.longest_s = max(self.longest_s, time.monotonic() - began)


async def in_time(bus: LossyBus, play: Callable[[], Awaitable[bool]]) -> None:
    """Play until it went well or nothing stood still: then it fails for a reason of its own."""
    for _ in range(5):
        async with Pauses(bus) as pauses:
            went_well = await play()
        if went_well:
            return
        assert pauses.longest_s > 0.2, "nothing stood still"
    pytest.fail("the machine paused in each of five rounds")


async def test_a_free_lease_is_taken_and_kept(bus: LossyBus) -> None:
    holder = Holder(bus, "a")
    await holder.lease.wait_held()
    await asyncio.sleep(1.6)  # longer than the time to live
    assert holder.changes == [True]
    await holder.lease.release()
    assert holder.changes == [True, False]


async def test_of_two_one_holds_it(bus: LossyBus, connect: ConnectBus) -> None:
    holders = [Holder(bus, "a"), Holder(await connect("other"), "b")]
    await eventually(lambda: any(one.lease.held for one in holders))
    await asyncio.sleep(1.3)
    assert sorted(one.lease.held for one in holders) == [False, True]
    for one in holders:
        await one.lease.release()


async def test_a_release_hands_over_at_once(bus: LossyBus, connect: ConnectBus) -> None:
    other = await connect("other")

    async def play() -> bool:
        first = Holder(bus, "a")
        await first.lease.wait_held()
        second = Holder(other, "b")
        await asyncio.sleep(0.3)  # let it settle into standing by
        released_at = time.monotonic()
        await first.lease.release()
        await second.lease.wait_held()
        took_s = time.monotonic() - released_at
        await second.lease.release()
        return took_s < OVERDUE_S  # a lease of a dead holder is free later

    await in_time(bus, play)


async def test_a_death_hands_over_when_a_renewal_is_overdue(
    bus: LossyBus, connect: ConnectBus
) -> None:
    first = Holder(bus, "a")
    await first.lease.wait_held()
    second = Holder(await connect("other"), "b")
    await asyncio.sleep(0.3)
    first.die()
    died_at = time.monotonic()
    await second.lease.wait_held()
    # Its last renewal came half a second before its death at most.
    assert time.monotonic() - died_at > 0.1
    assert second.changes == [True]
    await second.lease.release()


async def test_a_holder_that_slept_through_its_expiry_learns_that_it_lost(
    bus: LossyBus, connect: ConnectBus
) -> None:
    first = Holder(bus, "a")
    await first.lease.wait_held()
    first.awake = False  # it exists, and renews nothing
    second = Holder(await connect("other"), "b")
    await eventually(lambda: second.lease.held)
    await eventually(lambda: first.changes == [True, False])
    assert second.lease.held
    for one in (first, second):
        await one.lease.release()


async def test_a_lost_answer_to_a_renewal_is_not_a_lost_lease(bus: LossyBus) -> None:
    holder = Holder(bus, "a")
    await holder.lease.wait_held()
    bus.lose_next(1)
    await asyncio.sleep(1.5)
    assert holder.lease.held
    await holder.lease.release()


@pytest.mark.slow
async def test_it_is_taken_again_after_a_crash_of_the_server(
    bus: LossyBus, nats_server: NatsServer
) -> None:
    holder = Holder(bus, "a")
    await holder.lease.wait_held()
    await nats_server.kill()
    await nats_server.start()
    await asyncio.sleep(0.5)
    await eventually(lambda: holder.lease.held)
    await asyncio.sleep(1.5)
    assert holder.lease.held
    await holder.lease.release()


async def test_junk_in_its_place_holds_no_lease_and_takes_none_away(
    bus: LossyBus, connect: ConnectBus
) -> None:
    holder = Holder(bus, "a")
    await holder.lease.wait_held()
    second = Holder(await connect("other"), "b")
    for junk in (_ANSWER, b"") * 6:
        stored = (await bus.append(_SUBJECT, junk, timeout_s=10.0, headers={})).seq

        async def replaced(stored: int = stored) -> bool:
            found = await bus.get_last("KV_LEASES", _SUBJECT)
            return found is not None and found.seq > stored and found.payload.startswith(b"a ")

        await eventually(replaced, because="the holder renews over the junk")
    assert (holder.changes, second.changes) == ([True], [])
    holder.die()
    await asyncio.wait([holder.task])
    await bus.append(_SUBJECT, _ANSWER, timeout_s=10.0, headers={})
    # After PATIENCE_S without a renewal; later where the standby itself gets no CPU for a while.
    await eventually(lambda: second.lease.held, timeout_s=30.0)
    assert second.changes == [True]
    await second.lease.release()


async def test_a_holder_whose_process_exists_is_left_its_lease_while_a_renewal_is_late(
    bus: LossyBus, connect: ConnectBus
) -> None:
    other = await connect("other")

    async def play() -> bool:
        first = Holder(bus, "a")
        await first.lease.wait_held()
        second = Holder(other, "b")
        await asyncio.sleep(0.3)
        first.awake = False
        await asyncio.sleep(OVERDUE_S + 0.5)
        first.awake = True
        await asyncio.sleep(PATIENCE_S)
        was_left = (first.changes, second.changes) == ([True], [])
        first.awake = False
        slept_at = time.monotonic()
        await second.lease.wait_held()
        waited_s = time.monotonic() - slept_at
        for holder in (first, second):
            await holder.lease.release()
        return was_left and waited_s > PATIENCE_S - 0.5

    await in_time(bus, play)


async def test_a_holder_that_cannot_do_its_work_loses_the_lease_to_one_that_can(
    bus: LossyBus, connect: ConnectBus
) -> None:
    first = Holder(bus, "a")
    await first.lease.wait_held()
    second = Holder(await connect("other"), "b")
    first.able = second.able = False
    await asyncio.sleep(1.0)
    assert first.lease.held, "no other process could do better"
    second.able = True
    await second.lease.wait_held()
    await eventually(lambda: first.changes == [True, False])
    for one in (first, second):
        await one.lease.release()


async def test_a_key_left_by_a_process_that_is_gone_does_not_delay_the_next_one(
    bus: LossyBus, connect: ConnectBus
) -> None:
    first = Holder(bus, "a")
    await first.lease.wait_held()
    first.die()
    await asyncio.wait([first.task])
    second = Holder(await connect("other"), "b")
    async with asyncio.timeout(PATIENCE_S):
        await second.lease.wait_held()
    await second.lease.release()
