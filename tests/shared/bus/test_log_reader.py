"""Reading a log on a real server: every record once and in order, whatever breaks."""

import asyncio
import math
from typing import Any

import pytest

from shared.bus import pull
from shared.bus.errors import LogGap, StreamReplaced
from shared.bus.fence import FencedLog
from shared.bus.log_reader import LogReader
from shared.bus.pull import Delivery
from shared.bus.setup import ensure_streams
from shared.contracts.subjects import CLUSTER, planner_consumer, webhook_consumer
from tests.shared.bus.conftest import ConnectBus, LossyBus
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer

CONSUMER = planner_consumer(CLUSTER, 0)


class Follower:
    """A reader with the records it has seen."""

    def __init__(
        self, bus: LossyBus, consumer: str = CONSUMER, *, start: int = 1, filtered: bool = False
    ) -> None:
        self.seen: list[tuple[int, bytes]] = []
        self.moved = asyncio.Event()
        self.reader = LogReader(bus, CLUSTER, consumer, filtered=filtered, batch=16)
        self.task = asyncio.create_task(self.reader.run(start, self.take))

    async def take(self, batch: list[Delivery]) -> None:
        self.seen.extend((delivery.seq, delivery.payload) for delivery in batch)
        self.moved.set()

    async def caught_up(self, seq: int) -> None:
        while not self.seen or self.seen[-1][0] < seq:
            self.moved.clear()
            await self.moved.wait()


async def append(bus: LossyBus, count: int) -> None:
    last = (await bus.stream_info(CLUSTER)).last_seq
    log = FencedLog(bus, CLUSTER, last_applied=last)
    await log.append_batch([("cluster.pod", b"%d" % n) for n in range(last + 1, last + 1 + count)])


def expected(first: int, last: int) -> list[tuple[int, bytes]]:
    return [(seq, b"%d" % seq) for seq in range(first, last + 1)]


async def test_a_reader_starts_at_the_given_position_and_follows(bus: LossyBus) -> None:
    await append(bus, 100)
    follower = Follower(bus, start=51)
    await follower.caught_up(101)
    await append(bus, 5)
    await follower.caught_up(106)
    assert follower.seen == expected(51, 106)
    assert follower.seen[-1][0] == 106
    follower.task.cancel()


async def test_a_restarted_reader_is_given_again_what_it_asks_for(bus: LossyBus) -> None:
    """The durable consumer remembers where it was; memory does not."""
    await append(bus, 20)
    for _ in range(2):
        follower = Follower(bus, start=2)
        await follower.caught_up(21)
        assert follower.seen == expected(2, 21)
        follower.task.cancel()


async def test_a_reader_may_start_behind_the_last_record(bus: LossyBus) -> None:
    await append(bus, 3)
    follower = Follower(bus, start=5)
    await append(bus, 2)
    await follower.caught_up(6)
    assert follower.seen == expected(5, 6)
    follower.task.cancel()


