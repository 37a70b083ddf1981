"""The servers: a fresh embedded cluster or simulated API server for each test, one real control
plane for all.
"""

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest

from shared.kube.resources import CONFIGMAPS, NAMESPACES, PODS
from tests.api_suite.client import Client, connected
from tests.api_suite.objects import namespace as make_namespace
from tests.controlplane.binaries import ensure_binaries
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import ControlPlaneOptions
from tests.simulation.http_front import http_front
from tutti.cluster.embedded import EmbeddedCluster, Settings

#: Those beside the real one.
SERVERS = ("embedded", "simulated")
# What the embedded cluster does besides serving. (It has no disruption controller.)
CONTROLLERS = ("garbage-collector-controller", "namespace-controller")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the real binaries before the first test's timeout runs."""
    if any("api_suite" in item.nodeid and "real" in item.nodeid for item in session.items):
        ensure_binaries()


@pytest.fixture(scope="package")
def real_with_controllers() -> Iterator[ControlPlane]:
    with ControlPlane(ControlPlaneOptions(controllers=CONTROLLERS)) as running:
        yield running


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Ask each server; the simulation's only what the simulation asks of it."""
    if "server" in metafunc.fixturenames:
        simulated = metafunc.definition.get_closest_marker("simulated") is not None
        others = [name for name in SERVERS if name != "simulated" or simulated]
        real = pytest.param("real", marks=pytest.mark.integration)
        metafunc.parametrize("server", [*others, real], indirect=True)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def api(server: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Client]:
    """A client of the server under test, that may do everything."""
    if server == "real":
        kubeconfig = request.getfixturevalue("real_with_controllers").admin_kubeconfig
        async with connected(kubeconfig) as client:
            yield client
        return
    if server == "simulated":
        async with (
            http_front([NAMESPACES, PODS, CONFIGMAPS]) as front,
            aiohttp.ClientSession(front.url) as session,
        ):
            yield Client(session)
        return
    async with (
        EmbeddedCluster(Settings(nodes=0)) as cluster,
        connected(cluster.kubeconfig(tmp_path / "kubeconfig")) as client,
    ):
        yield client


@pytest.fixture
async def ns(api: Client) -> AsyncIterator[str]:
    """A namespace of the test's own."""
    name = f"suite-{uuid.uuid4().hex[:10]}"
    await api.create("/api/v1/namespaces", make_namespace(name))
    yield name
    await api.call("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def pods(ns: str) -> str:
    """The address of the namespace's pods."""
    return f"/api/v1/namespaces/{ns}/pods"


@pytest.fixture
def maps(ns: str) -> str:
    """The address of the namespace's ConfigMaps: objects without any behaviour."""
    return f"/api/v1/namespaces/{ns}/configmaps"
