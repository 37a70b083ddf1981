"""Registering with both API servers: only when reached, once for all replicas, and never left."""

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
import pytest

from services.admission_webhook import registration
from services.admission_webhook.config import WebhookSettings
from services.admission_webhook.core.configurations import (
    MEMBERS,
    NAME,
    Address,
    probe_configuration,
    read_members,
)
from services.admission_webhook.reachability import (
    LEFT_BEHIND_MS,
    is_loopback,
    is_reached,
    remove_left_behind,
)
from services.admission_webhook.registration import Registrar
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import NotFound
from shared.kube.objects import KubeStruct, ObjectMeta
from shared.kube.resources import (
    MUTATING_WEBHOOKS,
    PODGROUPS_INCUBATOR,
    VALIDATING_WEBHOOKS,
    Resource,
)
from shared.runtime.serving_certificate import CA_FILE, ensure_certificate
from tests.services.admission_webhook.reviews import NAMES, a_pod_group
from tests.services.admission_webhook.serving import HOST, Webhook
from tests.support.background import in_background
from tests.support.free_ports import free_port
from tests.support.waiting import eventually

#: Subject of the certificates.
TITLE = "tutti-admission"
RESOURCES = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)


class _Client(KubeStruct, frozen=True, kw_only=True):
    url: str = ""
    ca_bundle: str = ""


class _Hook(KubeStruct, frozen=True, kw_only=True):
    name: str
    client_config: _Client


class Configuration(KubeStruct, frozen=True, kw_only=True):
    """What is looked at of a stored configuration."""

    metadata: ObjectMeta = ObjectMeta()
    webhooks: tuple[_Hook, ...] = ()


class Replica:
    """A registrar, and what it said last."""

    def __init__(
        self,
        client: KubeClient,
        name: str,
        address: Address,
        ca: Callable[[], str],
        *,
        configurations: str = NAME,
    ) -> None:
        self.state = "nothing said yet"
        self.registrar = Registrar(
            client,
            WebhookSettings(scheduler_name=NAMES, configuration_name=configurations),
            name,
            address,
            ca,
            on_state=self._say,
        )

    @property
    def registered(self) -> bool:
        """Whether it says that it is."""
        return not self.state

    def _say(self, why: str) -> None:
        self.state = why

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Replica"]:
        """Run it; leaving kills it where it stands."""
        async with in_background(self.registrar.run(), name="registrar"):
            yield self


@pytest.fixture
async def webhook(tmp_path: Path) -> AsyncIterator[Webhook]:
    async with Webhook(tmp_path / "certs").running() as running:
        yield running


def replica(client: KubeClient, webhook: Webhook, name: str = "host/webhook-0") -> Replica:
    return Replica(client, name, Address(url=webhook.url), lambda: webhook.certificate.ca)


async def stored(client: KubeClient, resource: Resource = VALIDATING_WEBHOOKS) -> list[str]:
    """Names of all configurations."""
    page = await client.list(resource, Configuration)
    return [found.metadata.name for found in page.items]


async def ours(client: KubeClient, resource: Resource = VALIDATING_WEBHOOKS) -> Configuration:
    return await client.get(resource, NAME, Configuration)


async def members(client: KubeClient) -> list[str]:
    try:
        return sorted(read_members((await ours(client)).metadata.annotations))
    except NotFound:
        return []


async def is_defaulted(client: KubeClient) -> bool:
    """Whether the API server asks us: a group that is created (tried only) gets its queue."""
    reply = await client.create(
        PODGROUPS_INCUBATOR,
        a_pod_group(PODGROUPS_INCUBATOR, minMember=1),
        namespace="default",
        dry_run=True,
    )
    return b'"queue":"default"' in reply.body


