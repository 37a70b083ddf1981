"""An embedded cluster that serves our CRDs, a client of it, and an OTLP endpoint."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.controlplane.client import RawClient
from tests.support.faulty_cluster import FaultyCluster
from tests.support.otlp_sink import OtlpSink, otlp_sink
from tutti.cluster.embedded import Settings
from tutti.manifests.crds import manifests


@pytest.fixture
async def cluster() -> AsyncIterator[FaultyCluster]:
    async with FaultyCluster(Settings(nodes=4, crds=tuple(manifests()))) as running:
        yield running


@pytest.fixture
def kubeconfig(cluster: FaultyCluster, tmp_path: Path) -> Path:
    return cluster.kubeconfig(tmp_path / "kubeconfig")


@pytest.fixture
async def client(kubeconfig: Path) -> AsyncIterator[RawClient]:
    async with RawClient(kubeconfig) as opened:
        yield opened


@pytest.fixture
async def sink() -> AsyncIterator[OtlpSink]:
    async with otlp_sink() as running:
        yield running
