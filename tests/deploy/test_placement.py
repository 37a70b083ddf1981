"""kube-scheduler puts the replicas of each component on different nodes.

Freshly installed, updated and rolled back; with zones and without.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests.controlplane.client import MERGE_PATCH, Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import WORKLOAD_CONTROLLERS, ControlPlaneOptions
from tests.controlplane.kubelet import FakeKubelet
from tests.controlplane.nodes import NodeShape, node_manifest
from tests.deploy.rendered import CHART, objects, rendered
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]

_PLURALS: Final = {"Deployment": "deployments", "StatefulSet": "statefulsets"}
_APPS: Final = "/apis/apps/v1/namespaces"
_NODES: Final = 2
_PATIENCE_S: Final = 120.0


@pytest.fixture
async def cluster() -> AsyncIterator[RawClient]:
    """A control plane with the workload controllers, kube-scheduler and fake kubelets; no nodes."""
    options = ControlPlaneOptions(
        controllers=WORKLOAD_CONTROLLERS,
        scheduler=True,
        disable_admission_plugins=("ServiceAccount", "TaintNodesByCondition"),
        start_timeout_s=240.0,
    )
    control_plane = ControlPlane(options)
    await asyncio.to_thread(control_plane.start)
    try:
        async with RawClient(control_plane.admin_kubeconfig) as api:
            running = asyncio.create_task(FakeKubelet(api).run(), name="kubelets")
            yield api
            running.cancel()
            await asyncio.wait([running])
    finally:
        await asyncio.to_thread(control_plane.stop)


def workloads(helm: Path, namespace: str) -> list[Object]:
    """The Deployments and StatefulSets of the chart for high availability, without volumes."""
    text = rendered(
        helm,
        f"--values={Path(CHART) / 'values-ha.yaml'}",
        "--set=nats.storage.persistent=false",
        namespace=namespace,
    )
    return [one for one in objects(text) if one["kind"] in _PLURALS]


@pytest.mark.parametrize(
    ("zones", "attempts"),
    [
        pytest.param(False, 2, id="without zones", marks=pytest.mark.certify),
        pytest.param(True, 2, id="with zones, twice", marks=pytest.mark.certify),
        pytest.param(True, 1, id="with zones"),
    ],
)
async def test_no_node_has_all_replicas_of_a_component_whatever_is_installed_or_updated(
    cluster: RawClient, helm: Path, zones: bool, attempts: int
) -> None:
    for number in range(_NODES):
        labels = {"topology.kubernetes.io/zone": f"zone-{number}"} if zones else {}
        shape = NodeShape(cpu_milli=16_000, labels=labels)
        await cluster.create("/api/v1/nodes", node_manifest(f"node-{number}", shape))
    for attempt in range(attempts):
        namespace = f"attempt-{attempt}"
        await cluster.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        made = workloads(helm, namespace)
        for one in made:
            path = f"{_APPS}/{namespace}/{_PLURALS[one['kind']]}"
            await cluster.create(path, one)
        await _spread(cluster, namespace, made, "installed")
        for revision in ("second", "first", "second"):
            for one in made:
                await _update(cluster, namespace, one, revision)
            await _spread(cluster, namespace, made, f"updated to the {revision} revision")
        await cluster.request("DELETE", f"/api/v1/namespaces/{namespace}")


async def _update(api: RawClient, namespace: str, workload: Object, revision: str) -> None:
    path = f"{_APPS}/{namespace}/{_PLURALS[workload['kind']]}/{workload['metadata']['name']}"
    annotations = {"tutti.test/revision": revision}
    patch: Object = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
    await api.request("PATCH", path, patch, content_type=MERGE_PATCH)


async def _spread(api: RawClient, namespace: str, made: list[Object], when: str) -> None:
    """Wait for the end of all rollouts; then no component has a node more than it must."""
    for one in made:
        path = f"{_APPS}/{namespace}/{_PLURALS[one['kind']]}/{one['metadata']['name']}"

        async def rolled_out(path: str = path) -> bool:
            found = await api.get(path)
            status, replicas = found["status"], found["spec"]["replicas"]
            return bool(
                status.get("observedGeneration") == found["metadata"]["generation"]
                and status.get("updatedReplicas") == replicas == status.get("replicas")
                and status.get("readyReplicas") == replicas
                and status.get("updateRevision") == status.get("currentRevision")
            )

        await eventually(rolled_out, timeout_s=_PATIENCE_S, because=f"{path} is {when}")
    pods = (await api.get(f"/api/v1/namespaces/{namespace}/pods"))["items"]
    nodes: dict[str, Counter[str]] = defaultdict(Counter)
    for pod in pods:
        if not pod["metadata"].get("deletionTimestamp"):
            nodes[pod["metadata"]["labels"]["app.kubernetes.io/component"]][
                pod["spec"]["nodeName"]
            ] += 1
    assert len(nodes) == len(made)
    for component, counts in nodes.items():
        uneven = max(counts.values()) - min(counts[f"node-{n}"] for n in range(_NODES))
        assert uneven <= 1, f"{when}, {component}: {dict(counts)}"
