"""The registration on a real API server, where it must do no harm."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from services.api import registration
from services.api.core.registration_objects import (
    ServerAddress,
    api_service,
    external_service,
)
from services.api.registration import Registrar
from shared.contracts.visibility_resources import API_SERVICE, MANAGED_BY, TUTTI, TUTTI_UP
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import NotFound
from shared.kube.objects import KubeObject
from shared.kube.resources import API_SERVICES, SERVICES
from tests.controlplane.cluster import ControlPlane
from tests.support.free_ports import free_port
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

SERVICE = "unreached-api"


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[KubeClient]:
    credentials = await load(str(control_plane.admin_kubeconfig), "")
    async with KubeClient(credentials) as client:
        yield client
        with suppress(NotFound):
            await client.delete(API_SERVICES, API_SERVICE)
        with suppress(NotFound):
            await client.delete(SERVICES, SERVICE, namespace="kube-system")


def a_registrar(
    client: KubeClient, control_plane: ControlPlane, states: list[str], *, external: str
) -> Registrar:
    ca = control_plane.authority.certificate_pem.decode()
    address = an_address(external)
    return Registrar(client, "test/api-0", address, "", lambda: ca, states.append)


def an_address(external: str) -> ServerAddress:
    return ServerAddress(
        namespace="kube-system", service=SERVICE, port=free_port(), external=external
    )


async def attempt(registrar: Registrar, states: list[str]) -> str:
    """The result of the first attempt to register."""
    running = asyncio.create_task(registrar.run())
    try:
        await eventually(lambda: states, timeout_s=30, because="it was tried")
    finally:
        running.cancel()
    return states[0]


async def _exist(client: KubeClient) -> tuple[bool, bool]:
    found = []
    for resource, name, namespace in (
        (API_SERVICES, API_SERVICE, ""),
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
    reported = await attempt(registrar, states)
    assert reported.startswith("the API server does not reach this process: ")
    assert registrar.attempted.is_set()
    assert await _exist(client) == (False, False)


async def test_outside_a_cluster_a_process_that_was_never_reached_ends_its_attempts(
    client: KubeClient, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on kind, whose API server runs in a container."""
    monkeypatch.setattr(registration, "AVAILABLE_S", 0.5)
    monkeypatch.setattr(registration, "_RETRY_S", 0.1)
    states: list[str] = []
    await a_registrar(client, control_plane, states, external="127.0.0.1").run()
    assert len(states) == 3
    assert states[-1].endswith("; it is not tried again")
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


async def test_outside_a_cluster_objects_of_the_chart_are_not_changed(
    client: KubeClient, control_plane: ControlPlane
) -> None:
    """Also when no replica of the chart is reached, and when a Service has the name of ours."""
    states: list[str] = []
    ca = control_plane.authority.certificate_pem.decode()
    registrar = a_registrar(client, control_plane, states, external="127.0.0.1")
    service = external_service(an_address("10.0.0.1"))
    service["metadata"]["labels"][MANAGED_BY] = "Helm"
    await client.create(SERVICES, service, namespace="kube-system")
    assert await attempt(registrar, states) == (
        f"Service kube-system/{SERVICE} exists and is not of tutti up"
    )
    states.clear()
    await client.create(API_SERVICES, api_service(an_address(""), {"other": ca}, "", ""))
    assert await attempt(registrar, states) == (
        f"{API_SERVICE} belongs to Service kube-system/{SERVICE}: standing by"
    )
    await registrar.leave()
    assert await _exist(client) == (True, True)


async def test_a_replica_of_the_chart_takes_over_what_a_killed_tutti_up_left_behind(
    client: KubeClient, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "AVAILABLE_S", 0.2)
    ca = control_plane.authority.certificate_pem.decode()
    left = api_service(an_address("127.0.0.1"), {"dead": ca}, "", "")
    assert left["metadata"]["labels"][MANAGED_BY] == TUTTI_UP
    await client.create(API_SERVICES, left)
    states: list[str] = []
    address = ServerAddress(namespace="kube-system", service="tutti-api", port=443)
    registrar = Registrar(client, "test/api-0", address, "", lambda: ca, states.append)
    await attempt(registrar, states)
    taken = await client.get(API_SERVICES, API_SERVICE, KubeObject)
    assert taken.metadata.labels[MANAGED_BY] == TUTTI
    assert "dead" not in taken.metadata.annotations["visibility.tutti.dev/members"]


@pytest.mark.parametrize("recreated", [True, False], ids=["another object", "another port"])
async def test_a_process_that_stops_leaves_the_registration_of_the_next_one(
    client: KubeClient, control_plane: ControlPlane, *, recreated: bool
) -> None:
    """Both have the identity of their `tutti up`."""
    states: list[str] = []
    registrar = a_registrar(client, control_plane, states, external="127.0.0.1")
    running = asyncio.create_task(registrar.run())
    await registrar.attempted.wait()
    running.cancel()
    ca = control_plane.authority.certificate_pem.decode()
    following = api_service(an_address("127.0.0.1"), {"test/api-0": ca}, "", "")
    if recreated:
        stored = await client.get(API_SERVICES, API_SERVICE, dict[str, Any])
        following["spec"] = stored["spec"]
        await client.delete(API_SERVICES, API_SERVICE)
        await client.create(API_SERVICES, following)
    else:
        await client.patch(API_SERVICES, API_SERVICE, {"spec": following["spec"]})
    await registrar.leave()
    assert await _exist(client) == (True, True)


async def test_a_process_that_stops_deletes_its_own_registration(
    client: KubeClient, control_plane: ControlPlane
) -> None:
    states: list[str] = []
    registrar = a_registrar(client, control_plane, states, external="127.0.0.1")
    running = asyncio.create_task(registrar.run())
    await registrar.attempted.wait()
    running.cancel()
    await registrar.leave()
    assert await _exist(client) == (False, False)
