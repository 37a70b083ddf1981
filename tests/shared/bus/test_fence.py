"""The fenced append on a real nats-server."""

import asyncio
from typing import Any

import pytest

from shared.bus import fence
from shared.bus.errors import (
    AppendRefused,
    AppendUnresolved,
    BusUnavailable,
    MessageTooLarge,
    Superseded,
)
from shared.bus.fence import BATCH_MIN, FencedLog
from shared.bus.setup import ensure_streams
from shared.contracts.subjects import CLUSTER
from tests.shared.bus.conftest import ConnectBus, LossyBus
from tests.support.full_stream import a_full_stream
from tutti.nats_server import NatsServer

SUBJECT = "cluster.pod"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost answer costs a tenth of a second here, not a whole one."""
    monkeypatch.setattr(fence, "SEND_TIMEOUT_S", 0.1)
    monkeypatch.setattr(fence, "PAUSE_S", 0.01)


async def stored(bus: LossyBus) -> list[bytes]:
    """Everything in CLUSTER behind record 1."""
    last = (await bus.stream_info(CLUSTER)).last_seq
    messages = [await bus.get_message(CLUSTER, seq) for seq in range(2, last + 1)]
    return [message.payload for message in messages if message is not None]


async def test_appends_take_consecutive_sequences_behind_record_one(bus: LossyBus) -> None:
    log = FencedLog(bus, CLUSTER, last_applied=1)
    assert [await log.append(SUBJECT, b"%d" % n) for n in range(3)] == [2, 3, 4]
    assert log.last_applied == 4


async def test_two_logs_on_one_connection_are_two_writers(bus: LossyBus) -> None:
    """Their records must not pass for one another's, or the server calls the second a duplicate."""
    first, second = (FencedLog(bus, CLUSTER, last_applied=1) for _ in range(2))
    assert await first.append(SUBJECT, b"a") == 2
    with pytest.raises(Superseded):
        await second.append(SUBJECT, b"b")
    assert await FencedLog(bus, CLUSTER, last_applied=2).append(SUBJECT, b"c") == 3


@pytest.mark.parametrize("count", [1, BATCH_MIN], ids=["one", "a batch"])
async def test_strays_are_stepped_over_and_another_writer_behind_them_is_not(
    bus: LossyBus, count: int
) -> None:
    log, other = (FencedLog(bus, CLUSTER, last_applied=1) for _ in range(2))
    for one in (log, other):
        one.overlook(lambda payload: payload == b"stray")
    for _ in range(3):
        await bus.request(SUBJECT, b"stray", timeout_s=10.0)
    ours = [(SUBJECT, b"%d" % number) for number in range(count)]
    assert await log.append_batch(ours) == list(range(5, 5 + count))
    await bus.request(SUBJECT, b"stray", timeout_s=10.0)
    assert await log.append(SUBJECT, b"z") == 6 + count
    with pytest.raises(Superseded):
        await other.append(SUBJECT, b"theirs")


async def test_a_lost_acknowledgement_does_not_store_the_record_twice(bus: LossyBus) -> None:
    log = FencedLog(bus, CLUSTER, last_applied=1)
    bus.lose_next(1)
    assert await log.append(SUBJECT, b"a") == 2
    assert await log.append(SUBJECT, b"b") == 3
    assert await stored(bus) == [b"a", b"b"]


async def test_a_writer_that_missed_a_record_is_superseded_for_good(
    bus: LossyBus, connect: ConnectBus
) -> None:
    log = FencedLog(bus, CLUSTER, last_applied=1)
    await FencedLog(await connect("other"), CLUSTER, last_applied=1).append(SUBJECT, b"other")
    for _ in range(2):
        with pytest.raises(Superseded):
            await log.append(SUBJECT, b"late")
    assert await stored(bus) == [b"other"]


