"""Looking for other schedulers with few rights, and the Lease by which we are seen, on a real API
server."""

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.leases import Lease
from shared.kube.resources import LEASES
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.kubeconfig import write_kubeconfig
from tutti.api.failures import Refusal
from tutti.lifeline import start_ticks
from tutti.up.other_schedulers import OWN_LEASE, check_cluster
from tutti.up.presence import AnotherIsHere, Presence, identity, is_dead
from tutti.up.user_rights import is_on_this_machine

integration = pytest.mark.integration
NAMES = ("tutti", "volcano")


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[KubeClient]:
    async with KubeClient(await load(str(control_plane.admin_kubeconfig))) as opened:
        yield opened


async def own_lease(client: KubeClient) -> Lease | None:
    page = await client.list(
        LEASES, Lease, namespace=OWN_LEASE[0], field_selector=f"metadata.name={OWN_LEASE[1]}"
    )
    found = [item for item in page.items if isinstance(item, Lease)]
    return found[0] if found else None


@integration
async def test_everything_is_seen_with_an_administrators_rights(client: KubeClient) -> None:
    checked = await check_cluster(client, NAMES)
    assert not checked.unreadable
    # The API server itself holds one.
    assert any(lease.metadata.name.startswith("apiserver-") for lease in checked.leases)
    assert abs((checked.now - datetime.now(UTC)).total_seconds()) < 5


@integration
async def test_without_rights_it_says_what_it_cannot_see_and_goes_on(
    control_plane: ControlPlane,
) -> None:
    kubeconfig = await asyncio.to_thread(control_plane.kubeconfig_for, "nobody-in-particular")
    async with KubeClient(await load(str(kubeconfig))) as client:
        checked = await check_cluster(client, NAMES)
    assert checked.unreadable == (
        "no right to list configmaps",
        "no right to list deployments.apps",
        "no right to list leases.coordination.k8s.io",
    )
    assert not checked.leases


@integration
async def test_credentials_that_the_cluster_does_not_know_are_said_to_be_that(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    stranger = write_kubeconfig(
        tmp_path / "stranger.kubeconfig",
        server=control_plane.server,
        ca_pem=control_plane.authority.certificate_pem,
        credentials="no-token-of-this-cluster",
    )
    async with KubeClient(await load(str(stranger))) as client:
        with pytest.raises(Refusal, match="does not know these credentials"):
            await check_cluster(client, NAMES)


@integration
async def test_the_lease_stands_while_we_are_here_and_goes_with_us(client: KubeClient) -> None:
    said: list[str] = []
    presence = Presence(client, said.append, identity())
    await presence.announce(take_over=False)
    found = await own_lease(client)
    assert found is not None
    assert found.spec.holder_identity == identity()
    await presence.announce(take_over=False)
    renewed = await own_lease(client)
    assert renewed is not None
    assert renewed.spec.acquire_time == found.spec.acquire_time
    assert renewed.spec.renew_time != found.spec.renew_time
    await presence.leave()
    assert await own_lease(client) is None
    assert not said


@integration
async def test_a_lease_of_another_holder_stays_unless_it_is_old_or_taken_over(
    client: KubeClient,
) -> None:
    other = Presence(client, lambda _: None, "elsewhere/x/1/1")
    await other.announce(take_over=False)
    ours = Presence(client, lambda _: None, identity())
    with pytest.raises(AnotherIsHere, match="elsewhere/x/1/1"):
        await ours.announce(take_over=False)
    late = Presence(
        client,
        lambda _: None,
        identity(),
        wall=lambda: datetime.now(UTC) + timedelta(seconds=61),
    )
    await late.announce(take_over=False)
    with pytest.raises(AnotherIsHere):
        await other.announce(take_over=False)
    await other.announce(take_over=True)
    await ours.leave()
    found = await own_lease(client)
    assert found is not None
    assert found.spec.holder_identity == "elsewhere/x/1/1"
    await other.leave()
    assert await own_lease(client) is None


@integration
async def test_without_the_right_to_write_the_lease_it_says_so_and_goes_on(
    control_plane: ControlPlane,
) -> None:
    kubeconfig = await asyncio.to_thread(control_plane.kubeconfig_for, "nobody-in-particular")
    said: list[str] = []
    async with KubeClient(await load(str(kubeconfig))) as client:
        presence = Presence(client, said.append, identity())
        await presence.announce(take_over=False)
        await presence.keep()
        await presence.leave()
    assert len(said) == 1
    assert said[0].startswith(
        "no Lease kube-system/tutti, other tutti up cannot detect this one: 403"
    )


def test_a_process_of_this_machine_that_has_ended_is_known_to_be_dead() -> None:
    host, machine, pid, ticks = identity().rsplit("/", 3)
    assert not is_dead(identity())
    assert is_dead(f"{host}/{machine}/{pid}/{int(ticks) + 1}")
    assert is_dead(f"{host}/{machine}/{2**22 + 1}/{ticks}")


@pytest.mark.parametrize("holder", ["", "a/b", "host/other-machine/1/1", "host/x/y/z"])
def test_a_process_elsewhere_is_never_known_to_be_dead(holder: str) -> None:
    assert not is_dead(holder)


def test_the_start_of_a_process_distinguishes_it_from_the_next_one_with_its_pid() -> None:
    assert start_ticks(os.getpid())
    assert start_ticks(os.getpid()) != start_ticks(1)
    assert start_ticks(2**22 + 1) is None


@pytest.mark.parametrize(
    ("server", "local"),
    [
        ("https://127.0.0.1:6443", True),
        ("https://localhost:6443/prefix", True),
        ("https://[::1]:6443", True),
        ("https://203.0.113.7:6443", False),
        ("https://", False),
    ],
)
async def test_the_api_is_registered_where_the_api_server_is_on_this_machine(
    server: str, *, local: bool
) -> None:
    """A registration that an API server does not reach keeps its namespaces from being deleted."""
    assert await is_on_this_machine(server) == local
