"""The Lease by which users see that a planner lives: renewed while one does, by the API server's
clock.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from services.controller.planner_heartbeat import PlannerHeartbeat
from shared.bus.connection import Bus
from shared.bus.lease import Lease as NatsLease
from shared.bus.setup import ensure_streams
from shared.contracts import subjects
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.leases import PLANNER_LEASE, Lease, micro_time
from shared.kube.resources import LEASES
from tests.support.waiting import eventually
from tutti.cluster.embedded import EmbeddedCluster, Settings
from tutti.nats_server import NatsServer
from tutti.up.user_rights import install_planner_lease
from tutti.why.planner_liveness import PlannerLiveness, read_liveness

NAMESPACE = "kube-system"
RENEWAL_S = 0.05


class Scene:
    """A planner's lease in NATS, a status controller's heartbeat, a user."""

    def __init__(self, bus: Bus, client: KubeClient) -> None:
        self.client = client
        self.planner = NatsLease(bus, subjects.PLANNER_LEASE_KEY, "gang-planner-0")
        self.writes_statuses = True
        self.heartbeat = PlannerHeartbeat(
            bus,
            client,
            namespace=NAMESPACE,
            scheduler_names=("tutti", "volcano"),
            writes_statuses=lambda: self.writes_statuses,
            renewal_s=RENEWAL_S,
        )

    async def lease(self) -> Lease:
        return await self.client.get(LEASES, PLANNER_LEASE, Lease, namespace=NAMESPACE)

    async def seen(self, *names: str) -> PlannerLiveness:
        return await read_liveness(self.client, names, look_again_s=1.0)

    async def age(self, seconds: float) -> None:
        """Make the last renewal that old, by the API server's clock."""
        lease = await self.lease()
        assert lease.spec.renew_time is not None
        renewed = micro_time(lease.spec.renew_time - timedelta(seconds=seconds))
        patch = {"spec": {"renewTime": renewed}}
        await self.client.patch(LEASES, PLANNER_LEASE, patch, namespace=NAMESPACE)


@pytest.fixture
async def scene(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[Scene]:
    async with EmbeddedCluster(Settings(nodes=0)) as cluster:
        path = str(cluster.kubeconfig(tmp_path / "kubeconfig"))
        bus = await Bus.connect(nats_server.url, name="controller")
        try:
            await ensure_streams(bus)
            async with KubeClient(await load(path)) as client:
                yield Scene(bus, client)
        finally:
            await bus.close()


@asynccontextmanager
async def running(*tasks: asyncio.Task[None]) -> AsyncIterator[None]:
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@pytest.mark.integration
async def test_while_a_planner_holds_its_lease_users_see_that_it_lives(scene: Scene) -> None:
    said: list[str] = []
    await install_planner_lease(scene.client, said.append)
    await install_planner_lease(scene.client, said.append)
    assert (await scene.seen()).state == "missing", "none has ever reported"
    heartbeat = asyncio.create_task(scene.heartbeat.run(), name="heartbeat")
    async with running(heartbeat):
        planner = asyncio.create_task(scene.planner.run(lambda _held: None), name="planner")
        async with running(planner):

            async def alive() -> bool:
                return (await scene.seen("tutti")).state == "alive"

            await eventually(alive)
            lease = await scene.lease()
            assert lease.spec.holder_identity == "gang-planner-0"
            # It looks as old as if another API server's clock were ahead: it is renewed, so it
            # lives.
            await scene.age(3_600)
            assert (await scene.seen()).state == "alive"
            scene.writes_statuses = False

            async def silent() -> bool:
                await scene.age(60)
                return (await scene.seen()).state == "silent"

            await eventually(silent, because="no binder writes what the planner decides")
            scene.writes_statuses = True
            await eventually(alive)
        # A planner that was killed renews no more.
        await eventually(silent)
    await scene.age(60)
    found = await scene.seen("volcano")
    assert found.state == "silent"
    assert found.silent_s is not None
    assert found.silent_s >= 59
    # One that serves other names answers for others only.
    assert (await scene.seen("other")).state == "silent"
