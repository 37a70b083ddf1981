"""The client and the list-watch on a real kube-apiserver: what only it can prove."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shared.kinds.podgroup import PodGroup
from shared.kube.client import KubeClient
from shared.kube.credentials import Credentials, load
from shared.kube.errors import (
    Conflict,
    ConnectionLost,
    Forbidden,
    Invalid,
    NotFound,
    TooManyRequests,
    Unauthorized,
)
from shared.kube.kubeconfig import Access, read_access
from shared.kube.listwatch import Absent, Batch, Changes, Listed, ListWatch, Pace
from shared.kube.objects import Node, Pod
from shared.kube.requests import effective_requests
from shared.kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DISRUPTION_BUDGETS,
    NODES,
    PODS,
    Resource,
)
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import NodeShape, node_manifest, pod_manifest
from tests.support.open_crd import open_crd
from tests.support.waiting import eventually

pytestmark = pytest.mark.integration

#: Failures are few here; waiting for them to be retried would be most of the test.
QUICK = Pace(backoff_s_base=0.05, backoff_s_max=0.2, probe_s=0.1)


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncGenerator[KubeClient]:
    async with KubeClient(await load(str(kubeconfig))) as client:
        yield client


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[KubeClient]:
    async with connected(control_plane.admin_kubeconfig) as client:
        yield client


class View:
    """What a list-watch has shown so far: objects by name, and the batches."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.batches: list[Batch[Any]] = []

    async def sink(self, batch: Batch[Any]) -> None:
        self.batches.append(batch)
        match batch:
            case Listed():
                self.objects = {item.metadata.name: item for item in batch.objects}
            case Changes():
                for change in batch.changes:
                    if change.type == "DELETED":
                        self.objects.pop(change.object.metadata.name, None)
                    else:
                        self.objects[change.object.metadata.name] = change.object
            case Absent():
                self.objects = {}


@asynccontextmanager
async def viewing(
    client: KubeClient, resource: Resource, kind: type[Any], **options: Any
) -> AsyncGenerator[tuple[View, ListWatch[Any]]]:
    view = View()
    watch: ListWatch[Any] = ListWatch(client, resource, kind, pace=QUICK, **options)
    task = asyncio.create_task(watch.run(view.sink), name="list-watch")
    try:
        yield view, watch
    finally:
        task.cancel()
        await asyncio.wait([task])
    with pytest.raises(asyncio.CancelledError):
        task.result()


async def create_pod(client: KubeClient, namespace: str, name: str, **options: Any) -> Pod:
    await client.create(PODS, pod_manifest(name, **options), namespace=namespace)
    return await client.get(PODS, name, Pod, namespace=namespace)


async def test_a_pod_is_created_read_patched_and_deleted(
    client: KubeClient, namespace: str
) -> None:
    pod = await create_pod(client, namespace, "p", requests={"cpu": "1500m", "memory": "1Gi"})
    assert pod.metadata.version > 0
    assert dict(effective_requests(pod.spec)) == {"cpu": 1500, "memory": 2**30, "pods": 1}
    await client.patch(PODS, "p", {"metadata": {"annotations": {"a": "b"}}}, namespace=namespace)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    await client.patch(
        PODS,
        "p",
        {"status": {"conditions": [condition]}},
        namespace=namespace,
        subresource="status",
        patch_type="strategic",
    )
    patched = await client.get(PODS, "p", Pod, namespace=namespace)
    assert patched.metadata.annotations["a"] == "b"
    assert [item.reason for item in patched.status.conditions] == ["Unschedulable"]
    with pytest.raises(Conflict):
        await client.delete(PODS, "p", namespace=namespace, uid="another")
    await client.delete(PODS, "p", namespace=namespace, uid=pod.metadata.uid, grace_s=0)
    with pytest.raises(NotFound):
        await client.get(PODS, "p", Pod, namespace=namespace)


