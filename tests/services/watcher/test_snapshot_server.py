"""Requests for snapshots, on a real bus: when they are answered, and by which watcher."""

import asyncio
import time

import pytest

from services.watcher.cluster_publisher import ClusterPublisher
from services.watcher.reporting import Reporting
from services.watcher.service import SnapshotServer
from services.watcher.state import WatcherState
from shared.bus import questions
from shared.bus.connection import Bus, Message
from shared.bus.setup import ensure_streams
from shared.contracts import codec, subjects
from shared.contracts.cluster import SnapshotPage, SnapshotRequest
from shared.telemetry.metrics import Metrics
from shared.telemetry.tracers import tracer_for
from tests.services.watcher.core.objects import pod
from tutti.nats_server import NatsServer

pytestmark = pytest.mark.integration


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def test_a_request_before_the_epoch_opens_is_answered_after_it_though_another_is_frozen(
    nats_server: NatsServer,
) -> None:
    """Found by tests/chaos: a planner read of the new epoch and asked before the new watcher
    listened; only the frozen one got the question, and the planner waited five seconds for it.
    """
    bus = await Bus.connect(nats_server.url, name="watcher")
    try:
        await ensure_streams(bus)

        async def frozen(message: Message) -> None:
            """It has the question and will not answer."""

        mute = await bus.subscribe(subjects.ASK_SNAPSHOT, frozen)
        reporting = Reporting(Metrics("watcher"), tracer_for("", service="watcher", instance="w"))
        state = WatcherState(["volcano"], podgroup_controller=True)
        state.cluster_state.observe("pods", pod("a", 1))
        publishing = ClusterPublisher(state, watcher="w", now_ms=now_ms, reporting=reporting)
        subscription = await SnapshotServer(publishing, now_ms, reporting).serve(bus)
        asked = asyncio.create_task(
            questions.ask(
                bus,
                subjects.ASK_SNAPSHOT,
                SnapshotRequest(),
                codec.decode_snapshot_answer,
                timeout_s=5.0,
            ),
            name="asks",
        )
        await publishing.take_over(bus)
        epoch = await publishing.open()
        writing = asyncio.create_task(publishing.run(str), name="publishing")
        answer = await asked
        assert isinstance(answer, SnapshotPage)
        assert answer.epoch == epoch
        writing.cancel()
        await asyncio.wait([writing])
        await subscription.close()
        await mute.close()
    finally:
        await bus.close()
