"""The pipelined publisher on a real server: bounded, and every error reaches its caller."""

import asyncio

import pytest

from shared.bus.errors import AppendRefused, BusUnavailable, MessageTooLarge, WrongLastSequence
from shared.bus.publisher import Publisher
from shared.contracts.subjects import OUTCOMES, VERDICTS, outcome, verdict
from tests.shared.bus.conftest import ConnectBus, LossyBus
from tests.support.full_stream import a_full_stream
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer


async def test_it_stores_everything_in_order_without_waiting_for_each(bus: LossyBus) -> None:
    publisher = Publisher(bus, in_flight_max=32)
    futures = [await publisher.publish(outcome("g", n), b"%d" % n) for n in range(200)]
    assert [(await future).seq for future in futures] == list(range(1, 201))


async def test_the_second_outcome_of_a_decision_loses_and_is_reported(bus: LossyBus) -> None:
    publisher = Publisher(bus)
    first = await publisher.publish(outcome("g", 1), b"a", expected_last_subject_sequence=0)
    second = await publisher.publish(outcome("g", 1), b"b", expected_last_subject_sequence=0)
    assert (await first).seq == 1
    with pytest.raises(WrongLastSequence):
        await second
    assert (await bus.stream_info(OUTCOMES)).messages == 1


async def test_a_lost_acknowledgement_is_repeated(bus: LossyBus) -> None:
    publisher = Publisher(bus, timeout_s=0.05)
    bus.lose_next(2)
    await (await publisher.publish(verdict("g"), b"a"))
    assert (await bus.stream_info(VERDICTS)).messages == 1


async def test_it_gives_up_after_five_attempts_and_frees_its_place(bus: LossyBus) -> None:
    publisher = Publisher(bus, in_flight_max=1, timeout_s=0.02)
    bus.lose_next(1000)
    with pytest.raises(BusUnavailable, match="5 attempts"):
        await (await publisher.publish(verdict("g"), b"a"))
    bus.lose_next(0)
    await (await publisher.publish(verdict("g"), b"b"))


async def test_no_more_than_the_bound_are_unanswered(bus: LossyBus) -> None:
    publisher = Publisher(bus, in_flight_max=2, timeout_s=10.0)
    bus.lose_next(2)
    futures = [await publisher.publish(verdict("g"), b"") for _ in range(2)]
    third = asyncio.create_task(publisher.publish(verdict("g"), b""))
    await bus.request("$JS.API.INFO", b"", timeout_s=10.0)
    assert not third.done()
    futures[0].cancel()
    await (await third)
    futures[1].cancel()


async def test_a_message_that_is_too_large_takes_no_place(bus: LossyBus) -> None:
    publisher = Publisher(bus, in_flight_max=1)
    with pytest.raises(MessageTooLarge):
        _ = await publisher.publish(verdict("g"), b"x" * (1 << 20))
    await (await publisher.publish(verdict("g"), b"x"))


async def test_what_the_server_refuses_is_an_error_with_its_text(bus: LossyBus) -> None:
    publisher = Publisher(bus)
    future = await publisher.publish(outcome("g", 1), b"x", ttl_s=1)  # OUTCOMES allows no TTL
    with pytest.raises(AppendRefused, match=r"TTL|ttl"):
        await future


async def test_a_verdict_with_a_time_to_live_disappears(bus: LossyBus) -> None:
    await (await Publisher(bus).publish(verdict("g"), b"gone", ttl_s=1))

    async def empty() -> bool:
        return (await bus.stream_info(VERDICTS)).messages == 0

    await eventually(empty, timeout_s=5.0)


async def test_a_crash_of_the_server_loses_nothing(bus: LossyBus, nats_server: NatsServer) -> None:
    publisher = Publisher(bus)
    futures = [await publisher.publish(outcome("g", n), b"x") for n in range(20)]
    await nats_server.kill()
    later = [asyncio.create_task(publisher.publish(outcome("h", n), b"x")) for n in range(20)]
    await nats_server.start()
    for task in later:
        await (await task)
    await publisher.flush()
    for future in futures:
        await future
    messages = [await bus.get_last(OUTCOMES, outcome(gang, n)) for gang in "gh" for n in range(20)]
    assert None not in messages


async def test_flush_waits_for_all_that_was_sent(connect: ConnectBus, bus: LossyBus) -> None:
    publisher = Publisher(bus)
    futures = [await publisher.publish(verdict("g"), b"x") for _ in range(50)]
    await publisher.flush()
    assert all(future.done() for future in futures)


@pytest.mark.real_server_only
async def test_a_full_stream_is_a_refusal_not_a_silence(bus: LossyBus) -> None:
    publisher = Publisher(bus)
    async with a_full_stream(bus, OUTCOMES):
        with pytest.raises(AppendRefused, match="maximum bytes exceeded"):
            await (await publisher.publish("outcomes.g.1", b"x"))