async def test_errors_are_what_the_api_server_says(client: KubeClient, namespace: str) -> None:
    await create_pod(client, namespace, "p")
    with pytest.raises(Conflict, match="already exists"):
        await client.create(PODS, pod_manifest("p"), namespace=namespace)
    with pytest.raises(Invalid) as invalid:
        await client.create(PODS, pod_manifest("UPPER"), namespace=namespace)
    assert "metadata.name" in [cause.field for cause in invalid.value.details.causes]


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({}, 201, ""),
        ({"uid": "another"}, 409, "Precondition failed"),
        ({"pod": "nobody"}, 404, "not found"),
        ({"node": "no-such-node"}, 201, ""),
    ],
)
async def test_a_binding_is_answered_as_the_platform_page_says(
    client: KubeClient, namespace: str, change: dict[str, str], code: int, message: str
) -> None:
    pod = await create_pod(client, namespace, "p")
    asked = {"pod": "p", "uid": pod.metadata.uid, "node": "node-1", **change}
    dry = await client.bind(
        namespace, asked["pod"], asked["uid"], asked["node"], {"a": "b"}, dry_run=True
    )
    assert dry.status == code
    assert (await client.get(PODS, "p", Pod, namespace=namespace)).spec.node_name == ""
    reply = await client.bind(namespace, asked["pod"], asked["uid"], asked["node"], {"a": "b"})
    assert reply.status == code
    assert message.encode() in reply.body
    bound = await client.get(PODS, "p", Pod, namespace=namespace)
    assert bound.spec.node_name == (asked["node"] if code == 201 else "")
    assert bound.metadata.annotations.get("a") == ("b" if code == 201 else None)


async def test_an_eviction_is_refused_by_a_budget(client: KubeClient, namespace: str) -> None:
    pod = await create_pod(client, namespace, "p", labels={"app": "x"})
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    budget = {"metadata": {"name": "b"}, "spec": spec}
    await client.create(DISRUPTION_BUDGETS, budget, namespace=namespace)
    await client.bind(namespace, "p", pod.metadata.uid, "node-1", {})
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await client.patch(PODS, "p", running, namespace=namespace, subresource="status")
    options = {"preconditions": {"uid": pod.metadata.uid}, "gracePeriodSeconds": 0}
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p", "namespace": namespace},
        "deleteOptions": options,
    }
    path, body = PODS.path(namespace, "p", "eviction"), msgspec.json.encode(eviction)
    refused = await client.post(path, body)
    with pytest.raises(TooManyRequests):
        refused.raise_for_status()
    await client.delete(DISRUPTION_BUDGETS, "b", namespace=namespace)
    assert (await client.post(path, body)).status == 201


async def test_a_list_comes_in_pages_and_by_selector(client: KubeClient, namespace: str) -> None:
    for number in range(5):
        await create_pod(client, namespace, f"p{number}", labels={"even": str(number % 2 == 0)})
    first = await client.list(PODS, Pod, namespace=namespace, limit=3)
    rest = await client.list(
        PODS, Pod, namespace=namespace, limit=3, continue_=first.metadata.continue_
    )
    assert [len(first.items), len(rest.items)] == [3, 2]
    assert rest.metadata.continue_ == ""
    even = await client.list(PODS, Pod, namespace=namespace, label_selector="even=True")
    assert [item.metadata.name for item in even.items] == ["p0", "p2", "p4"]


async def test_users_without_the_right_and_unknown_users_get_an_explanation(
    control_plane: ControlPlane,
) -> None:
    stranger = control_plane.kubeconfig_for("nobody-in-particular")
    async with connected(stranger) as client:
        with pytest.raises(Forbidden, match="nobody-in-particular"):
            await client.list(NODES, Node)
    access = read_access([stranger], must_exist=True)
    unknown = Access(origin="test", server=access.server, ca_pem=access.ca_pem, token="of-nobody")
    async with KubeClient(Credentials(unknown)) as client:
        with pytest.raises(Unauthorized):
            await client.list(NODES, Node)
    distrusted = Access(origin="test", server=access.server, token="of-nobody")
    async with KubeClient(Credentials(distrusted)) as client:
        with pytest.raises(ConnectionLost, match="CERTIFICATE_VERIFY_FAILED"):
            await client.list(NODES, Node)


async def test_a_service_accounts_token_is_read_from_its_file_and_followed(
    control_plane: ControlPlane, client: KubeClient, namespace: str, tmp_path: Path
) -> None:
    accounts = Resource("", "v1", "serviceaccounts", "ServiceAccount")
    await client.create(accounts, {"metadata": {"name": "robot"}}, namespace=namespace)
    kubeconfig = await asyncio.to_thread(
        control_plane.kubeconfig_for_service_account, namespace, "robot"
    )
    access = read_access([kubeconfig], must_exist=True)
    token = tmp_path / "token"
    token.write_text("expired")
    followed = msgspec.structs.replace(access, token="", token_file=str(token))
    now_s = 100.0
    credentials = Credentials(followed, monotonic_s=lambda: now_s)
    async with KubeClient(credentials) as robot:
        with pytest.raises(Unauthorized):
            await robot.list(NODES, Node)
        token.write_text(f"{access.token}\n")
        now_s += 2
        with pytest.raises(Forbidden, match=f"system:serviceaccount:{namespace}:robot"):
            await robot.list(NODES, Node)


