"""Appending to a real CLUSTER: epochs, packing, snapshots at boundaries, and when not to write."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from services.watcher.cluster_publisher import ClusterPublisher
from services.watcher.reporting import Reporting
from services.watcher.state import WatcherState
from shared.bus.connection import Bus
from shared.bus.errors import Superseded
from shared.bus.jetstream_api import ApiAnswer
from shared.bus.setup import ensure_streams
from shared.contracts import codec, subjects
from shared.contracts.cluster import StreamOpened, Synced
from shared.telemetry.metrics import Metrics
from shared.telemetry.tracers import tracer_for
from tests.services.controller.core.samples import make_verdict
from tests.services.watcher.core.objects import pod
from tests.services.watcher.running import Reader
from tests.support.full_stream import a_full_stream
from tests.support.junk import store_answer, store_copy
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer

pytestmark = pytest.mark.integration


@pytest.fixture
async def bus(nats_server: NatsServer) -> AsyncIterator[Bus]:
    connected = await Bus.connect(nats_server.url, name="watcher")
    await ensure_streams(connected)
    yield connected
    await connected.close()


@pytest.fixture
def state() -> WatcherState:
    return WatcherState(["volcano"], podgroup_controller=True)


@pytest.fixture
def publishing(state: WatcherState) -> ClusterPublisher:
    return ClusterPublisher(
        state,
        watcher="w",
        now_ms=lambda: time.time_ns() // 1_000_000,
        reporting=Reporting(
            Metrics("watcher"), tracer_for("", service="watcher", instance="watcher-0")
        ),
    )


@asynccontextmanager
async def running(
    publishing: ClusterPublisher, ill: Callable[[], str] = str
) -> AsyncIterator[asyncio.Task[None]]:
    """`ClusterPublisher.run` in the background; its exception, if any, is the test's to look
    for."""
    task: asyncio.Task[None] = asyncio.create_task(publishing.run(ill), name="publishing")
    yield task
    task.cancel()
    await asyncio.wait([task])


async def opened(publishing: ClusterPublisher, bus: Bus) -> int:
    """Take over and open, with nothing listed in between."""
    await publishing.take_over(bus)
    return await publishing.open()


async def test_an_epoch_is_the_sequence_of_its_first_record(
    bus: Bus, publishing: ClusterPublisher
) -> None:
    # Record 1 is the stream's own, record 2 the take-over's, an epoch that is never filled.
    assert await opened(publishing, bus) == 3
    _, *both = await Reader(bus).records()
    assert [(one.epoch, one.watcher) for one in both if isinstance(one, Synced)] == [
        (2, "w"),
        (3, "w"),
    ]


async def test_records_that_another_watcher_sends_after_the_take_over_are_refused(
    bus: Bus, state: WatcherState, publishing: ClusterPublisher
) -> None:
    """Its list may be younger than ours, and our epoch would revert what it publishes."""
    reporting = Reporting(Metrics("watcher"), tracer_for("", service="watcher", instance="w"))
    old = ClusterPublisher(state, watcher="old", now_ms=lambda: 1, reporting=reporting)
    await opened(old, bus)
    await publishing.take_over(bus)
    before = await Reader(bus).records()
    state.cluster_state.observe("pods", pod("seen-by-the-old-one"))
    async with running(old) as task:
        old.poke()
        await asyncio.wait([task], timeout=30)
        assert superseded(task)
    assert await Reader(bus).records() == before


async def test_an_epoch_opens_behind_a_log_whose_records_have_all_aged_out(
    bus: Bus, publishing: ClusterPublisher
) -> None:
    await bus.publish("cluster.pod", b"")
    await bus.api("STREAM.PURGE.CLUSTER", None, ApiAnswer)
    assert await opened(publishing, bus) == (await bus.stream_info(subjects.CLUSTER)).last_seq
    stored = await bus.get_last(subjects.CLUSTER, subjects.CLUSTER_SYNCED)
    assert stored is not None
    synced = codec.decode_cluster(stored.payload)
    assert isinstance(synced, Synced)
    assert synced.epoch == stored.seq


async def test_changes_that_come_together_travel_together(
    bus: Bus, state: WatcherState, publishing: ClusterPublisher
) -> None:
    await opened(publishing, bus)
    for number in range(500):
        state.cluster_state.observe("pods", pod(f"p{number}"))
    async with running(publishing):
        publishing.poke()
        boundary = await publishing.boundary()
    assert boundary.cluster_seq == 4
    (record,) = (await Reader(bus).records())[3:4]
    assert not isinstance(record, Synced | StreamOpened)
    assert len(record.changed) == 500


async def test_changes_of_known_pods_wait_for_more_but_not_with_news_or_a_snapshot(
    bus: Bus, state: WatcherState, publishing: ClusterPublisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.watcher.cluster_publisher._CALM_FLUSHES_BURST", 1)
    monkeypatch.setattr("services.watcher.cluster_publisher._CALM_FLUSHES_PER_S", 0.01)
    monkeypatch.setattr("services.watcher.cluster_publisher.RENEWAL_S", 1000.0)
    await opened(publishing, bus)
    reader = Reader(bus)

    async def published() -> list[list[str]]:
        """The objects of each record so far."""
        return [
            [f"{one.uid}@{one.resource_version}" for one in record.changed]
            for record in await reader.records()
            if not isinstance(record, Synced | StreamOpened)
        ]

    async def as_many_as(number: int) -> None:
        async def so_many() -> bool:
            return len(await published()) == number

        await eventually(so_many)

    async with running(publishing), asyncio.timeout(10):
        for version in (1, 2):  # The first is news, the second has the one token.
            state.cluster_state.observe("pods", pod("a", version, node=f"n{version}"))
            publishing.poke()
            await as_many_as(version)
        for version in (3, 4):
            state.cluster_state.observe("pods", pod("a", version, node=f"n{version}"))
            publishing.poke()
            await asyncio.sleep(0.02)
        state.cluster_state.observe("pods", pod("b"))
        publishing.poke()
        await as_many_as(3)
        state.cluster_state.observe("pods", pod("b", 5, node="n5"))
        publishing.poke()
        await publishing.boundary()
    assert await published() == [["a@1"], ["a@2"], ["a@4", "b@1"], ["b@5"]]


async def test_a_snapshot_equals_the_log_up_to_the_sequence_that_it_names(
    bus: Bus, state: WatcherState, publishing: ClusterPublisher
) -> None:
    """Snapshots are taken again and again while objects appear, change and go."""
    await opened(publishing, bus)
    boundaries = []
    async with running(publishing):
        for version in range(1, 400):
            uid = f"p{version * 7 % 23}"
            if version % 5 == 0:
                state.cluster_state.forget("pods", "pod", uid, version)
            else:
                state.cluster_state.observe("pods", pod(uid, version, node=f"n{version % 3}"))
            publishing.poke()
            if version % 20 == 0:
                boundaries.append(await publishing.boundary())
            elif version % 3 == 0:
                await asyncio.sleep(0)
    assert len({boundary.cluster_seq for boundary in boundaries}) > 10
    records = await Reader(bus).records()
    for boundary in boundaries:
        replayed: dict[str, object] = {}
        for record in records[: boundary.cluster_seq]:
            if isinstance(record, Synced | StreamOpened):
                continue
            for gone in record.removed:
                replayed.pop(gone.uid, None)
            replayed.update({changed.uid: changed for changed in record.changed})
        assert replayed == {one.uid: one for one in boundary.frozen.objects["pod"]}


async def test_synced_is_renewed_only_while_the_cluster_state_is_current(
    bus: Bus, publishing: ClusterPublisher
) -> None:
    await opened(publishing, bus)
    reader = Reader(bus)
    trouble = "pods is failing"
    asked = 0

    def ill() -> str:
        nonlocal asked
        asked += 1
        return trouble

    async def renewals() -> int:
        return sum(isinstance(one, Synced) for one in await reader.records()) - 2

    async with running(publishing, ill):
        # The second question comes after the first flush that a renewal was due in has ended.
        await eventually(lambda: asked > 1)
        assert await renewals() == 0
        trouble = ""
        await eventually(renewals)


async def test_a_process_that_was_overtaken_ends_and_has_written_nothing(
    bus: Bus, state: WatcherState, publishing: ClusterPublisher
) -> None:
    await opened(publishing, bus)
    await bus.publish("cluster.synced", codec.encode(Synced(epoch=4, at_ms=1, watcher="other")))
    await eventually(lambda: count(bus, 4))
    state.cluster_state.observe("pods", pod("a"))
    async with running(publishing) as task:
        publishing.poke()
        await asyncio.wait([task], timeout=30)
        assert superseded(task)
    assert await count(bus, 4)


async def test_a_recreated_log_is_not_written_even_when_its_length_is_right(
    nats_server: NatsServer, bus: Bus, state: WatcherState, publishing: ClusterPublisher
) -> None:
    """The fence compares sequences, and by chance they may fit: the stream must be the same one."""
    await opened(publishing, bus)
    await nats_server.kill()
    await asyncio.to_thread(shutil.rmtree, nats_server.data_dir / "store")
    await nats_server.start()
    await bus.wait_connected()
    await ensure_streams(bus)
    foreign = codec.encode(Synced(epoch=2, at_ms=1, watcher="other"))
    await bus.publish("cluster.synced", foreign)
    await eventually(lambda: count(bus, 2))
    state.cluster_state.observe("pods", pod("a"))
    async with running(publishing) as task:
        publishing.poke()
        await asyncio.wait([task], timeout=30)
        assert superseded(task)
    assert await count(bus, 2)


async def count(bus: Bus, messages: int) -> bool:
    """Whether CLUSTER holds exactly so many messages."""
    return (await bus.stream_info(subjects.CLUSTER)).last_seq == messages


def superseded(task: asyncio.Task[None]) -> bool:
    """Whether the task ended because another watcher writes."""
    error = task.exception() if task.done() else None
    return isinstance(error, ExceptionGroup) and error.subgroup(Superseded) is not None


async def test_a_full_log_is_an_alarm_and_nothing_is_dropped(
    bus: Bus, state: WatcherState, publishing: ClusterPublisher
) -> None:
    await opened(publishing, bus)
    async with running(publishing):
        async with a_full_stream(bus, subjects.CLUSTER):
            state.cluster_state.observe("pods", pod("a"))
            publishing.poke()
            assert "CLUSTER takes nothing" in await eventually(lambda: publishing.stuck)
        state.cluster_state.observe("pods", pod("b"))
        publishing.poke()
        await eventually(lambda: not publishing.stuck, timeout_s=5)
        boundary = await publishing.boundary()
    published = {
        changed.uid
        for record in (await Reader(bus).records())[: boundary.cluster_seq]
        if not isinstance(record, Synced | StreamOpened)
        for changed in record.changed
    }
    assert published == {"a", "b"}


async def test_an_epoch_opens_behind_junk_and_later_junk_is_written_behind(
    bus: Bus, state: WatcherState, publishing: ClusterPublisher
) -> None:
    """The last message of CLUSTER may bear a subject that is none of CLUSTER's."""
    verdict = codec.encode(make_verdict())
    await bus.request(subjects.verdict("g"), verdict, timeout_s=10.0)
    source = (subjects.VERDICTS, subjects.CONTROLLER_CONSUMER)
    assert await store_copy(bus, subjects.CLUSTER, *source, subjects.CLUSTER_SYNCED) == 2
    await publishing.take_over(bus)
    await store_answer(bus, subjects.CLUSTER, subjects.CLUSTER_SYNCED)
    assert await publishing.open() == 5
    await store_answer(bus, subjects.CLUSTER, subjects.cluster("pod"))
    state.cluster_state.observe("pods", pod("later"))
    async with running(publishing) as task:
        publishing.poke()
        boundary = await publishing.boundary()
        assert not task.done()
    assert boundary.cluster_seq == 7


async def test_behind_junk_another_watcher_is_still_met(
    bus: Bus, state: WatcherState, publishing: ClusterPublisher
) -> None:
    reporting = Reporting(Metrics("watcher"), tracer_for("", service="watcher", instance="w"))
    old = ClusterPublisher(state, watcher="old", now_ms=lambda: 1, reporting=reporting)
    await opened(old, bus)
    await store_answer(bus, subjects.CLUSTER, subjects.cluster("pod"))
    await opened(publishing, bus)
    state.cluster_state.observe("pods", pod("seen-by-the-old-one"))
    async with running(old) as task:
        old.poke()
        await asyncio.wait([task], timeout=30)
        assert superseded(task)
