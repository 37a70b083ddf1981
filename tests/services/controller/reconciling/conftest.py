"""A small cluster that serves, and a client of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.kube.client import KubeClient
from shared.kube.credentials import load
from tests.support.faulty_cluster import FaultyCluster
from tutti.cluster.embedded import Settings


@pytest.fixture
async def cluster() -> AsyncIterator[FaultyCluster]:
    async with FaultyCluster(Settings(nodes=0)) as running:
        yield running


@pytest.fixture
async def client(cluster: FaultyCluster, tmp_path: Path) -> AsyncIterator[KubeClient]:
    credentials = await load(str(cluster.kubeconfig(tmp_path / "kubeconfig")), "")
    async with KubeClient(credentials) as connected:
        yield connected
