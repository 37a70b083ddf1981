"""Pulling work on a real server: nothing is lost, everything is acknowledged once, back-pressure
holds.
"""

import asyncio
import json

import pytest

from shared.bus import pull
from shared.bus.pull import Delivery, PullLoop
from shared.bus.setup import ensure_streams
from shared.contracts.subjects import BINDER_CONSUMER, DECISIONS, act
from tests.shared.bus.conftest import ConnectBus, LossyBus
from tests.support.reachable import reachable
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer


async def publish(bus: LossyBus, count: int, *, first: int = 0) -> None:
    for n in range(first, first + count):
        await bus.request(act("g"), b"%d" % n, timeout_s=10.0)


class Taker:
    """A handler that acknowledges and remembers."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []

    async def __call__(self, batch: list[Delivery]) -> None:
        for delivery in batch:
            self.taken.append(delivery.payload)
            await delivery.ack()


async def test_work_arrives_in_order_and_once(bus: LossyBus) -> None:
    await publish(bus, 50)
    taker = Taker()
    loop = PullLoop(bus, DECISIONS, BINDER_CONSUMER, batch=8)
    running = asyncio.create_task(loop.run(taker))
    await eventually(lambda: len(taker.taken) == 50)
    loop.stop()
    await running
    assert taker.taken == [b"%d" % n for n in range(50)]


async def test_a_delivery_says_where_it_stands(bus: LossyBus) -> None:
    await publish(bus, 3)
    seen: list[Delivery] = []

    async def look(batch: list[Delivery]) -> None:
        seen.extend(batch)

    loop = PullLoop(bus, DECISIONS, BINDER_CONSUMER)
    running = asyncio.create_task(loop.run(look))
    await eventually(lambda: len(seen) == 3)
    loop.stop()
    await running
    first = seen[0]
    assert (first.subject, first.seq, first.number, first.delivered) == (act("g"), 2, 1, 1)
    assert first.stored_ms > 1_700_000_000_000
    assert [one.pending for one in seen] == [2, 1, 0]


async def test_new_work_arrives_without_waiting_for_a_full_batch(bus: LossyBus) -> None:
    taker = Taker()
    running = asyncio.create_task(PullLoop(bus, DECISIONS, BINDER_CONSUMER).run(taker))
    for n in range(3):
        await publish(bus, 1, first=n)
        await eventually(lambda: len(taker.taken) == n + 1)  # noqa: B023 - awaited in this turn
    running.cancel()


async def test_what_is_refused_for_now_comes_again(bus: LossyBus) -> None:
    await publish(bus, 1)
    deliveries: list[int] = []

    async def refuse_twice(batch: list[Delivery]) -> None:
        for delivery in batch:
            deliveries.append(delivery.delivered)
            if delivery.delivered < 3:
                await delivery.nak(0.01)
            else:
                await delivery.ack()

    running = asyncio.create_task(PullLoop(bus, DECISIONS, BINDER_CONSUMER).run(refuse_twice))
    await eventually(lambda: deliveries == [1, 2, 3])
    running.cancel()


async def test_what_is_given_up_never_comes_again(bus: LossyBus) -> None:
    await publish(bus, 2)
    seen: list[bytes] = []

    async def give_up(batch: list[Delivery]) -> None:
        for delivery in batch:
            seen.append(delivery.payload)
            await delivery.term("of no use")

    running = asyncio.create_task(PullLoop(bus, DECISIONS, BINDER_CONSUMER).run(give_up))
    await eventually(lambda: len(seen) == 2)
    running.cancel()
    answer = await bus.request(
        f"$JS.API.CONSUMER.INFO.DECISIONS.{BINDER_CONSUMER}", b"", timeout_s=10.0
    )
    assert b'"num_ack_pending":0' in answer.payload


async def test_a_slow_handler_is_not_sent_more_than_it_asked_for(bus: LossyBus) -> None:
    await publish(bus, 40)
    gate = asyncio.Event()
    sizes: list[int] = []

    async def slow(batch: list[Delivery]) -> None:
        sizes.append(len(batch))
        await gate.wait()
        for delivery in batch:
            await delivery.ack()

    loop = PullLoop(bus, DECISIONS, BINDER_CONSUMER, batch=4)
    running = asyncio.create_task(loop.run(slow))
    await eventually(lambda: sizes)
    assert len(list(reachable(loop, Delivery))) + sizes[0] <= 4
    gate.set()
    await eventually(lambda: sum(sizes) == 40)
    assert max(sizes) <= 4
    running.cancel()


async def test_two_loops_share_the_work(bus: LossyBus, connect: ConnectBus) -> None:
    takers = [Taker(), Taker()]
    buses = [bus, await connect("other")]
    loops = [
        asyncio.create_task(PullLoop(one, DECISIONS, BINDER_CONSUMER, batch=2).run(taker))
        for one, taker in zip(buses, takers, strict=True)
    ]
    await publish(bus, 60)
    await eventually(lambda: sum(len(taker.taken) for taker in takers) == 60)
    assert all(taker.taken for taker in takers)
    assert len({*takers[0].taken, *takers[1].taken}) == 60
    for loop in loops:
        loop.cancel()


async def test_an_exception_of_the_handler_ends_the_loop(bus: LossyBus) -> None:
    await publish(bus, 1)

    async def broken(_: list[Delivery]) -> None:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        await PullLoop(bus, DECISIONS, BINDER_CONSUMER).run(broken)


async def test_work_goes_on_after_a_crash_of_the_server(
    bus: LossyBus, nats_server: NatsServer
) -> None:
    taker = Taker()
    running = asyncio.create_task(PullLoop(bus, DECISIONS, BINDER_CONSUMER).run(taker))
    await publish(bus, 10)
    await eventually(lambda: len(taker.taken) == 10)
    await nats_server.kill()
    await nats_server.start()
    await publish(bus, 10, first=10)
    await eventually(lambda: len(set(taker.taken)) == 20)
    running.cancel()


async def test_a_missing_consumer_is_reported_and_waited_for(
    bus: LossyBus, connect: ConnectBus
) -> None:
    await bus.request(f"$JS.API.CONSUMER.DELETE.{DECISIONS}.{BINDER_CONSUMER}", b"", timeout_s=10.0)
    reported: list[tuple[str, str]] = []
    other = await connect("other", on_health=lambda topic, why: reported.append((topic, why)))
    taker = Taker()
    running = asyncio.create_task(PullLoop(other, DECISIONS, BINDER_CONSUMER).run(taker))
    topic = f"consumer {DECISIONS}/{BINDER_CONSUMER}"
    await eventually(lambda: reported and reported[-1][0] == topic and reported[-1][1])
    await publish(bus, 3)
    await ensure_streams(bus)
    await eventually(lambda: len(taker.taken) == 3)
    assert reported[-1] == (topic, "")
    running.cancel()


@pytest.mark.slow
async def test_loops_that_share_a_consumer_do_not_ask_more_and_more(
    bus: LossyBus, connect: ConnectBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heartbeats count what went to others, too: that is nothing lost. Taken for a loss, each asked
    again, and each request's heartbeats did the same."""
    monkeypatch.setattr(pull, "HEARTBEAT_S", 1)
    takers = [Taker(), Taker()]
    buses = [bus, await connect("other")]
    loops = [
        asyncio.create_task(PullLoop(one, DECISIONS, BINDER_CONSUMER, batch=2).run(taker))
        for one, taker in zip(buses, takers, strict=True)
    ]
    await publish(bus, 12)
    await eventually(lambda: sum(len(taker.taken) for taker in takers) == 12)
    await asyncio.sleep(2.5)
    answer = await bus.request(
        f"$JS.API.CONSUMER.INFO.DECISIONS.{BINDER_CONSUMER}", b"", timeout_s=10.0
    )
    assert json.loads(answer.payload)["num_waiting"] <= 4
    for loop in loops:
        loop.cancel()
