"""Namespaces that opted in, on a real API server (the embedded one has no CEL): they are closed for
pods of gangs while no webhook answers, and for nothing else.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from services.admission_webhook.config import WebhookSettings
from services.admission_webhook.core.configurations import NAME, Address
from services.admission_webhook.registration import Registrar
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import KubeError, NotFound
from shared.kube.objects import KubeStruct, ObjectMeta
from shared.kube.resources import (
    CLUSTER_ROLES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    PODS,
    VALIDATING_WEBHOOKS,
)
from tests.controlplane.cluster import ControlPlane
from tests.services.admission_webhook.reviews import NAMES, Object, a_pod
from tests.services.admission_webhook.serving import Webhook
from tests.support.background import in_background
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration]

GANG = {"scheduling.k8s.io/group-name": "g"}


class Hook(KubeStruct, frozen=True, kw_only=True):
    name: str


class Configuration(KubeStruct, frozen=True, kw_only=True):
    """What is looked at of a stored configuration."""

    metadata: ObjectMeta = ObjectMeta()
    webhooks: tuple[Hook, ...] = ()


class Tried(KubeStruct, frozen=True, kw_only=True):
    class Spec(KubeStruct, frozen=True, kw_only=True):
        scheduler_name: str = ""

    spec: Spec = Spec()


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[KubeClient]:
    """A client of the real API server, which has no webhooks afterwards."""
    async with KubeClient(await load(str(control_plane.admin_kubeconfig))) as client:
        yield client
        for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
            await client.request("DELETE", resource.path())


@pytest.fixture
async def namespace(client: KubeClient) -> AsyncIterator[str]:
    """A namespace that has opted in."""
    name = f"opted-{uuid4().hex[:8]}"
    metadata = {"name": name, "labels": {"tutti.dev/schedule": "true"}}
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    yield name
    await client.delete(NAMESPACES, name)


async def scheduler_of(
    client: KubeClient, namespace: str, notes: Object | None = None, **metadata: Any
) -> str:
    """The scheduler name that a pod would be stored with. Raises KubeError when it is refused."""
    pod = a_pod("default-scheduler", notes)
    pod["metadata"] |= metadata
    reply = await client.create(PODS, pod, namespace=namespace, dry_run=True)
    return msgspec.json.decode(reply.body, type=Tried).spec.scheduler_name


def registrar(client: KubeClient, webhook: Webhook, owner: str = "") -> Registrar:
    return Registrar(
        client,
        WebhookSettings(scheduler_name=NAMES, owner_cluster_role=owner),
        "host/webhook-0",
        Address(url=webhook.url),
        lambda: webhook.certificate.ca,
        on_state=lambda _: None,
    )


async def test_only_pods_of_gangs_are_refused_while_no_webhook_answers(
    client: KubeClient, namespace: str, tmp_path: Path
) -> None:
    async def is_taken() -> bool:
        return await scheduler_of(client, namespace, GANG) == "tutti"

    async with (
        Webhook(tmp_path).running() as webhook,
        in_background(registrar(client, webhook).run(), name="registrar"),
    ):
        await eventually(is_taken)
    with pytest.raises(KubeError, match=r"opt-in\.tutti\.dev"):
        await scheduler_of(client, namespace, GANG)
    assert await scheduler_of(client, namespace) == "default-scheduler"
    assert await scheduler_of(client, "default", GANG) == "default-scheduler"


async def test_pods_of_operators_objects_are_taken_where_the_namespace_asks_for_their_gangs(
    client: KubeClient, namespace: str, tmp_path: Path
) -> None:
    owners = {
        kind: {"apiVersion": version, "kind": kind, "name": "o", "uid": "o", "controller": True}
        for version, kind in (("batch/v1", "Job"), ("apps/v1", "ReplicaSet"), ("v1", "Pod"))
    }
    replica = {"leaderworkerset.sigs.k8s.io/group-index": "0"}

    async def of(kind: str, **metadata: Any) -> str:
        return await scheduler_of(client, namespace, ownerReferences=[owners[kind]], **metadata)

    async def is_taken() -> bool:
        return await of("Job") == "tutti"

    async with (
        Webhook(tmp_path).running() as webhook,
        in_background(registrar(client, webhook).run(), name="registrar"),
    ):
        await eventually(lambda: _hooks(client))
        assert await of("Job") == "default-scheduler", "only the other label is set"
        labels: Object = {"metadata": {"labels": {"tutti.dev/gang": "all"}}}
        await client.patch(NAMESPACES, namespace, labels)
        await eventually(is_taken)
        assert await of("Pod") == "tutti"
        assert await of("ReplicaSet") == "default-scheduler"
        assert await of("ReplicaSet", labels=replica) == "tutti"
    with pytest.raises(KubeError, match=r"opt-in-owned\.tutti\.dev"):
        await of("Job")
    assert await of("ReplicaSet") == "default-scheduler"


async def test_an_installed_webhook_leaves_the_namespaces_closed_until_its_owner_is_deleted(
    client: KubeClient, namespace: str, tmp_path: Path
) -> None:
    # Not an installation's name: another test may have applied its rights to this control plane.
    owner = f"tutti-admission-webhook-{uuid4().hex[:8]}"
    role = {"apiVersion": CLUSTER_ROLES.api_version, "kind": "ClusterRole"}
    await client.create(CLUSTER_ROLES, {**role, "metadata": {"name": owner}, "rules": []})
    try:
        async with Webhook(tmp_path).running() as webhook:
            registered = registrar(client, webhook, owner)
            async with in_background(registered.run(), name="registrar"):
                await eventually(lambda: _hooks(client))
                await registered.leave()
                assert await _hooks(client) == ["opt-in.tutti.dev", "opt-in-owned.tutti.dev"]
                with pytest.raises(NotFound):
                    await client.get(VALIDATING_WEBHOOKS, NAME, Configuration)
            found = await client.get(MUTATING_WEBHOOKS, NAME, Configuration)
            assert [one.name for one in found.metadata.owner_references] == [owner]
            again = registrar(client, webhook, owner)
            async with in_background(again.run(), name="registrar"):

                async def is_back() -> bool:
                    return len(await _hooks(client)) > 2

                await eventually(is_back)
    finally:
        await client.delete(CLUSTER_ROLES, owner)


async def _hooks(client: KubeClient) -> list[str]:
    """Names of the mutating webhooks that are registered."""
    try:
        found = await client.get(MUTATING_WEBHOOKS, NAME, Configuration)
    except NotFound:
        return []
    return [one.name for one in found.webhooks]
