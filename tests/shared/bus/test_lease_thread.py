"""A lease that is renewed while its process computes."""

import asyncio
import time

import pytest

from shared.bus.connection import Bus
from shared.bus.lease import PATIENCE_S, Lease, LeaseThread
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer

pytestmark = [pytest.mark.integration, pytest.mark.real_server_only]


def a_lease(server: NatsServer, changes: list[bool]) -> tuple[LeaseThread, "asyncio.Task[None]"]:
    """One that runs, and what it reports."""

    async def connect() -> Bus:
        return await Bus.connect(server.url, name="planner", instance="thread")

    lease = LeaseThread(connect, "planner", "a", lambda: True)
    return lease, asyncio.create_task(lease.run(changes.append))


@pytest.mark.slow
@pytest.mark.usefixtures("bus")
async def test_a_lease_outlives_a_loop_that_stands_still_for_longer_than_any_patience(
    nats_server: NatsServer,
) -> None:
    changes: list[bool] = []
    lease, task = a_lease(nats_server, changes)
    await lease.wait_held()
    others: list[bool] = []
    other, standing_by = a_lease(nats_server, others)
    await asyncio.sleep(0.5)
    busy_until = time.monotonic() + PATIENCE_S + 1.5
    while time.monotonic() < busy_until:  # a long cycle: pure Python, which never waits
        sum(range(1000))
    await asyncio.sleep(0.5)
    assert (changes, others) == ([True], [])
    await lease.release()
    await eventually(lambda: other.held)
    assert changes == [True, False]
    await task
    await other.release()
    await standing_by


@pytest.mark.slow
async def test_a_process_that_makes_no_progress_at_all_loses_the_lease(
    nats_server: NatsServer, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.bus.lease.STALLED_S", 0.0)  # as if its loop had hung for long
    changes: list[bool] = []
    lease, _ = a_lease(nats_server, changes)
    other = Lease(bus, "planner", "b")
    standing_by = asyncio.create_task(other.run(changes.append))
    await eventually(lambda: other.held)
    assert changes == [True], "the other's"
    await lease.release()
    standing_by.cancel()
