"""The fake kubelets on the real API server: what they run, refuse, finish and remove."""

import asyncio

import pytest

from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import APISERVER
from tests.controlplane.kubelet import EXIT_CODE, RUN_SECONDS, FakeKubelet
from tests.controlplane.nodes import (
    GPU,
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


async def test_a_bound_pod_runs_with_an_address_and_is_ready(
    api: RawClient, namespace: str, kubelet: FakeKubelet
) -> None:
    [node] = await create_nodes(api, 1)
    pod = await bound(api, namespace, node, pod_manifest("solo", requests={"cpu": "1"}))

    status = (await seen_in(api, pod, "Running"))["status"]

    conditions = {condition["type"]: condition["status"] for condition in status["conditions"]}
    assert conditions["Ready"] == "True"
    assert conditions["PodScheduled"] == "True"
    assert status["podIP"].startswith("10.128.")
    assert status["containerStatuses"][0]["state"]["running"]["startedAt"]


async def test_an_unbound_pod_is_left_alone(
    api: RawClient, namespace: str, kubelet: FakeKubelet
) -> None:
    [node] = await create_nodes(api, 1)
    [waiting] = await create_pods(api, namespace, [pod_manifest("waiting")])
    placed = await bound(api, namespace, node, pod_manifest("placed"))

    await seen_in(api, placed, "Running")

    await seen_in(api, waiting, "Pending")


@pytest.mark.parametrize(
    ("requests", "reason"),
    [
        ({"cpu": "2100m"}, "OutOfcpu"),
        ({"memory": "5Gi"}, "OutOfmemory"),
        ({GPU: "1"}, f"OutOf{GPU}"),
    ],
)
async def test_what_does_not_fit_beside_its_neighbour_is_refused_with_the_resources_name(
    api: RawClient, namespace: str, kubelet: FakeKubelet, requests: dict[str, str], reason: str
) -> None:
    shape = NodeShape(cpu_milli=4000, memory_bytes=8 * 2**30, extended={GPU: 2})
    [node] = await create_nodes(api, 1, shape)
    half = {"cpu": "2", "memory": "4Gi", GPU: "2"}
    neighbour = await bound(api, namespace, node, pod_manifest("neighbour", requests=half))
    await seen_in(api, neighbour, "Running")

    refused = await bound(api, namespace, node, pod_manifest("refused", requests=requests))
    status = (await seen_in(api, refused, "Failed"))["status"]

    assert status["reason"] == reason
    assert "Node didn't have enough resource" in status["message"]


async def test_exactly_as_many_pods_run_as_the_node_takes(
    api: RawClient, namespace: str, kubelet: FakeKubelet
) -> None:
    [node] = await create_nodes(api, 1, NodeShape(pods=3))
    pods = await create_pods(api, namespace, [pod_manifest(f"p{index}") for index in range(5)])
    for pod in pods:
        await bind_pod(api, pod, node)

    async def phases() -> list[str]:
        listed = await api.get(f"/api/v1/namespaces/{namespace}/pods")
        found = sorted(str(pod["status"]["phase"]) for pod in listed["items"])
        assert "Pending" not in found, found
        return found

    assert await eventually(phases) == ["Failed", "Failed", "Running", "Running", "Running"]


async def test_a_pod_on_a_node_with_other_labels_or_taken_ports_is_refused(
    api: RawClient, namespace: str, kubelet: FakeKubelet
) -> None:
    [node] = await create_nodes(api, 1, NodeShape(labels={"rack": "r1"}))
    selecting = pod_manifest("selecting", spec={"nodeSelector": {"rack": "r2"}})
    port = {"containerPort": 80, "hostPort": 8080}
    containers = [{"name": "main", "image": "none", "ports": [port]}]
    first = pod_manifest("first", spec={"containers": containers})
    second = pod_manifest("second", spec={"containers": containers})

    elsewhere = await bound(api, namespace, node, selecting)
    await seen_in(api, await bound(api, namespace, node, first), "Running")
    late = await bound(api, namespace, node, second)

    assert (await seen_in(api, elsewhere, "Failed"))["status"]["reason"] == "NodeAffinity"
    assert (await seen_in(api, late, "Failed"))["status"]["reason"] == "NodePorts"


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


async def test_a_pod_deleted_with_grace_is_gone_and_its_room_free(
    api: RawClient, namespace: str, kubelet: FakeKubelet
) -> None:
    [node] = await create_nodes(api, 1, NodeShape(cpu_milli=2000))
    requests = {"cpu": "2"}
    pod = await bound(api, namespace, node, pod_manifest("old", requests=requests))
    await seen_in(api, pod, "Running")
    await api.delete(f"/api/v1/namespaces/{namespace}/pods/old")

    async def gone() -> bool:
        try:
            await api.get(f"/api/v1/namespaces/{namespace}/pods/old")
        except ApiError as error:
            return error.status == 404
        return False

    await eventually(gone, because="the kubelet removes what is being deleted")
    new = await bound(api, namespace, node, pod_manifest("new", requests=requests))
    await seen_in(api, new, "Running")


async def test_a_pod_bound_to_a_missing_node_waits_until_the_node_is_there(
    api: RawClient, namespace: str, kubelet: FakeKubelet
) -> None:
    early = await bound(api, namespace, "late-node", pod_manifest("early"))
    await seen_in(api, early, "Pending")

    await api.create("/api/v1/nodes", node_manifest("late-node", NodeShape()))

    await seen_in(api, early, "Running")


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
