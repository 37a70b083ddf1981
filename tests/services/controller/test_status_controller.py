"""The status controller's shell on a real nats-server, with a writer that can be held up."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from typing_extensions import override

from services.controller import status_controller
from services.controller.core.events import EventIntent
from services.controller.core.statuses.intents import Intent, PatchGroup, ReportPlaced
from services.controller.errors import RetryLater
from services.controller.other_controllers import OtherControllers
from services.controller.reporting import Reporting
from services.controller.state import Report, WrittenGang
from services.controller.status_controller import StatusController
from services.controller.verdict_deliveries import decode, read_verdict
from shared.bus.connection import Bus
from shared.bus.pull import Delivery, Handler, PullLoop
from shared.bus.setup import ensure_streams
from shared.contracts import subjects
from shared.contracts.foreign_messages import OnForeign
from shared.contracts.verdicts import Verdict
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.resources import LEASES
from shared.runtime.steady_clock import SteadyClock
from shared.telemetry.metrics import Metrics
from shared.telemetry.tracers import tracer_for
from tests.services.controller.core.samples import make_running
from tests.services.controller.harness import Desk, a_desk
from tests.services.controller.leases import a_lease
from tests.support.background import in_background
from tests.support.junk import store_answer
from tests.support.waiting import eventually
from tutti.cluster.embedded import EmbeddedCluster, Settings
from tutti.nats_server import NatsServer

pytestmark = pytest.mark.integration

LATER_MS = 4_000_000_000_000
"""First seen after the controller's start, whenever that is: nothing has to be read first."""


