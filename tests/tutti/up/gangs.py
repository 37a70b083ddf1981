"""Gangs on a cluster, for the tests of the whole suite."""

from tests.controlplane.client import Object, RawClient
from tests.controlplane.nodes import NodeShape, create_nodes, pod_manifest
from tests.support.waiting import eventually

BOUND_S = 20.0


async def make_nodes(api: RawClient, count: int = 2) -> None:
    await create_nodes(api, count, NodeShape())


async def make_gang(
    api: RawClient,
    namespace: str,
    name: str,
    *,
    members: int = 3,
    least: int = 3,
    group: str = "scheduling.volcano.sh/v1beta1",
    scheduler_name: str = "tutti",
) -> None:
    """A PodGroup and its pods, a CPU each."""
    manifest: Object = {
        "apiVersion": group,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": least},
    }
    await api.create(f"/apis/{group}/namespaces/{namespace}/podgroups", manifest)
    for index in range(members):
        pod = pod_manifest(
            f"{name}-{index}",
            requests={"cpu": "1"},
            scheduler_name=scheduler_name,
            annotations={"scheduling.k8s.io/group-name": name},
        )
        await api.create(f"/api/v1/namespaces/{namespace}/pods", pod)


async def placed(api: RawClient, namespace: str, gang: str) -> list[str]:
    """Names of the gang's pods that have a node."""
    pods = await api.get(f"/api/v1/namespaces/{namespace}/pods")
    return [
        pod["metadata"]["name"]
        for pod in pods["items"]
        if pod["metadata"]["name"].startswith(f"{gang}-") and pod["spec"].get("nodeName")
    ]


async def bound(
    api: RawClient, namespace: str, gang: str, members: int = 3, *, timeout_s: float = BOUND_S
) -> None:
    """Wait until all members of a gang have a node."""

    async def all_placed() -> bool:
        return len(await placed(api, namespace, gang)) == members

    await eventually(all_placed, timeout_s=timeout_s, because=f"{gang} is bound")
