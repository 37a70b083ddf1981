"""The faults that the simulated NATS injects into connections and streams. Its normal behaviour is
tested in `tests/shared/bus`, together with that of the real server.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from shared.bus.connection import Bus, Message
from shared.bus.errors import AppendRefused, NoAnswer
from shared.bus.fence import FencedLog
from shared.bus.publisher import Publisher
from shared.bus.pull import Delivery, PullLoop
from shared.bus.setup import ensure_streams
from shared.contracts.subjects import BINDER_CONSUMER, CLUSTER, DECISIONS, OUTCOMES, act, outcome
from tests.simulation.bus import bus_on
from tests.simulation.loop import Dice, Generation, SimLoop
from tests.simulation.nats_server import SimNats
from tests.simulation.patches import on_virtual_time
from tests.simulation.stream_store import Refused


class Stage:
    """A loop, a server, and processes on it."""

    def __init__(self, seed: int = 3) -> None:
        self.loop = SimLoop(Dice(seed))
        self.nats = SimNats(self.loop, self.loop.dice.rng("nats"))
        self.errors: list[BaseException] = []
        self._time = on_virtual_time(self.loop)
        self._time.__enter__()

    def process(
        self, name: str, work: Callable[[Bus], Awaitable[object]], *, for_s: float = 0.0
    ) -> Generation:
        """Start a process with a bus of its own, and let some time pass."""
        generation = self.loop.incarnate(name)

        async def live() -> None:
            bus = await bus_on(self.nats).connect("nats://simulated", name=name)
            await work(bus)

        self.loop.spawn(generation, live()).add_done_callback(self._ended)
        self.loop.run_for(for_s)
        return generation

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = task.exception()
        if error is not None:
            self.errors.append(error)

    def done(self) -> None:
        """Nothing went wrong that a test did not ask for."""
        self._time.__exit__(None, None, None)
        self.loop.discard()
        assert self.errors == []


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    made.process("setup", ensure_streams, for_s=2.0)
    yield made
    made.done()


def test_of_what_a_killed_process_sent_a_beginning_arrives() -> None:
    """The order of a connection holds to its end: nothing behind a gap."""
    arrived: set[int] = set()
    for seed in range(30):
        stage = Stage(seed)
        stage.process("setup", ensure_streams, for_s=2.0)

        async def burst(bus: Bus) -> None:
            for number in range(20):
                await bus.publish(outcome("g", number), b"x")

        victim = stage.process("victim", burst)
        victim.kill_at_effect = 10
        stage.loop.run_for(1.0)
        stored = [record.subject for record in stage.nats.streams[OUTCOMES].records.values()]
        assert stored == [outcome("g", number) for number in range(len(stored))]
        assert len(stored) <= 10
        arrived.add(len(stored))
        stage.done()
    assert len(arrived) > 3, "it is chance how much arrives"


def test_a_lost_acknowledgement_is_of_a_record_that_is_stored(stage: Stage) -> None:
    stage.nats.faults.lost_ack = 1.0
    ends: list[object] = []

    async def append(bus: Bus) -> None:
        log = FencedLog(bus, CLUSTER, last_applied=1)
        ends.append(await log.append("cluster.pod", b"x"))

    stage.process("writer", append, for_s=5.0)
    assert ends == [2]
    assert [record.payload for record in stage.nats.streams[CLUSTER].records.values()][1:] == [b"x"]


def test_a_partition_delays_and_loses_nothing(stage: Stage) -> None:
    heard: list[float] = []

    async def listen(bus: Bus) -> None:
        async def take(_: Message) -> None:
            heard.append(stage.loop.time())

        await bus.subscribe("x", take)

    async def speak(bus: Bus) -> None:
        await bus.publish("x", b"")

    listener = stage.process("listener", listen, for_s=1.0)
    (link,) = [one for one in stage.nats.links if one.client.label == repr(listener)]
    begun = stage.loop.time()
    stage.nats.partition(link, 5.0)
    stage.process("speaker", speak, for_s=10.0)
    assert [round(at - begun) for at in heard] == [5]


def test_a_long_partition_ends_the_connection_and_the_client_finds_a_new_one(stage: Stage) -> None:
    reconnects: list[bool] = []

    async def listen(bus: Bus) -> None:
        bus.on_reconnect(lambda: reconnects.append(True))
        await asyncio.sleep(60)

    listener = stage.process("listener", listen, for_s=1.0)
    (link,) = [one for one in stage.nats.links if one.client.label == repr(listener)]
    stage.nats.partition(link, 40.0)
    stage.loop.run_for(20.0)
    assert reconnects == [True]
    assert not link.alive


def test_an_early_redelivery_reaches_another_while_the_first_still_works(stage: Stage) -> None:
    taken: list[tuple[str, int]] = []

    async def work(bus: Bus) -> None:
        async def take(batch: list[Delivery]) -> None:
            taken.extend((bus.name, delivery.delivered) for delivery in batch)

        await PullLoop(bus, DECISIONS, BINDER_CONSUMER, batch=1).run(take)

    async def decide(bus: Bus) -> None:
        await bus.request(act("g"), b"x", timeout_s=1.0)

    for name in ("binder-0", "binder-1"):
        stage.process(name, work, for_s=0.5)
    stage.process("planner", decide, for_s=0.1)
    assert [delivered for _, delivered in taken] == [1]
    assert stage.nats.redeliver_early(DECISIONS, BINDER_CONSUMER)
    stage.loop.run_for(0.1)
    assert [delivered for _, delivered in taken] == [1, 2]


def test_a_killed_server_keeps_its_streams_and_gives_unacknowledged_work_again(
    stage: Stage,
) -> None:
    taken: list[int] = []

    async def work(bus: Bus) -> None:
        async def take(batch: list[Delivery]) -> None:
            taken.extend(delivery.delivered for delivery in batch)

        await PullLoop(bus, DECISIONS, BINDER_CONSUMER).run(take)

    async def decide(bus: Bus) -> None:
        await bus.request(act("g"), b"x", timeout_s=1.0)

    stage.process("binder", work, for_s=0.5)
    stage.process("planner", decide, for_s=0.1)
    stage.nats.kill()
    stage.loop.run_for(0.5)
    stage.nats.start()
    stage.loop.run_for(5.0)
    assert taken[:2] == [1, 2]
    assert [record.payload for record in stage.nats.streams[DECISIONS].records.values()][1:] == [
        b"x"
    ]


def test_a_full_stream_refuses_in_its_own_words(stage: Stage) -> None:
    stage.nats.streams[OUTCOMES].refuses = Refused(400, 10077, "no space left on device")
    ends: list[str] = []

    async def publish(bus: Bus) -> None:
        try:
            await (await Publisher(bus).publish(outcome("g", 1), b"x"))
        except AppendRefused as error:
            ends.append(error.text)

    stage.process("binder", publish, for_s=2.0)
    assert ends == [f"{outcome('g', 1)}: no space left on device"]


def test_a_wiped_server_has_streams_of_another_creation_time(stage: Stage) -> None:
    before = stage.nats.streams[CLUSTER].generation
    stage.nats.kill()
    stage.nats.wipe()
    stage.nats.start()
    ends: list[str] = []

    async def look(bus: Bus) -> None:
        try:
            await bus.request("cluster.pod", b"x", timeout_s=1.0)
        except NoAnswer as error:
            ends.append(str(error))

    stage.process("early", look, for_s=2.0)
    assert ends == ["cluster.pod: no process listens"]
    stage.process("setup", ensure_streams, for_s=2.0)
    assert stage.nats.streams[CLUSTER].generation not in {"", before}


def test_an_append_under_way_while_the_server_dies_is_stored_exactly_once() -> None:
    """Whether the first copy arrived is chance; the writer must find out."""
    first_copy_stored: set[bool] = set()
    for seed in range(24):
        stage = Stage(seed)
        stage.process("setup", ensure_streams, for_s=2.0)
        ends: list[int] = []

        async def append(bus: Bus, stage: Stage = stage, ends: list[int] = ends) -> None:
            stage.loop.at(stage.loop.dice.rng("test").random() * 0.0012, stage.nats.kill)
            ends.append(await FencedLog(bus, CLUSTER, last_applied=1).append("cluster.pod", b"x"))

        stage.process("writer", append, for_s=0.1)
        records = stage.nats.streams[CLUSTER].records
        first_copy_stored.add(len(records) == 2)
        stage.nats.start()
        stage.loop.run_for(20.0)
        assert ends == [2]
        assert [record.payload for record in records.values()][1:] == [b"x"]
        stage.done()
    assert first_copy_stored == {True, False}
