"""Secrets on a real API server, made with the account's own token and rights; and what they hold,
used by a real nats-server.
"""

import asyncio
import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from shared.bus.connection import Bus
from shared.bus.permissions import PROVISION, users
from shared.bus.setup import ensure_streams
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import Forbidden
from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.support.nats_server import running_nats_server
from tests.support.rbac import account, service_account
from tutti.provision import names
from tutti.provision.command import provision as command
from tutti.provision.plan import BadSecret
from tutti.provision.stores import provision_secrets

pytestmark = pytest.mark.integration

NOW = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.fixture
async def kubeconfig(control_plane: ControlPlane, api: RawClient, namespace: str) -> Path:
    """Of the account that the chart's Job has."""
    rights = account("provision").rights
    return await service_account(
        control_plane, api, "provision", rights, namespace=namespace, release="one"
    )


@pytest.fixture
async def client(kubeconfig: Path) -> AsyncIterator[KubeClient]:
    async with KubeClient(await load(str(kubeconfig)), user_agent="test") as made:
        yield made


async def provisioned(
    client: KubeClient, namespace: str, now: datetime, *more: str, release: str = "one"
) -> list[str]:
    said: list[str] = []
    await provision_secrets(
        client,
        users(),
        release=release,
        namespace=namespace,
        more_addresses=more,
        say=said.append,
        now=now,
    )
    return said


def path_of(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets/one-nats-{name}"


async def content(api: RawClient, namespace: str, name: str) -> dict[str, bytes]:
    found = await api.get(path_of(namespace, name))
    return {key: base64.b64decode(value) for key, value in found["data"].items()}


async def test_secrets_are_made_once_and_renewed_in_time(
    client: KubeClient, api: RawClient, namespace: str
) -> None:
    first = await provisioned(client, namespace, NOW)
    assert first == [f"created Secret {namespace}/one-nats-{name}" for name in names(users())]
    assert await provisioned(client, namespace, NOW) == []

    late = NOW + timedelta(days=3400)
    said = await provisioned(client, namespace, late)
    assert f"renewed next.crt, next.key of Secret {namespace}/one-nats-ca" in said
    assert f"renewed ca.crt of Secret {namespace}/one-nats-binder" in said
    assert f"renewed ca.crt, tls.crt, tls.key of Secret {namespace}/one-nats-server" in said
    await provisioned(client, namespace, late + timedelta(days=2))
    assert sorted(await content(api, namespace, "ca")) == ["ca.crt", "ca.key", "former.crt"]


async def test_an_invalid_secret_stops_the_provisioning(
    client: KubeClient, api: RawClient, namespace: str
) -> None:
    await provisioned(client, namespace, NOW)
    await api.patch(path_of(namespace, "binder"), {"data": {"seed": "bm9uc2Vuc2U="}})
    await api.delete(path_of(namespace, "server"))

    with pytest.raises(BadSecret, match=f"Secret {namespace}/one-nats-binder, key seed"):
        await provisioned(client, namespace, NOW)


async def test_two_that_provision_at_once_agree(
    client: KubeClient, api: RawClient, namespace: str
) -> None:
    await asyncio.gather(*(provisioned(client, namespace, NOW) for _ in range(2)))

    assert await provisioned(client, namespace, NOW) == []


async def test_a_provisioned_server_admits_its_users_by_tls_and_no_other_client(
    client: KubeClient, api: RawClient, namespace: str, tmp_path: Path
) -> None:
    await provisioned(client, namespace, datetime.now(UTC), "127.0.0.1")
    for name in ("server", PROVISION):
        (tmp_path / name).mkdir()
        for key, value in (await content(api, namespace, name)).items():
            (tmp_path / name / key).write_bytes(value)
    at = tmp_path / "server"
    config = (
        f'tls {{ cert_file: "{at}/tls.crt", key_file: "{at}/tls.key", ca_file: "{at}/ca.crt" }}\n'
        f"{(at / 'authorization.conf').read_text()}"
    )
    async with running_nats_server(extra_config=config) as server:
        bus = await Bus.connect(
            server.url,
            name="setup",
            user=PROVISION,
            credentials=str(tmp_path / PROVISION / "seed"),
            tls_ca=str(tmp_path / PROVISION / "ca.crt"),
            patience_s=10.0,
        )
        try:
            assert await ensure_streams(bus)
        finally:
            await bus.close()


async def test_the_command_says_what_it_made(kubeconfig: Path, namespace: str) -> None:
    flags = [f"--kubeconfig={kubeconfig}", f"--namespace={namespace}", "--name=one"]
    done = await asyncio.to_thread(CliRunner().invoke, command, flags)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[0] == f"created Secret {namespace}/one-nats-ca"


async def test_other_secrets_are_none_of_its_business(client: KubeClient, namespace: str) -> None:
    with pytest.raises(Forbidden):
        await provisioned(client, namespace, NOW, release="two")
