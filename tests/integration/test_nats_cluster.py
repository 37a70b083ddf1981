"""A NATS cluster of three that loses its leader: decisions and their outcomes continue."""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from shared.bus.connection import Bus
from shared.bus.errors import NoAnswer
from shared.bus.setup import ensure_streams
from shared.contracts import subjects
from shared.contracts.codec import decode_outcome
from shared.contracts.outcomes import Outcome
from tests.services.binder.harness import MemoryPods, a_binder
from tests.services.gang_planner.running import Hall, a_hall
from tests.support.nats_cluster import NatsCluster, a_nats_cluster
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

#: An election takes NATS some seconds; an append that is not answered asks again within ten.
RESUMED_S: Final = 20.0

logger = logging.getLogger(__name__)


@asynccontextmanager
async def a_site(folder: Path) -> AsyncIterator[tuple[NatsCluster, Hall, MemoryPods]]:
    """Two planners and a binder on three servers, every stream on all of them."""
    async with a_nats_cluster(folder) as cluster:
        await _set_up(cluster)
        pods = MemoryPods()
        async with (
            a_hall(cluster.url, folder, nodes=16, replicas=3) as hall,
            a_binder(cluster.url, pods),
        ):
            await hall.start(0)
            await hall.wait_active()
            await hall.start(1)
            await hall.wait_ready(2)
            yield cluster, hall, pods


async def _set_up(cluster: NatsCluster) -> None:
    """Set it up as soon as the servers have found each other."""
    bus = await Bus.connect(cluster.url, name="setup")

    async def done() -> bool:
        try:
            await ensure_streams(bus, replicas=3)
        except NoAnswer:
            return False
        return True

    try:
        await eventually(done, timeout_s=30, because="the servers agree on a leader")
    finally:
        await bus.close()


async def _bound(hall: Hall, gang: str) -> None:
    """Wait until the outcome of a gang's decision says that both its members are bound."""

    async def answered() -> bool:
        try:
            stored = await hall.bus.get_last(subjects.OUTCOMES, f"outcomes.uid-{gang}.*")
        except NoAnswer:
            return False
        record = decode_outcome(stored.payload) if stored is not None else None
        return isinstance(record, Outcome) and record.bound == 2

    await eventually(answered, timeout_s=RESUMED_S, because=f"{gang} is bound")


async def test_decisions_resume_when_the_leader_dies_and_when_the_next_one_does(
    tmp_path: Path,
) -> None:
    async with a_site(tmp_path) as (cluster, hall, pods):
        await hall.watcher.submit("first", 2)
        await _bound(hall, "first")
        for gang in ("second", "third"):
            name = await eventually(lambda: cluster.leader(hall.bus, subjects.DECISIONS))
            await cluster.servers[name].kill()
            began_s = time.monotonic()
            await hall.watcher.submit(gang, 2)
            await _bound(hall, gang)
            logger.info("%s bound %.1f s after %s died", gang, time.monotonic() - began_s, name)
            await cluster.servers[name].start()
        decided = [one.gang for one in await hall.decisions()]
        assert sorted(decided) == ["default/first", "default/second", "default/third"]
        assert len(pods.bound) == 6
        # An election outlasts a lease, so the standby may have taken over; no process crashes.
        assert {process.returncode for process in hall.processes.values()} == {None}
