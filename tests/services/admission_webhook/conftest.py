"""Both clusters: a fresh embedded one for each test, the session's real control plane."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from tests.controlplane.binaries import ensure_binaries
from tests.controlplane.fixtures import CRDS_DIR
from tutti.cluster.embedded import EmbeddedCluster, Settings


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the real binaries before the first test's timeout runs."""
    if any("admission_webhook" in item.nodeid and "real" in item.nodeid for item in session.items):
        ensure_binaries()


@pytest.fixture(
    params=[
        # tests/api_suite shows in every run that it answers as the real one.
        pytest.param("embedded", marks=pytest.mark.certify),
        pytest.param("real", marks=pytest.mark.integration),
    ]
)
async def kubeconfig(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Path]:
    """A kubeconfig that may do everything, of a cluster with our CRDs and no webhooks."""
    if request.param == "real":
        path = request.getfixturevalue("control_plane").admin_kubeconfig
        yield path
        async with KubeClient(await load(str(path))) as client:
            for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
                await client.request("DELETE", resource.path())
        return
    async with EmbeddedCluster(Settings(nodes=0, crds=(CRDS_DIR,))) as cluster:
        yield cluster.kubeconfig(tmp_path / "kubeconfig")


@pytest.fixture
async def client(kubeconfig: Path) -> AsyncIterator[KubeClient]:
    """A client of the cluster."""
    async with KubeClient(await load(str(kubeconfig))) as client:
        yield client
