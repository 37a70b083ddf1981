"""The fake kubelets on the real API server: what they run, refuse, finish and remove."""

import asyncio

import pytest

from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import APISERVER
from tests.controlplane.kubelet import EXIT_CODE, KWOK_NODE, RUN_SECONDS, STOP_SECONDS, FakeKubelet
from tests.controlplane.nodes import (
    NodeShape,
    bind_pod,
    create_nodes,
    create_pods,
    node_manifest,
    pod_manifest,
)
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("empty_cluster")]


async def bound(api: RawClient, namespace: str, node: str, manifest: Object) -> Object:
    [pod] = await create_pods(api, namespace, [manifest])
    await bind_pod(api, pod, node)
    return pod


async def seen_in(api: RawClient, pod: Object, phase: str) -> Object:
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"

    async def probe() -> Object:
        seen = await api.get(path)
        assert seen["status"]["phase"] == phase, seen["status"]
        return seen

    return await eventually(probe, because=f"{metadata['name']} is {phase}")


async def test_pods_end_by_annotation_or_on_request_and_free_their_capacity(
    api: RawClient, namespace: str, kubelet: FakeKubelet
) -> None:
    [node] = await create_nodes(api, 1, NodeShape(cpu_milli=2000))
    whole = {"cpu": "2"}
    short = pod_manifest("short", requests=whole, annotations={RUN_SECONDS: "0.1", EXIT_CODE: "3"})
    failed = await seen_in(api, await bound(api, namespace, node, short), "Failed")
    second = await bound(api, namespace, node, pod_manifest("second", requests=whole))
    await seen_in(api, second, "Running")
    kubelet.finish(second["metadata"]["uid"])
    await seen_in(api, second, "Succeeded")
    last = await bound(api, namespace, node, pod_manifest("last", requests=whole))

    await seen_in(api, last, "Running")

    terminated = failed["status"]["containerStatuses"][0]["state"]["terminated"]
    assert terminated["exitCode"] == 3
    assert "reason" not in failed["status"]


async def test_a_pod_that_takes_long_to_end_keeps_its_capacity_until_then(
    api: RawClient, namespace: str, kubelet: FakeKubelet
) -> None:
    [node] = await create_nodes(api, 1, NodeShape(cpu_milli=2000))
    manifest = pod_manifest("slow", requests={"cpu": "2"}, annotations={STOP_SECONDS: "0.5"})
    slow = await bound(api, namespace, node, manifest)
    await seen_in(api, slow, "Running")
    path = f"/api/v1/namespaces/{namespace}/pods/slow"
    begun_s = asyncio.get_running_loop().time()
    deleted = await api.delete(path)
    assert deleted["metadata"]["deletionTimestamp"]

    async def is_gone() -> bool:
        return not (await api.get(f"/api/v1/namespaces/{namespace}/pods"))["items"]

    await eventually(is_gone, because="its containers have ended")
    assert asyncio.get_running_loop().time() - begun_s >= 0.5


async def test_a_node_of_kwok_is_reported_ready_and_a_node_of_another_kind_is_not(
    api: RawClient, kubelet: FakeKubelet
) -> None:
    """Karpenter makes nodes without conditions, and waits until a kubelet reports them."""
    key, value = KWOK_NODE
    for name, labels in (("plain-0", {}), ("kwok-0", {key: value})):
        manifest = node_manifest(name, NodeShape(labels=labels))
        del manifest["status"]["conditions"]
        await api.create("/api/v1/nodes", manifest)

    async def conditions(name: str) -> dict[str, str]:
        node = await api.get(f"/api/v1/nodes/{name}")
        return {one["type"]: one["status"] for one in node["status"].get("conditions", ())}

    async def is_ready() -> bool:
        return await conditions("kwok-0") == {"Ready": "True"}

    await eventually(is_ready, because="the kubelet reports the node")
    assert not await conditions("plain-0")


async def test_a_deleted_pod_that_a_finalizer_keeps_has_ended_and_freed_its_capacity(
    api: RawClient, namespace: str, kubelet: FakeKubelet
) -> None:
    [node] = await create_nodes(api, 1, NodeShape(cpu_milli=2000))
    whole = {"cpu": "2"}
    manifest = pod_manifest("kept", requests=whole)
    manifest["metadata"]["finalizers"] = ["example.com/kept"]
    kept = await bound(api, namespace, node, manifest)
    await seen_in(api, kept, "Running")
    path = f"/api/v1/namespaces/{namespace}/pods/kept"
    await api.delete(path)
    await seen_in(api, kept, "Failed")
    following = await bound(api, namespace, node, pod_manifest("following", requests=whole))
    await seen_in(api, following, "Running")
    await api.patch(path, {"metadata": {"finalizers": None}})

    async def is_gone() -> bool:
        names = [pod["metadata"]["name"] for pod in await _listed(api, namespace)]
        return names == ["following"]

    await eventually(is_gone, because="the finalizer is removed")


async def _listed(api: RawClient, namespace: str) -> list[Object]:
    return list((await api.get(f"/api/v1/namespaces/{namespace}/pods"))["items"])


async def test_kubelets_go_on_after_the_api_server_was_away() -> None:
    with ControlPlane() as own:
        async with RawClient(own.admin_kubeconfig) as api, asyncio.TaskGroup() as group:
            task = group.create_task(FakeKubelet(api).run())
            [node] = await create_nodes(api, 1)
            before = await bound(api, "default", node, pod_manifest("before"))
            await seen_in(api, before, "Running")
            await asyncio.to_thread(own.kill, APISERVER)
            await asyncio.to_thread(own.restart, APISERVER)
            after = await bound(api, "default", node, pod_manifest("after"))
            await seen_in(api, after, "Running")
            task.cancel()
