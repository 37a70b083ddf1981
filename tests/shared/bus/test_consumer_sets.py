"""Each replica holds another set of consumers; a set is free again when its holder has died."""

import asyncio

import pytest

from shared.bus.consumer_sets import ConsumerSet, ConsumerSetLost, lease_key
from shared.contracts import subjects
from tests.shared.bus.conftest import ConnectBus, LossyBus

SERVICE = "gang-planner"


def never() -> None:
    pytest.fail("a set was free")


@pytest.mark.usefixtures("bus")
async def test_replicas_that_claim_at_once_hold_different_sets(connect: ConnectBus) -> None:
    sets = [ConsumerSet(await connect(), SERVICE, f"pod-{n}", 4) for n in range(3)]
    numbers = await asyncio.gather(*(one.claim(never) for one in sets))
    if len(set(numbers)) < 3:
        # The machine stopped for longer than a lease lasts. Then the first holder finds out.
        with pytest.raises(ConsumerSetLost):
            async with asyncio.timeout(10):
                await asyncio.gather(*(one.watch() for one in sets))
    for one in sets:
        await one.release()


async def test_a_replica_waits_until_a_set_is_given_up(bus: LossyBus, connect: ConnectBus) -> None:
    first = ConsumerSet(bus, SERVICE, "pod-a", 1)
    assert await first.claim(never) == 0
    waits = asyncio.Event()
    second = ConsumerSet(await connect(), SERVICE, "pod-b", 1)
    claiming = asyncio.create_task(second.claim(waits.set))
    async with asyncio.timeout(10):
        await waits.wait()
        assert not claiming.done()
        await first.release()
        assert await claiming == 0
    await second.release()


@pytest.mark.usefixtures("bus")
async def test_the_set_of_a_dead_replica_is_free_a_moment_later(connect: ConnectBus) -> None:
    dying = await connect()
    first = ConsumerSet(dying, SERVICE, "pod-a", 1)
    await first.claim(never)
    await dying.close()
    second = ConsumerSet(await connect(), SERVICE, "pod-b", 1)
    async with asyncio.timeout(10):
        assert await second.claim(lambda: None) == 0
    await second.release()


async def test_a_replica_whose_set_was_taken_says_so(bus: LossyBus, connect: ConnectBus) -> None:
    held = ConsumerSet(bus, SERVICE, "pod-a", 1)
    await held.claim(never)
    watching = asyncio.create_task(held.watch())
    thief = await connect()
    stop = asyncio.Event()

    async def keep_taking() -> None:
        key = f"$KV.{subjects.LEASES}.{lease_key(SERVICE, 0)}"
        while not stop.is_set():
            await thief.request(key, b"pod-b some-writer", timeout_s=10.0)
            await asyncio.sleep(0.1)

    taking = asyncio.create_task(keep_taking())
    with pytest.raises(ConsumerSetLost):
        async with asyncio.timeout(10):
            await watching
    stop.set()
    await taking
    await held.release()
