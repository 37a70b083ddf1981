"""What one controller lacks keeps no other from working."""

import asyncio
from pathlib import Path

from services.controller.config import ControllerSettings
from services.controller.service import serve
from shared.bus.connection import Bus
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.resources import QUEUES_VOLCANO
from tests.services.controller.playing import read
from tests.support.faulty_cluster import FaultRule, FaultyCluster
from tests.support.standing import Stand
from tests.support.waiting import eventually
from tutti.cluster.embedded import Settings
from tutti.manifests.crds import manifests
from tutti.nats_server import NatsServer


async def test_a_kind_that_may_not_be_listed_keeps_only_its_own_controller_waiting(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    async with FaultyCluster(Settings(nodes=0, crds=tuple(manifests()))) as cluster:
        cluster.faults.rules = [FaultRule(verb="list", resource="hypernodes", status=403)]
        path = str(cluster.kubeconfig(tmp_path / "kubeconfig"))
        bus = await Bus.connect(nats_server.url, name="controller")
        given = ControllerSettings(controllers=("hypernode", "queue"), kubeconfig=path)
        stand = Stand("controller", "controller-0", given, bus)
        task = asyncio.create_task(serve(stand), name="controller")
        try:
            async with KubeClient(await load(path)) as client:
                await eventually(lambda: read(client, QUEUES_VOLCANO, "default"))
            assert not stand.ready.ready
        finally:
            task.cancel()
            await asyncio.wait([task])
            await bus.close()


async def test_the_controllers_are_ready_only_once_a_job_finds_the_default_queue(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    async with FaultyCluster(Settings(nodes=0, crds=tuple(manifests()))) as cluster:
        refusal = FaultRule(verb="create", resource="queues", status=403)
        cluster.faults.rules = [refusal]
        path = str(cluster.kubeconfig(tmp_path / "kubeconfig"))
        bus = await Bus.connect(nats_server.url, name="controller")
        given = ControllerSettings(controllers=("queue",), kubeconfig=path)
        stand = Stand("controller", "controller-0", given, bus)
        task = asyncio.create_task(serve(stand), name="controller")
        try:
            # Its caches were filled before it asked, and tried again since.
            await eventually(lambda: refusal.done >= 2)
            assert not stand.ready.ready
            cluster.faults.rules = []
            await eventually(lambda: stand.ready.ready)
            async with KubeClient(await load(path)) as client:
                assert await read(client, QUEUES_VOLCANO, "default") is not None
        finally:
            task.cancel()
            await asyncio.wait([task])
            await bus.close()