@pytest.mark.real_server_only
async def test_a_message_lost_on_the_way_is_read_again(bus: LossyBus) -> None:
    follower = Follower(bus)
    await follower.caught_up(1)
    dropped: list[bytes] = []
    process = bus._client._process_msg

    async def drop_one(sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        if data == b"7" and not dropped:
            dropped.append(data)
        else:
            await process(sid, subject, reply, data, headers)

    bus._client._process_msg = drop_one  # type: ignore[method-assign]  # a fault in the client
    await append(bus, 19)
    await follower.caught_up(20)
    assert dropped == [b"7"]
    assert follower.seen[1:] == expected(2, 20)
    follower.task.cancel()


async def test_nothing_is_missed_when_the_server_crashes_again_and_again(
    bus: LossyBus, nats_server: NatsServer
) -> None:
    follower = Follower(bus, start=2)
    for round_ in range(3):
        await append(bus, 30)
        await nats_server.kill()
        await nats_server.start()
        await append(bus, 10)
        await follower.caught_up(1 + 40 * (round_ + 1))
    assert follower.seen == expected(2, 121)
    follower.task.cancel()


async def test_records_that_are_gone_are_a_gap_not_a_silence(bus: LossyBus) -> None:
    await append(bus, 20)
    await bus.request("$JS.API.STREAM.PURGE.CLUSTER", b'{"seq":10}', timeout_s=10.0)
    with pytest.raises(LogGap) as gap:
        await Follower(bus, start=5).task
    assert (gap.value.wanted, gap.value.available) == (5, 10)


async def test_a_recreated_stream_is_noticed(bus: LossyBus, nats_server: NatsServer) -> None:
    await append(bus, 5)
    follower = Follower(bus, start=2)
    await follower.caught_up(6)
    await bus.request("$JS.API.STREAM.DELETE.CLUSTER", b"", timeout_s=10.0)
    await ensure_streams(bus)
    await append(bus, 10)
    await nats_server.kill()
    await nats_server.start()
    with pytest.raises(StreamReplaced):
        async with asyncio.timeout(5.0):
            await follower.task


async def test_a_stream_that_ends_before_what_was_read_is_not_the_one_we_know(
    bus: LossyBus,
) -> None:
    await append(bus, 5)
    with pytest.raises(StreamReplaced):
        await Follower(bus, start=100).task


async def test_a_filtered_reader_gets_its_subjects_only_and_all_of_them(
    bus: LossyBus, nats_server: NatsServer
) -> None:
    log = FencedLog(bus, CLUSTER, last_applied=1)
    follower = Follower(bus, webhook_consumer(0), start=1, filtered=True)
    for n in range(10):
        await log.append("cluster.queue" if n % 3 == 0 else "cluster.pod", b"%d" % n)
    await eventually(lambda: [payload for _, payload in follower.seen] == [b"0", b"3", b"6", b"9"])
    await nats_server.kill()
    await nats_server.start()
    await log.append("cluster.synced", b"10")
    await follower.caught_up(12)
    assert [payload for _, payload in follower.seen] == [b"0", b"3", b"6", b"9", b"10"]
    follower.task.cancel()


@pytest.fixture
def no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """However late a record comes, it belongs to the burst before it."""
    monkeypatch.setattr(pull, "_SILENT_S", math.inf)


@pytest.mark.usefixtures("no_silence")
async def test_a_resting_reader_takes_what_came_during_its_pause_in_one_go(
    bus: LossyBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    pulls: list[str] = []
    publish = bus.publish

    async def counted(subject: str, payload: bytes, **options: Any) -> None:
        if subject.startswith("$JS.API.CONSUMER.MSG.NEXT."):
            pulls.append(subject)
        await publish(subject, payload, **options)

    monkeypatch.setattr(bus, "publish", counted)
    follower = Follower(bus, start=2)
    follower.reader.pace.rest(60.0)
    await append(bus, 1)
    await follower.caught_up(2)
    for _ in range(8):
        await append(bus, 5)
    assert (follower.seen, len(pulls)) == (expected(2, 2), 1), "the first came alone and at once"
    follower.reader.pace.rest(30.0)  # the pause ends
    await follower.caught_up(42)
    assert follower.seen == expected(2, 42)
    # The remaining 40, as many together as one pull may request: 16.
    assert len(pulls) == 1 + 3
    follower.task.cancel()


async def test_the_first_record_after_a_silence_comes_at_once_to_a_resting_reader(
    bus: LossyBus,
) -> None:
    follower = Follower(bus)
    follower.reader.pace.rest(60.0)
    await follower.caught_up(1)
    await append(bus, 1)
    await follower.caught_up(2)
    follower.task.cancel()


async def test_records_that_come_out_of_a_silence_each_are_read_without_a_pause(
    bus: LossyBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull, "_SILENT_S", 0.0)
    follower = Follower(bus, start=2)
    follower.reader.pace.rest(60.0)
    for seq in (2, 3, 4):
        await append(bus, 1)
        await follower.caught_up(seq)
    follower.task.cancel()


@pytest.mark.usefixtures("no_silence")
async def test_a_resting_reader_that_has_to_hurry_ends_its_pause(bus: LossyBus) -> None:
    follower = Follower(bus, start=2)
    follower.reader.pace.rest(60.0)
    await append(bus, 1)
    await follower.caught_up(2)
    await append(bus, 40)
    assert follower.seen[-1][0] == 2
    follower.reader.pace.go_full()
    await follower.caught_up(42)
    await append(bus, 3)
    await follower.caught_up(45)
    assert follower.seen == expected(2, 45)
    follower.task.cancel()


@pytest.mark.usefixtures("no_silence")
async def test_a_resting_reader_reads_a_long_log_without_pausing_within_it(bus: LossyBus) -> None:
    await append(bus, 300)
    follower = Follower(bus, start=2)
    follower.reader.pace.rest(60.0)
    # The first record wakes it; once that pause is over, one look follows the other.
    await follower.caught_up(2)
    follower.reader.pace.rest(30.0)
    await follower.caught_up(301)
    assert follower.seen == expected(2, 301)
    follower.task.cancel()


async def test_a_resting_reader_heals_what_a_reconnection_lost(
    bus: LossyBus, nats_server: NatsServer
) -> None:
    follower = Follower(bus, start=2)
    follower.reader.pace.rest(0.05)
    await append(bus, 30)
    await follower.caught_up(31)
    await nats_server.kill()
    await nats_server.start()
    await append(bus, 30)
    await follower.caught_up(61)
    assert follower.seen == expected(2, 61)
    follower.task.cancel()


@pytest.mark.usefixtures("bus")
async def test_a_reader_that_was_cancelled_makes_no_process_unready(connect: ConnectBus) -> None:
    """A planner that begins to lead stops reading VERDICTS, well or not."""
    problems: dict[str, str] = {}
    bus = await connect(on_health=problems.__setitem__)
    reader = LogReader(bus, CLUSTER, "no-such-consumer")

    async def take(_: list[Delivery]) -> None:
        pytest.fail("nothing can arrive")

    reading = asyncio.create_task(reader.run(1, take))
    await eventually(lambda: problems.get(f"log {CLUSTER}"), timeout_s=10.0)
    reading.cancel()
    await asyncio.wait([reading])
    assert problems[f"log {CLUSTER}"] == ""
