"""Nodes and pods in bulk, as quickly as the API server takes them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tests.controlplane.client import ApiError, Object, RawClient

# More in flight than this only lengthens the API server's queue (measured on two cores).
CONCURRENCY = 32
MANAGED_BY = {"tutti.test/made-by": "tests.controlplane"}
GPU = "nvidia.com/gpu"
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class NodeShape:
    """What each node of a batch offers."""

    cpu_milli: int = 4000
    memory_bytes: int = 16 * 2**30
    pods: int = 110
    extended: Mapping[str, int] = field(default_factory=dict)
    """Counts of extended resources, such as ``{GPU: 8}``."""

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()


def node_manifest(name: str, shape: NodeShape) -> Object:
    """Return a Node that is Ready from the moment it is created."""
    quantities = {
        "cpu": f"{shape.cpu_milli}m",
        "memory": str(shape.memory_bytes),
        "ephemeral-storage": str(100 * 2**30),
        "pods": str(shape.pods),
        **{resource: str(count) for resource, count in shape.extended.items()},
    }
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **MANAGED_BY, **shape.labels},
        },
        "spec": {"taints": [dict(taint) for taint in shape.taints]},
        "status": {"capacity": quantities, "allocatable": quantities, "conditions": [ready]},
    }


def pod_manifest(
    name: str,
    *,
    requests: Mapping[str, str] | None = None,
    scheduler_name: str = "tutti",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    owner: Mapping[str, object] | None = None,
    spec: Mapping[str, object] | None = None,
) -> Object:
    """Return a Pod with one container; extended resources are limits too, as the API demands.

    Args:
        name: its name.
        requests: resource name to quantity.
        scheduler_name: the scheduler that is to bind it.
        labels: its labels.
        annotations: its annotations.
        owner: an ownerReference.
        spec: further fields of the pod's spec, which win.
    """
    requests = dict(requests or {})
    limits = {resource: quantity for resource, quantity in requests.items() if "/" in resource}
    container = {
        "name": "main",
        "image": "registry.example/none",
        "resources": {"requests": requests, "limits": limits},
    }
    metadata: Object = {
        "name": name,
        "labels": dict(labels or {}),
        "annotations": dict(annotations or {}),
    }
    if owner is not None:
        metadata["ownerReferences"] = [dict(owner)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "schedulerName": scheduler_name,
            "restartPolicy": "Never",
            "containers": [container],
            **(spec or {}),
        },
    }


async def create_nodes(
    client: RawClient, count: int, shape: NodeShape | None = None, *, prefix: str = "node-"
) -> list[str]:
    """Create ``count`` Ready nodes named ``<prefix><index>`` and return their names."""
    shape = shape or NodeShape()
    names = [f"{prefix}{index}" for index in range(count)]

    async def create(name: str) -> object:
        return await client.create("/api/v1/nodes", node_manifest(name, shape))

    await for_each(names, create)
    return names


async def create_pods(
    client: RawClient,
    namespace: str,
    manifests: Iterable[Object],
    *,
    concurrency: int = CONCURRENCY,
) -> list[Object]:
    """Create the pods and return them as the API server stored them, in the same order."""
    created: dict[str, Object] = {}
    ordered = list(manifests)

    async def create(manifest: Object) -> None:
        pod = await client.create(f"/api/v1/namespaces/{namespace}/pods", manifest)
        created[pod["metadata"]["name"]] = pod

    await for_each(ordered, create, concurrency=concurrency)
    return [created[manifest["metadata"]["name"]] for manifest in ordered]


async def create_namespace(client: RawClient, name: str) -> None:
    """Create a namespace; creating it again is an error."""
    await client.create("/api/v1/namespaces", {"metadata": {"name": name}})


async def bind_pod(client: RawClient, pod: Object, node: str) -> None:
    """Bind a pod, of this UID and no other, to a node."""
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/binding"
    binding: Object = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": metadata["name"], "uid": metadata["uid"]},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    await client.create(path, binding)


async def delete_pods(client: RawClient, namespace: str) -> None:
    """Delete every pod of a namespace at once, without grace."""
    options: Object = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
    await client.delete(f"/api/v1/namespaces/{namespace}/pods", options)


async def delete_nodes(client: RawClient) -> None:
    """Delete every node that ``create_nodes`` made, in this run or in another."""
    label, value = next(iter(MANAGED_BY.items()))
    await client.request("DELETE", "/api/v1/nodes", params={"labelSelector": f"{label}={value}"})


async def remove_namespace(client: RawClient, name: str) -> None:
    """Delete a namespace with its pods, finalizing it ourselves where no controller does."""
    await delete_pods(client, name)
    path = f"/api/v1/namespaces/{name}"
    await client.delete(path)
    try:
        left = await client.get(path)
        left["spec"]["finalizers"] = []
        await client.request("PUT", f"{path}/finalize", left)
    except ApiError as error:
        if error.status not in {404, 409}:  # gone already, or its controller is at work
            raise


async def for_each(
    items: Iterable[T], do: Callable[[T], Awaitable[object]], *, concurrency: int = CONCURRENCY
) -> None:
    """Do something for all items, so many at a time; the first error cancels the rest."""
    pending = iter(items)

    async def work() -> None:
        for item in pending:
            await do(item)

    async with asyncio.TaskGroup() as group:
        for index in range(concurrency):
            group.create_task(work(), name=f"for-each-{index}")
