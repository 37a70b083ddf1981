"""Services may be started before NATS is set up, as a chart's are: they wait, and none ends."""

import asyncio
from pathlib import Path

import pytest

from shared.bus.connection import Bus
from shared.bus.setup import ensure_streams
from tests.controlplane.cluster import ControlPlane
from tests.support.nats_server import running_nats_server
from tests.support.service_process import a_service
from tests.support.waiting import eventually

pytestmark = pytest.mark.integration

SERVICES = ("watcher", "gang_planner", "binder", "controller")


@pytest.mark.timeout(120)
async def test_services_that_are_there_before_their_streams_wait_for_them(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    all_ready = asyncio.Barrier(len(SERVICES))

    async def serve(service: str, bus: Bus, url: str) -> None:
        flags = [f"--kubeconfig={control_plane.admin_kubeconfig}"]
        if service == "gang_planner":
            flags = []
        if service == "controller":
            flags.append("--controllers=status,podgroup")
        log = tmp_path / service
        # Streams are made when the slowest of them waits for one.
        async with a_service(service, bus, url, log, *flags, ready_s=90.0):
            await all_ready.wait()

    def waits(service: str) -> bool:
        log = tmp_path / service
        return log.exists() and "stream DECISIONS does not exist yet" in log.read_text()

    async with running_nats_server() as nats:
        bus = await Bus.connect(nats.url, name="test")
        try:
            async with asyncio.TaskGroup() as group:
                for service in SERVICES:
                    group.create_task(serve(service, bus, nats.url), name=service)
                await eventually(lambda: waits("binder") and waits("gang_planner"), timeout_s=60.0)
                await ensure_streams(bus)
        finally:
            await bus.close()
