"""A small cluster that serves, and a client of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.kube.client import KubeClient
from shared.kube.credentials import load
from tutti.cluster.embedded import EmbeddedCluster, Settings


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(Settings(nodes=0)) as running:
        yield running


@pytest.fixture
async def client(cluster: EmbeddedCluster, tmp_path: Path) -> AsyncIterator[KubeClient]:
    credentials = await load(str(cluster.kubeconfig(tmp_path / "kubeconfig")), "")
    async with KubeClient(credentials) as connected:
        yield connected