async def test_a_webhook_that_is_reached_is_registered_until_it_leaves(
    client: KubeClient, webhook: Webhook
) -> None:
    async with replica(client, webhook).running() as one:
        await eventually(lambda: one.registered)
        await eventually(lambda: is_defaulted(client))
        for resource in RESOURCES:
            assert await stored(client, resource) == [NAME], "and no probe is left"
        await one.registrar.leave()
        for resource in RESOURCES:
            assert await stored(client, resource) == []
        await one.registrar.leave()
        one.registrar.wake()
        await asyncio.sleep(0)
    assert await stored(client) == []


async def test_two_suites_with_configurations_of_their_own_leave_each_others_alone(
    client: KubeClient, webhook: Webhook, tmp_path: Path
) -> None:
    async with Webhook(tmp_path / "second").running() as other:
        second = Replica(
            client,
            "host/webhook-0",
            Address(url=other.url),
            lambda: other.certificate.ca,
            configurations="second-admission",
        )
        async with replica(client, webhook).running() as first, second.running():
            await eventually(lambda: first.registered and second.registered)
            for resource in RESOURCES:
                assert sorted(await stored(client, resource)) == ["second-admission", NAME]
            await second.registrar.leave()
            for resource in RESOURCES:
                assert await stored(client, resource) == [NAME]


async def test_a_webhook_that_is_not_reached_is_not_registered_and_says_so(
    client: KubeClient, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "is_reached", partial(is_reached, within_s=0.3))
    url = f"https://{HOST}:{free_port()}"
    nowhere = Replica(client, "host/webhook-0", Address(url=url), lambda: webhook.certificate.ca)
    async with nowhere.running():
        await eventually(lambda: "does not reach" in nowhere.state)
    for resource in RESOURCES:
        assert await stored(client, resource) == []


async def test_an_address_whose_certificate_the_ca_did_not_sign_is_not_reached(
    client: KubeClient, webhook: Webhook, tmp_path: Path
) -> None:
    await asyncio.to_thread(ensure_certificate, tmp_path / "other", TITLE, [HOST])
    ca = (tmp_path / "other" / CA_FILE).read_text()
    reached = await is_reached(
        client, Address(url=webhook.url), [ca], probe="t", namespace="default", within_s=0.3
    )
    assert not reached


async def test_what_a_killed_predecessor_left_is_replaced(
    client: KubeClient, webhook: Webhook, tmp_path: Path
) -> None:
    async with Webhook(tmp_path / "before").running() as before:
        async with replica(client, before).running() as dead:
            await eventually(lambda: dead.registered)
        assert webhook.url not in (await ours(client)).metadata.annotations[MEMBERS]
        async with replica(client, webhook).running() as one:
            await eventually(lambda: one.registered)
    assert await members(client) == ["host/webhook-0"]
    for hook in (await ours(client)).webhooks:
        assert hook.client_config.url.startswith(webhook.url)


async def test_a_dead_neighbours_place_is_taken_and_a_living_ones_is_not(
    client: KubeClient, webhook: Webhook, tmp_path: Path
) -> None:
    other = Webhook(tmp_path / "other")
    async with other.running():
        async with replica(client, other, "neighbour").running() as neighbour:
            await eventually(lambda: neighbour.registered)
        async with replica(client, webhook, "me").running() as me:
            await eventually(lambda: "neighbour is registered" in me.state)
            assert await members(client) == ["neighbour"]
    async with replica(client, webhook, "me").running() as me:
        await eventually(lambda: me.registered)
        assert await members(client) == ["me"]
        hook = (await ours(client)).webhooks[0]
        assert hook.client_config.url.startswith(webhook.url)


async def test_the_standby_takes_over_when_the_leader_leaves(
    client: KubeClient, webhook: Webhook, tmp_path: Path
) -> None:
    async with Webhook(tmp_path / "other").running() as other:
        first, second = replica(client, other, "first"), replica(client, webhook, "second")
        async with first.running(), second.running():
            await eventually(lambda: first.registered != second.registered)
            holder, waiting = (first, second) if first.registered else (second, first)
            await holder.registrar.leave()
            await eventually(lambda: waiting.registered)


