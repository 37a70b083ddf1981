"""An embedded cluster with its four nodes, and a client of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api_suite.client import Client, connected
from tests.support.faulty_cluster import FaultyCluster
from tutti.cluster.embedded import Settings

CRDS_DIR = Path(__file__).parents[3] / "deploy" / "crds"


@pytest.fixture
async def cluster() -> AsyncIterator[FaultyCluster]:
    settings = Settings(crds=(CRDS_DIR,), pod_start_s=0, pod_stop_s=0)
    async with FaultyCluster(settings) as running:
        yield running


@pytest.fixture
async def api(cluster: FaultyCluster, tmp_path: Path) -> AsyncIterator[Client]:
    async with connected(cluster.kubeconfig(tmp_path / "kubeconfig")) as client:
        yield client


@pytest.fixture
def pods() -> str:
    return "/api/v1/namespaces/default/pods"
