"""The registration on a real API server, where it must do no harm."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from services.api import registration
from services.api.core.registration_objects import NAME, ServerAddress
from services.api.registration import Registrar
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import NotFound
from shared.kube.objects import KubeObject
from shared.kube.resources import API_SERVICES, SERVICES
from tests.controlplane.cluster import ControlPlane
from tests.services.api.scene import free_port
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

SERVICE = "unreached-api"


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[KubeClient]:
    credentials = await load(str(control_plane.admin_kubeconfig), "")
    async with KubeClient(credentials) as client:
        yield client
        with suppress(NotFound):
            await client.delete(API_SERVICES, NAME)
        with suppress(NotFound):
            await client.delete(SERVICES, SERVICE, namespace="kube-system")


def a_registrar(
    client: KubeClient, control_plane: ControlPlane, states: list[str], *, external: str
) -> Registrar:
    address = ServerAddress(
        namespace="kube-system", service=SERVICE, port=free_port(), external=external
    )
    ca = control_plane.authority.certificate_pem.decode()
    return Registrar(client, "test/api-0", address, "", lambda: ca, states.append)


async def _exist(client: KubeClient) -> tuple[bool, bool]:
    found = []
    for resource, name, namespace in (
        (API_SERVICES, NAME, ""),
        (SERVICES, SERVICE, "kube-system"),
    ):
        try:
            await client.get(resource, name, KubeObject, namespace=namespace)
        except NotFound:
            found.append(False)
        else:
            found.append(True)
    return found[0], found[1]


async def test_outside_a_cluster_a_process_that_is_not_reached_leaves_no_registration(
    client: KubeClient, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An APIService that is not available would keep every namespace from being deleted."""
    monkeypatch.setattr(registration, "AVAILABLE_S", 1.0)
    states: list[str] = []
    registrar = a_registrar(client, control_plane, states, external="127.0.0.1")
    running = asyncio.create_task(registrar.run())
    try:
        await eventually(lambda: states, timeout_s=30, because="it was tried")
    finally:
        running.cancel()
    assert states[0].startswith("the API server does not reach this process: ")
    assert registrar.attempted.is_set()
    assert await _exist(client) == (False, False)


async def test_in_a_cluster_the_registration_stays_until_the_replica_leaves(
    client: KubeClient, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "AVAILABLE_S", 0.2)
    states: list[str] = []
    registrar = a_registrar(client, control_plane, states, external="")
    running = asyncio.create_task(registrar.run())
    try:
        await eventually(lambda: states, timeout_s=30, because="it was tried")
        assert await _exist(client) == (True, False)
        await registrar.leave()
        await registrar.leave()
        assert await _exist(client) == (False, False)
    finally:
        running.cancel()