async def test_a_foreign_record_found_after_a_lost_request_means_superseded(
    bus: LossyBus, connect: ConnectBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our request never reached the server, and another wrote at our place."""
    log = FencedLog(bus, CLUSTER, last_applied=1)
    other = FencedLog(await connect("other"), CLUSTER, last_applied=1)
    publish = bus.publish

    async def lose_appends(subject: str, payload: bytes, **more: Any) -> None:
        if subject == SUBJECT:
            await other.append(SUBJECT, b"other")
        else:
            await publish(subject, payload, **more)

    monkeypatch.setattr(bus, "publish", lose_appends)
    with pytest.raises(Superseded, match="other"):
        await log.append(SUBJECT, b"lost")
    assert await stored(bus) == [b"other"]


async def test_of_two_racing_writers_one_writes_everything_and_the_other_nothing_more(
    bus: LossyBus, connect: ConnectBus
) -> None:
    other = await connect("other")
    written: dict[bytes, int] = {}

    async def write(name: bytes, log: FencedLog) -> None:
        written[name] = 0
        try:
            for _ in range(50):
                await log.append(SUBJECT, name)
                written[name] += 1
        except Superseded:
            return

    await asyncio.gather(
        write(b"ours", FencedLog(bus, CLUSTER, last_applied=1)),
        write(b"theirs", FencedLog(other, CLUSTER, last_applied=1)),
    )
    records = await stored(bus)
    assert sorted(written.values()) == [0, 50]
    assert len(set(records)) == 1
    assert len(records) == 50


async def test_a_writer_that_applies_a_foreign_record_writes_behind_it(
    bus: LossyBus, connect: ConnectBus
) -> None:
    log = FencedLog(bus, CLUSTER, last_applied=1)
    seq = await FencedLog(await connect("other"), CLUSTER, last_applied=1).append(SUBJECT, b"x")
    log.applied(seq)
    assert await log.append(SUBJECT, b"y") == 3


async def test_many_records_go_as_one_atomic_batch(bus: LossyBus) -> None:
    log = FencedLog(bus, CLUSTER, last_applied=1)
    payloads = [b"%d" % n for n in range(BATCH_MIN)]
    assert await log.append_batch([(SUBJECT, p) for p in payloads]) == list(range(2, BATCH_MIN + 2))
    assert await stored(bus) == payloads
    last = await bus.get_message(CLUSTER, BATCH_MIN + 1)
    assert last is not None
    assert last.headers["Nats-Batch-Commit"] == "1"


async def test_a_batch_whose_acknowledgement_is_lost_is_stored_once(bus: LossyBus) -> None:
    log = FencedLog(bus, CLUSTER, last_applied=1)
    bus.lose_next(1)
    records = [(SUBJECT, b"%d" % n) for n in range(BATCH_MIN)]
    assert await log.append_batch(records) == list(range(2, BATCH_MIN + 2))
    assert len(await stored(bus)) == BATCH_MIN


async def test_a_superseded_batch_stores_nothing(bus: LossyBus, connect: ConnectBus) -> None:
    log = FencedLog(bus, CLUSTER, last_applied=1)
    await FencedLog(await connect("other"), CLUSTER, last_applied=1).append(SUBJECT, b"other")
    with pytest.raises(Superseded):
        await log.append_batch([(SUBJECT, b"x")] * 50)
    assert await stored(bus) == [b"other"]


async def test_more_than_a_batch_holds_goes_in_several(bus: LossyBus) -> None:
    log = FencedLog(bus, CLUSTER, last_applied=1)
    assert await log.append_batch([(SUBJECT, b"x")] * 1005) == list(range(2, 1007))


async def test_a_few_records_go_one_by_one_and_a_repetition_goes_on_where_it_stopped(
    bus: LossyBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = FencedLog(bus, CLUSTER, last_applied=1)
    records = [(SUBJECT, b"%d" % n) for n in range(4)]
    sent = 0
    request = bus.request

    async def fail_the_third(subject: str, payload: bytes, **more: Any) -> object:
        nonlocal sent
        if subject == SUBJECT:
            sent += 1
        if sent == 3:
            raise BusUnavailable("gone")
        return await request(subject, payload, **more)

    monkeypatch.setattr(bus, "request", fail_the_third)
    monkeypatch.setattr(bus, "get_message", fail_the_third)
    with pytest.raises(BusUnavailable):
        await log.append_batch(records)
    monkeypatch.undo()
    with pytest.raises(AppendUnresolved):
        await log.append(SUBJECT, b"another")
    assert await log.append_batch(records) == [2, 3, 4, 5]
    assert await stored(bus) == [b"0", b"1", b"2", b"3"]


async def test_a_cancelled_append_must_be_repeated_before_any_other(bus: LossyBus) -> None:
    log = FencedLog(bus, CLUSTER, last_applied=1)
    bus.lose_next(1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await log.append(SUBJECT, b"a")
    with pytest.raises(AppendUnresolved):
        await log.append(SUBJECT, b"b")
    assert await log.append(SUBJECT, b"a") == 2
    assert await stored(bus) == [b"a"]


async def test_a_record_longer_than_the_server_takes_is_refused_before_it_is_sent(
    bus: LossyBus,
) -> None:
    log = FencedLog(bus, CLUSTER, last_applied=1)
    with pytest.raises(MessageTooLarge):
        await log.append(SUBJECT, b"x" * (bus.payload_bytes_max + 1))
    assert await log.append(SUBJECT, b"x" * bus.payload_bytes_max) == 2


async def test_an_append_survives_a_crash_of_the_server(
    bus: LossyBus, nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fence, "SEND_TIMEOUT_S", 1.0)
    monkeypatch.setattr(fence, "PAUSE_S", 0.25)
    log = FencedLog(bus, CLUSTER, last_applied=1)
    for n in range(20):
        if n in {5, 12}:
            await nats_server.kill()
            append = asyncio.create_task(log.append(SUBJECT, b"%d" % n))
            await nats_server.start()
            await append
        else:
            await log.append(SUBJECT, b"%d" % n)
    assert await stored(bus) == [b"%d" % n for n in range(20)]


async def _made_again(bus: LossyBus, records: int) -> None:
    """Lose CLUSTER; in the new one another life has written as many records."""
    await bus.request(f"$JS.API.STREAM.DELETE.{CLUSTER}", b"", timeout_s=10.0)
    await ensure_streams(bus)
    log = FencedLog(bus, CLUSTER, last_applied=1)
    for n in range(records):
        await log.append(SUBJECT, b"new life %d" % n)


async def test_a_recreated_stream_is_not_written_to_although_its_length_is_right(
    bus: LossyBus, connect: ConnectBus, nats_server: NatsServer
) -> None:
    """The sequence alone is no token: a writer that slept through all this would be let in."""
    sleeper = FencedLog(await connect("sleeper"), CLUSTER, last_applied=1)
    await sleeper.append(SUBJECT, b"old life")
    await nats_server.kill()
    await nats_server.start()
    await _made_again(bus, records=1)
    with pytest.raises(Superseded, match="created again"):
        await sleeper.append(SUBJECT, b"late")
    assert await stored(bus) == [b"new life 0"]


async def test_an_append_of_unknown_fate_is_not_repeated_into_a_recreated_stream(
    bus: LossyBus, connect: ConnectBus
) -> None:
    lossy = await connect("lossy")
    log = FencedLog(lossy, CLUSTER, last_applied=1)
    await log.append(SUBJECT, b"old life")
    lossy.lose_next(1)
    appending = asyncio.create_task(log.append(SUBJECT, b"unanswered"))
    await asyncio.sleep(0)
    await _made_again(bus, records=1)
    with pytest.raises(Superseded, match="created again"):
        await appending
    assert b"unanswered" not in await stored(bus)


async def test_a_log_that_was_read_from_another_stream_writes_nothing(bus: LossyBus) -> None:
    log = FencedLog(bus, CLUSTER, last_applied=1, generation="another")
    with pytest.raises(Superseded, match="created again"):
        await log.append(SUBJECT, b"a")
    assert await stored(bus) == []


@pytest.mark.real_server_only
async def test_a_full_stream_refuses_at_once_in_its_own_words_and_takes_the_record_later(
    bus: LossyBus,
) -> None:
    log = FencedLog(bus, CLUSTER, last_applied=1)
    async with a_full_stream(bus, CLUSTER):
        for _ in range(2):
            with pytest.raises(AppendRefused, match="maximum bytes exceeded"):
                await log.append(SUBJECT, b"a")
    assert await log.append(SUBJECT, b"a") == 2