async def test_a_configuration_removed_by_a_user_is_registered_again(
    client: KubeClient, webhook: Webhook
) -> None:
    async with replica(client, webhook).running() as one:
        await eventually(lambda: one.registered)
        for resource in RESOURCES:
            await client.delete(resource, NAME)
            await eventually(partial(_is_there, client, resource))


async def test_a_new_ca_is_registered_with_the_api_server(
    client: KubeClient, webhook: Webhook, tmp_path: Path
) -> None:
    cas = [webhook.certificate.ca]
    one = Replica(client, "host/webhook-0", Address(url=webhook.url), lambda: "".join(cas))
    async with one.running():
        await eventually(lambda: one.registered)
        await asyncio.to_thread(ensure_certificate, tmp_path / "next", TITLE, [HOST])
        cas.append((tmp_path / "next" / CA_FILE).read_text())
        one.registrar.wake()

        async def trusted() -> bool:
            bundle = (await ours(client)).webhooks[0].client_config.ca_bundle
            return cas[1].strip() in base64.b64decode(bundle).decode()

        await eventually(trusted)
        assert one.registered


async def test_replicas_behind_a_service_share_one_registration(
    client: KubeClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """There is no network to Services here, so the proof is taken as given."""

    async def given(*_: object, **__: object) -> bool:
        return True

    monkeypatch.setattr(registration, "is_reached", given)
    service = Address(service_namespace="tutti", service_name="webhook")
    cas = []
    for name in ("a", "b"):
        await asyncio.to_thread(ensure_certificate, tmp_path / name, TITLE, ["webhook.tutti.svc"])
        cas.append((tmp_path / name / CA_FILE).read_text())
    first = Replica(client, "pod-0", service, lambda: cas[0])
    second = Replica(client, "pod-1", service, lambda: cas[1])
    async with first.running(), second.running():
        await eventually(lambda: _are(client, ["pod-0", "pod-1"]))
        bundle = base64.b64decode((await ours(client)).webhooks[0].client_config.ca_bundle)
        for ca in cas:
            assert ca.strip() in bundle.decode()
        await first.registrar.leave()
        assert await members(client) == ["pod-1"]
        await second.registrar.leave()
        assert await stored(client) == []


async def test_forgotten_probes_are_removed_and_fresh_ones_are_not(
    client: KubeClient, webhook: Webhook
) -> None:
    probe = probe_configuration(
        "tutti-admission-probe-gone", "n", Address(url=webhook.url), [webhook.certificate.ca]
    )
    await client.create(MUTATING_WEBHOOKS, probe)
    now_ms = time.time_ns() // 1_000_000
    await remove_left_behind(client, now_ms)
    assert await stored(client, MUTATING_WEBHOOKS) == ["tutti-admission-probe-gone"]
    await remove_left_behind(client, now_ms + 2 * LEFT_BEHIND_MS)
    assert await stored(client, MUTATING_WEBHOOKS) == []


async def test_an_api_server_that_is_away_is_said(tmp_path: Path, webhook: Webhook) -> None:
    kubeconfig = tmp_path / "nowhere"
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://{HOST}:{free_port()}"}}],
        "users": [{"name": "u", "user": {}}],
    }
    kubeconfig.write_bytes(msgspec.yaml.encode(config))
    async with (
        KubeClient(await load(str(kubeconfig))) as client,
        replica(client, webhook).running() as one,
    ):
        await eventually(lambda: HOST in one.state)


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("https://127.0.0.1:8443", True),
        ("https://[::1]:8443", True),
        ("https://localhost", True),
        ("https://10.0.0.1:8443", False),
        ("https://webhook.example.org", False),
        ("", False),
    ],
)
def test_a_loopback_address_is_known_as_one(url: str, loopback: bool) -> None:
    assert is_loopback(url) == loopback


async def _is_there(client: KubeClient, resource: Resource) -> bool:
    return await stored(client, resource) == [NAME]


async def _are(client: KubeClient, names: list[str]) -> bool:
    return await members(client) == names
