"""The lease on a real server: one holder, a quick release, a takeover after a death."""

import asyncio
import time

import pytest

from shared.bus.lease import Lease
from tests.shared.bus.conftest import ConnectBus, LossyBus
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer


class Holder:
    """A lease with what it was told."""

    def __init__(self, bus: LossyBus, name: str) -> None:
        self.changes: list[bool] = []
        self.lease = Lease(bus, "planner", name)
        self.task = asyncio.create_task(self.lease.run(self.changes.append))

    def die(self) -> None:
        """Stop without a word, as a killed process does."""
        self.task.cancel()


async def test_a_free_lease_is_taken_at_once_and_kept(bus: LossyBus) -> None:
    holder = Holder(bus, "a")
    async with asyncio.timeout(0.5):
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
    first = Holder(bus, "a")
    await first.lease.wait_held()
    second = Holder(await connect("other"), "b")
    await asyncio.sleep(0.3)  # let it settle into standing by
    released_at = time.monotonic()
    await first.lease.release()
    await second.lease.wait_held()
    assert time.monotonic() - released_at < 0.2
    await second.lease.release()


async def test_a_death_hands_over_after_the_time_to_live(
    bus: LossyBus, connect: ConnectBus
) -> None:
    first = Holder(bus, "a")
    await first.lease.wait_held()
    second = Holder(await connect("other"), "b")
    await asyncio.sleep(0.3)
    first.die()
    died_at = time.monotonic()
    await second.lease.wait_held()
    assert 0.5 < time.monotonic() - died_at < 2.0
    assert second.changes == [True]
    await second.lease.release()


async def test_a_holder_that_slept_through_its_expiry_learns_that_it_lost(
    bus: LossyBus, connect: ConnectBus
) -> None:
    first = Holder(bus, "a")
    await first.lease.wait_held()
    first.lease._pause_s = 3.0  # its next renewal comes far too late
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
    for _ in range(6):
        await bus.publish("$KV.LEASES.planner", b'{"type":"an answer"}')
        await asyncio.sleep(0.2)
        await bus.publish("$KV.LEASES.planner", b"")
        await asyncio.sleep(0.1)
    assert (holder.changes, second.changes) == ([True], [])
    holder.die()
    await bus.publish("$KV.LEASES.planner", b'{"type":"an answer"}')
    async with asyncio.timeout(3.0):
        await second.lease.wait_held()
    await second.lease.release()
