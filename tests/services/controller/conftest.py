"""Both clusters, for controllers that need nothing but an API server."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import TooManyRequests
from shared.kube.resources import (
    CRONJOBS_VOLCANO,
    JOBFLOWS,
    JOBS_VOLCANO,
    NAMESPACES,
    PODGROUPS_VOLCANO,
)
from tests.controlplane.binaries import ensure_binaries
from tests.services.controller.playing import names_of
from tests.support.waiting import eventually
from tutti.cluster.embedded import EmbeddedCluster, Settings
from tutti.manifests.crds import manifests


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the real binaries before the first test's timeout runs."""
    if any("either" in getattr(item, "fixturenames", ()) for item in session.items):
        ensure_binaries()


@pytest.fixture(
    params=[
        # tests/api_suite shows in every run that it answers as the real one.
        pytest.param("embedded", marks=pytest.mark.certify),
        pytest.param("real", marks=pytest.mark.integration),
    ]
)
async def either(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[KubeClient]:
    """A client that may do everything, of a cluster with our CRDs."""
    if request.param == "real":
        path = request.getfixturevalue("control_plane").admin_kubeconfig
        async with KubeClient(await load(str(path))) as client:
            yield client
        return
    async with EmbeddedCluster(Settings(nodes=0, crds=tuple(manifests()))) as cluster:
        path = cluster.kubeconfig(tmp_path / "kubeconfig")
        async with KubeClient(await load(str(path))) as client:
            yield client


@pytest.fixture
async def place(either: KubeClient) -> AsyncIterator[str]:
    """A namespace of the test's own.

    It keeps no object for which a later test's controller would work: the real control plane has no
    controller that empties it.
    """
    name = f"test-{uuid.uuid4().hex[:10]}"
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await either.create(NAMESPACES, manifest)
    yield name
    await eventually(lambda: _emptied(either, name))
    await either.delete(NAMESPACES, name)


async def _emptied(client: KubeClient, namespace: str) -> bool:
    """Delete the namespace's objects of our kinds; False when it must be tried again."""
    try:
        for resource in (CRONJOBS_VOLCANO, JOBFLOWS, JOBS_VOLCANO, PODGROUPS_VOLCANO):
            for name in await names_of(client, resource, namespace):
                await client.delete(resource, name, namespace=namespace)
    except TooManyRequests:
        return False  # A server that has just been given the kinds is not ready to list them.
    return True