class HeldWriter:
    """Writes into memory, once it is let go."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.begun: list[int] = []
        self.written: list[int] = []
        self.failures = 0

    async def write(self, intent: Intent, verdict: Verdict, memory: WrittenGang) -> None:
        if isinstance(intent, ReportPlaced):
            memory.placed = intent.placed
        if isinstance(intent, EventIntent):
            memory.events[intent.topic] = Report(intent.why, intent.message, 0)
        if not isinstance(intent, PatchGroup):
            return
        self.begun.append(verdict.running)
        await self.go.wait()
        if self.failures:
            self.failures -= 1
            raise RetryLater("busy", 0.05)
        memory.annotation, memory.meaning = intent.annotation, intent.meaning
        self.written.append(verdict.running)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Delivery]:
    """The deliveries that controllers have taken, in their order."""
    deliveries: list[Delivery] = []

    async def noting(delivery: Delivery, on_foreign: OnForeign) -> Verdict | None:
        deliveries.append(delivery)
        return await read_verdict(delivery, on_foreign)

    monkeypatch.setattr(status_controller, "read_verdict", noting)
    return deliveries


class ObservedPullLoop(PullLoop):
    """A loop that a test can end: from then on the other replicas get what is published."""

    @override
    async def run(self, handler: Handler) -> None:
        self.ended = asyncio.Event()
        await super().run(handler)
        self.ended.set()

    async def end(self) -> None:
        self.stop()
        await self.ended.wait()


@pytest.fixture
def pulls(monkeypatch: pytest.MonkeyPatch) -> list[ObservedPullLoop]:
    """The loops of the controllers, in their order."""
    loops: list[ObservedPullLoop] = []

    def make(bus: Bus, stream: str, consumer: str) -> ObservedPullLoop:
        loops.append(ObservedPullLoop(bus, stream, consumer))
        return loops[-1]

    monkeypatch.setattr(status_controller, "PullLoop", make)
    return loops


def running_of(delivery: Delivery) -> int:
    verdict = decode(delivery.payload)
    assert verdict is not None
    return verdict.running


@asynccontextmanager
async def a_controller(
    desk: Desk, writer: HeldWriter, others: OtherControllers | None = None
) -> AsyncIterator[StatusController]:
    reporting = Reporting(Metrics("controller"), tracer_for("", service="controller", instance="0"))
    others = others or OtherControllers(cast("Any", None), ())
    controller = StatusController(
        desk.bus,
        cast("Any", writer),
        SteadyClock(),
        reporting,
        others,
        lambda *_: None,
        waiting_pod_events_per_s=0,
    )
    async with in_background(controller.run(), name="status"):
        yield controller


async def test_nothing_is_written_while_another_scheduler_of_our_name_lives_and_the_newest_then(
    nats_server: NatsServer, tmp_path: Path, taken: list[Delivery]
) -> None:
    writer = HeldWriter()
    writer.go.set()
    async with EmbeddedCluster(Settings(nodes=0)) as cluster:
        credentials = await load(str(cluster.kubeconfig(tmp_path / "kubeconfig")))
        async with KubeClient(credentials) as client:
            await client.create(LEASES, a_lease("volcano"), namespace="kube-system")
            others = OtherControllers(client, ["volcano"], check_every_s=0.05)
            async with a_desk(nats_server.url) as desk, a_controller(desk, writer, others):
                await desk.say(make_running(running=1, first_seen_ms=LATER_MS))
                await desk.say(make_running(running=2, first_seen_ms=LATER_MS))
                await eventually(lambda: taken)
                assert not writer.begun
                released = a_lease("volcano", holder="")
                await client.patch(LEASES, "volcano", released, namespace="kube-system")
                await eventually(lambda: writer.written)
                assert writer.written[-1] == 2


async def test_what_another_replica_overtook_is_written_again_as_it_should_be(
    nats_server: NatsServer, pulls: list[ObservedPullLoop]
) -> None:
    writer = HeldWriter()
    async with a_desk(nats_server.url) as desk, a_controller(desk, writer):
        await desk.say(make_running(running=1, first_seen_ms=LATER_MS))
        await eventually(lambda: writer.begun)
        # From here on the other replica gets the verdicts: this one pulls no more.
        await pulls[0].end()
        await desk.say(make_running(running=2, first_seen_ms=LATER_MS))
        writer.go.set()
        await eventually(lambda: writer.written == [1, 2])


async def test_a_verdict_overtaken_before_its_turn_is_never_written(
    nats_server: NatsServer,
) -> None:
    writer = HeldWriter()
    async with a_desk(nats_server.url) as desk:
        for running in range(1, 4):
            await desk.say(make_running(running=running, first_seen_ms=LATER_MS))
        writer.go.set()
        async with a_controller(desk, writer):
            await eventually(lambda: writer.written == [3])
            await desk.all_written()
        assert writer.written == [3]


async def test_what_could_not_be_written_is_tried_until_it_is_and_only_then_acknowledged(
    nats_server: NatsServer,
) -> None:
    writer = HeldWriter()
    writer.failures = 3
    async with a_desk(nats_server.url) as desk, a_controller(desk, writer):
        await desk.say(make_running(running=1, first_seen_ms=LATER_MS))
        await eventually(lambda: writer.begun)
        assert await desk.open_verdicts() == 1
        writer.go.set()
        await desk.all_written()
    assert (writer.begun, writer.written) == ([1, 1, 1, 1], [1])


async def test_a_stopped_controller_gives_its_gangs_to_another_at_once(
    nats_server: NatsServer,
) -> None:
    failing, writer = HeldWriter(), HeldWriter()
    failing.failures = 1_000_000
    failing.go.set()
    writer.go.set()
    async with a_desk(nats_server.url) as desk:
        async with a_controller(desk, failing) as controller:
            await desk.say(make_running(running=1, first_seen_ms=LATER_MS))
            await eventually(lambda: failing.begun)
            await controller.stop_taking()
            await controller.finish()
        async with a_controller(desk, writer):
            await eventually(lambda: writer.written == [1], timeout_s=5)


async def test_a_second_delivery_does_not_acknowledge_what_is_still_to_be_written(
    nats_server: NatsServer, taken: list[Delivery]
) -> None:
    """A killed nats-server forgets the newest state of its consumers, so a verdict that waits for
    its turn comes again. An acknowledgement of the first delivery is one of the message: were
    this process killed now, no process would ever write it.
    """
    writer = HeldWriter()
    async with a_desk(nats_server.url) as desk, a_controller(desk, writer):
        verdict = make_running(running=1, first_seen_ms=LATER_MS)
        await desk.say(verdict)
        await eventually(lambda: writer.begun)
        await taken[0].nak()
        await eventually(lambda: taken[-1].delivered > 1)
        assert [await desk.open_verdicts() for _ in range(3)] == [1, 1, 1]
        writer.go.set()
        await desk.all_written()
        assert writer.written[-1] == 1


async def test_a_verdict_of_a_recreated_stream_replaces_one_of_the_lost_stream(
    nats_server: NatsServer, taken: list[Delivery]
) -> None:
    """Its sequence is lower, and yet it is the newer one."""
    writer = HeldWriter()
    async with a_desk(nats_server.url) as desk, a_controller(desk, writer):
        await desk.say(make_running(running=1, first_seen_ms=LATER_MS))
        await eventually(lambda: writer.begun)
        for running in (2, 3):
            await desk.say(make_running(running=running, first_seen_ms=LATER_MS))
        await eventually(lambda: taken[-1].seq == 3)
        await nats_server.kill()
        await asyncio.to_thread(shutil.rmtree, nats_server.data_dir / "store")
        await nats_server.start()
        await desk.bus.wait_connected()
        await ensure_streams(desk.bus)
        await desk.say(make_running(running=4, first_seen_ms=LATER_MS))
        await eventually(lambda: running_of(taken[-1]) == 4)
        writer.go.set()
        await eventually(lambda: writer.written and writer.written[-1] == 4)


async def test_a_replica_that_stops_after_a_late_write_leaves_the_newest_verdict(
    nats_server: NatsServer, pulls: list[ObservedPullLoop]
) -> None:
    writer = HeldWriter()
    async with a_desk(nats_server.url) as desk, a_controller(desk, writer) as controller:
        await desk.say(make_running(running=1, first_seen_ms=LATER_MS))
        await eventually(lambda: writer.begun)
        await pulls[0].end()
        # The other replica gets this one, and writes it before our write arrives.
        await desk.say(make_running(running=2, first_seen_ms=LATER_MS))
        stopping = asyncio.create_task(controller.stop_taking())
        await eventually(lambda: not controller.writes_statuses())
        writer.go.set()
        await stopping
        await controller.finish()
    assert writer.written == [1, 2]


@pytest.mark.parametrize("newest", [2, 3])
async def test_a_late_write_of_an_overtaken_verdict_is_looked_after_too(
    nats_server: NatsServer, taken: list[Delivery], newest: int, pulls: list[ObservedPullLoop]
) -> None:
    """What overtook it waits here; a still newer one (3) has gone to the other replica."""
    writer = HeldWriter()
    async with a_desk(nats_server.url) as desk, a_controller(desk, writer) as controller:
        await desk.say(make_running(running=1, first_seen_ms=LATER_MS))
        await eventually(lambda: writer.begun)
        await desk.say(make_running(running=2, first_seen_ms=LATER_MS))
        await eventually(lambda: running_of(taken[-1]) == 2)
        await pulls[0].end()
        if newest == 3:
            await desk.say(make_running(running=3, first_seen_ms=LATER_MS))
        stopping = asyncio.create_task(controller.stop_taking())
        await eventually(lambda: not controller.writes_statuses())
        writer.go.set()
        await stopping
        await controller.finish()
    assert writer.written == [1, newest]


async def test_junk_in_verdicts_is_acknowledged_and_what_it_replaced_may_come_again(
    nats_server: NatsServer,
) -> None:
    """Also when a worker meets it that looks, after a write, for a newer verdict."""
    writer = HeldWriter()
    async with a_desk(nats_server.url) as desk, a_controller(desk, writer):
        verdict = make_running(running=1, first_seen_ms=LATER_MS)
        await desk.say(verdict)
        await eventually(lambda: writer.begun)
        for subject in (subjects.verdict(verdict.gang_id), subjects.verdict("junk")):
            await store_answer(desk.bus, subjects.VERDICTS, subject)
        writer.go.set()
        await desk.all_written()
        assert writer.written == [1]
        await desk.say(make_running(running=2, first_seen_ms=LATER_MS))
        await desk.all_written()
    assert writer.written == [1, 2]