async def test_a_watch_shows_what_happens_to_a_pod(client: KubeClient, namespace: str) -> None:
    await create_pod(client, namespace, "before")
    async with viewing(client, PODS, Pod, namespace=namespace) as (view, watch):
        await eventually(lambda: watch.state == "watching")
        assert set(view.objects) == {"before"}
        pod = await create_pod(client, namespace, "after")
        await eventually(lambda: "after" in view.objects)
        await client.bind(namespace, "after", pod.metadata.uid, "node-1", {})
        await eventually(lambda: view.objects["after"].spec.node_name == "node-1")
        await client.delete(PODS, "before", namespace=namespace, grace_s=0)
        await eventually(lambda: set(view.objects) == {"after"})
        assert watch.relists == 0
        versions = [
            batch.resource_version for batch in view.batches if not isinstance(batch, Absent)
        ]
        assert versions == sorted(versions)


async def test_a_long_list_comes_whole_from_several_pages(
    client: KubeClient, namespace: str
) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(25):
            group.create_task(create_pod(client, namespace, f"p{number}"), name=f"create-{number}")
    async with viewing(client, PODS, Pod, namespace=namespace, page_limit=4) as (view, _):
        await eventually(lambda: view.batches)
        assert len(view.objects) == 25


async def test_a_kind_comes_and_goes_with_its_crd(client: KubeClient, namespace: str) -> None:
    widgets = Resource("tests.tutti.dev", "v1", "widgets", "Widget")
    name = f"{widgets.plural}.{widgets.group}"
    crd = open_crd(widgets)
    widget = {"apiVersion": widgets.api_version, "kind": widgets.kind, "metadata": {"name": "w"}}
    async with viewing(client, widgets, PodGroup) as (view, watch):
        await eventually(lambda: watch.state == "absent")
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd)
        await eventually(lambda: watch.state == "watching")
        await client.create(widgets, widget, namespace=namespace)
        await eventually(lambda: set(view.objects) == {"w"})
        await client.delete(CUSTOM_RESOURCE_DEFINITIONS, name)
        await eventually(lambda: watch.state == "absent" and not view.objects)
        assert isinstance(view.batches[-1], Absent)


async def test_a_lenient_custom_resource_cannot_break_the_watch(
    client: KubeClient, namespace: str
) -> None:
    lenient = Resource("scheduling.incubator.k8s.io", "v1alpha1", "podgroups", "PodGroup")
    async with viewing(client, lenient, PodGroup, namespace=namespace) as (view, watch):
        await eventually(lambda: watch.state == "watching")
        for name, spec in (("odd", {"minResources": {"cpu": [None]}}), ("good", {"minMember": 3})):
            manifest = {
                "apiVersion": lenient.api_version,
                "kind": lenient.kind,
                "metadata": {"name": name},
                "spec": spec,
            }
            await client.create(lenient, manifest, namespace=namespace)
        await eventually(lambda: set(view.objects) == {"odd", "good"})
        assert view.objects["good"].spec.min_member == 3
        assert "minResources" in view.objects["odd"].error
        assert watch.relists == 0


@pytest.mark.slow
async def test_a_restarted_api_server_is_watched_on(tmp_path: Path) -> None:
    """Its own control plane: no other test should lose its own."""
    control_plane = ControlPlane()
    await asyncio.to_thread(control_plane.start)
    try:
        async with connected(control_plane.admin_kubeconfig) as client:
            await client.create(NODES, node_manifest("before", NodeShape()))
            async with viewing(client, NODES, Node) as (view, watch):
                await eventually(lambda: "before" in view.objects)
                await asyncio.to_thread(control_plane.kill, "kube-apiserver")
                await eventually(lambda: watch.state == "failing")
                assert isinstance(watch.last_error, ConnectionLost)
                await asyncio.to_thread(control_plane.restart, "kube-apiserver")
                await client.create(NODES, node_manifest("after", NodeShape()))
                await eventually(lambda: set(view.objects) == {"before", "after"})
                assert watch.state == "watching"
    finally:
        await asyncio.to_thread(control_plane.stop)
