"""Evictions that a binder takes from a real nats-server: in time, and whatever the clocks show."""

import time

import msgspec
import pytest

from tests.services.binder.core.samples import make_release
from tests.services.binder.harness import MemoryPods, a_binder, a_desk, all_acknowledged, answered
from tutti.nats_server import NatsServer

pytestmark = pytest.mark.integration


async def test_an_eviction_for_another_gang_is_proven_and_carried_out(
    nats_server: NatsServer,
) -> None:
    eviction = msgspec.structs.replace(make_release(2), via="eviction")
    pods = MemoryPods()
    async with a_desk(nats_server.url) as desk, a_binder(nats_server.url, pods):
        seq = await desk.decide(eviction)
        outcome = await answered(desk, seq)
        assert (outcome.reason, outcome.evicted) == ("", 2)
        assert sorted(pods.proven) == ["w-0", "w-1"]
        assert pods.deleted == {"w-0", "w-1"}
        await all_acknowledged(desk)


async def test_an_eviction_that_is_past_its_deadline_is_not_started(
    nats_server: NatsServer,
) -> None:
    eviction = msgspec.structs.replace(make_release(1), via="eviction", until_ms=1)
    pods = MemoryPods()
    async with a_desk(nats_server.url) as desk, a_binder(nats_server.url, pods):
        seq = await desk.decide(eviction)
        outcome = await answered(desk, seq)
        assert (outcome.reason, outcome.members[0].result) == ("Expired", "skipped")
        assert (pods.proven, pods.deleted) == ([], set())
        await all_acknowledged(desk)


@pytest.mark.parametrize("ahead_ms", [-60_000, 60_000])
async def test_an_eviction_is_in_time_whatever_the_planners_clock_says(
    nats_server: NatsServer, ahead_ms: int
) -> None:
    decided_ms = time.time_ns() // 1_000_000 + ahead_ms
    release = make_release(1)
    eviction = msgspec.structs.replace(
        release,
        via="eviction",
        until_ms=decided_ms + 30_000,
        cycle=msgspec.structs.replace(release.cycle, now_ms=decided_ms),
    )
    pods = MemoryPods()
    async with a_desk(nats_server.url) as desk, a_binder(nats_server.url, pods):
        outcome = await answered(desk, await desk.decide(eviction))
        assert (outcome.reason, outcome.evicted) == ("", 1)
        await all_acknowledged(desk)
