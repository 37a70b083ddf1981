"""A real watcher on the real control plane, and what it publishes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.bus.connection import Bus
from shared.bus.setup import ensure_streams
from tests.controlplane.cluster import ControlPlane
from tests.services.watcher.running import Reader, WatcherProcess, running_watcher
from tutti.nats_server import NatsServer


@pytest.fixture
async def reader(nats_server: NatsServer) -> AsyncIterator[Reader]:
    bus = await Bus.connect(nats_server.url, name="reader")
    await ensure_streams(bus)
    yield Reader(bus)
    await bus.close()


@pytest.fixture
async def watcher(
    tmp_path: Path, nats_server: NatsServer, control_plane: ControlPlane, reader: Reader
) -> AsyncIterator[WatcherProcess]:
    kubeconfig = control_plane.admin_kubeconfig
    async with running_watcher(tmp_path, nats_server.url, kubeconfig, "watcher-0") as only:
        await reader.wait_epoch(1)
        yield only
