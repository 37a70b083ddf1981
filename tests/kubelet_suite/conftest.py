"""A cluster for each kind of kubelets: an API server, and no node but those that a test adds."""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import pytest
import yaml

from shared.kube.resources import NAMESPACES, NODES, PODS
from tests.conformance.process_kubelet import EXIT as PROCESS_EXIT
from tests.conformance.process_kubelet import ProcessKubelet
from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.kubelet import FakeKubelet
from tests.controlplane.nodes import (
    NodeShape,
    bind_pod,
    create_namespace,
    create_pods,
    delete_nodes,
    node_manifest,
    remove_namespace,
)
from tests.simulation.http_front import http_front
from tests.simulation.nodes import Nodes
from tests.support.background import in_background
from tests.support.waiting import eventually
from tutti.cluster.embedded import EmbeddedCluster, Settings
from tutti.cluster.kubelet import EXIT

#: Kubelets -> whether they need a real API server.
KUBELETS: Final = {"embedded": False, "simulated": False, "fake": True, "process": True}
_FOR_EVER_MS: Final = 3_600_000


class _End(Protocol):
    async def __call__(self, pod: Object, exit_code: int) -> None: ...


class Site:
    """A cluster with kubelets, and what a test does in it."""

    def __init__(
        self,
        api: RawClient,
        namespace: str,
        add_node: Callable[[str, NodeShape], Awaitable[object]],
        end: _End,
    ) -> None:
        self.api = api
        self.namespace = namespace
        self._add_node = add_node
        self._end = end

    def path(self, name: str) -> str:
        """The address of a pod."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{name}"

    async def add_node(self, name: str = "node-0", shape: NodeShape | None = None) -> str:
        """A Ready node with a kubelet; returns its name."""
        await self._add_node(name, shape or NodeShape())
        return name

    async def create(self, manifest: Object) -> Object:
        """A pod that is not bound."""
        [pod] = await create_pods(self.api, self.namespace, [manifest])
        return pod

    async def bind(self, manifest: Object, node: str = "node-0") -> Object:
        """Create a pod and bind it."""
        pod = await self.create(manifest)
        await bind_pod(self.api, pod, node)
        return pod

    async def seen_in(self, pod: Object, phase: str) -> Object:
        """Wait until the pod is in that phase; its status."""
        path = self.path(pod["metadata"]["name"])

        async def probe() -> Object:
            status: Object = (await self.api.get(path))["status"]
            assert status["phase"] == phase, status
            return status

        return await eventually(probe, because=f"{path} is {phase}")

    async def end(self, pod: Object, exit_code: int = 0) -> None:
        """Let the containers of a running pod end."""
        await self._end(pod, exit_code)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test with each kind of kubelets; the simulation's know only amounts of CPU."""
    if "site" in metafunc.fixturenames:
        simulated = metafunc.definition.get_closest_marker("simulated") is not None
        kinds = [
            pytest.param(kind, marks=[pytest.mark.integration] if real else [])
            for kind, real in KUBELETS.items()
            if kind != "simulated" or simulated
        ]
        metafunc.parametrize("site", kinds, indirect=True)


@pytest.fixture
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    """The cluster with the kubelets under test."""
    match str(request.param):
        case "embedded":
            opened = _embedded(tmp_path)
        case "simulated":
            opened = _simulated(tmp_path)
        case kind:
            opened = _real(request.getfixturevalue("control_plane"), kind)
    async with opened as found:
        yield found


@asynccontextmanager
async def _embedded(folder: Path) -> AsyncIterator[Site]:
    async with EmbeddedCluster(Settings(nodes=0, pod_start_s=0, pod_stop_s=0)) as cluster:

        async def add_node(name: str, shape: NodeShape) -> None:
            await cluster.add_node(
                name,
                cpu=f"{shape.cpu_milli}m",
                memory=str(shape.memory_bytes),
                resources={"pods": shape.pods, **shape.extended},
                labels=dict(shape.labels),
            )

        async with RawClient(cluster.kubeconfig(folder / "kubeconfig")) as api:
            yield Site(api, "default", add_node, partial(_annotate, api, EXIT))


@asynccontextmanager
async def _simulated(folder: Path) -> AsyncIterator[Site]:
    async with http_front([NAMESPACES, NODES, PODS]) as front:
        nodes = Nodes(front.etcd, lambda _: _FOR_EVER_MS, may_end=lambda _: True)
        path = folder / "kubeconfig"
        clusters = [{"cluster": {"server": front.url}}]
        path.write_text(yaml.safe_dump({"clusters": clusters, "users": [{"user": {}}]}))

        async def add_node(name: str, shape: NodeShape) -> None:
            nodes.add(name, shape.cpu_milli)

        async def end(pod: Object, exit_code: int) -> None:
            metadata = pod["metadata"]
            now = front.etcd.get(PODS, metadata["namespace"], metadata["name"])
            assert now is not None
            nodes.end(now, "Failed" if exit_code else "Succeeded")

        async with RawClient(path) as api, front.time_passing():
            yield Site(api, "default", add_node, end)


@asynccontextmanager
async def _real(control_plane: ControlPlane, kind: str) -> AsyncIterator[Site]:
    namespace = f"kubelets-{uuid.uuid4().hex[:10]}"
    async with RawClient(control_plane.admin_kubeconfig) as api:
        await delete_nodes(api)
        await create_namespace(api, namespace)
        fake = FakeKubelet(api) if kind == "fake" else ProcessKubelet(api, pull_s=0.0)

        async def add_node(name: str, shape: NodeShape) -> None:
            await api.create("/api/v1/nodes", node_manifest(name, shape))

        async def end(pod: Object, exit_code: int) -> None:
            if kind == "fake":
                fake.finish(pod["metadata"]["uid"], exit_code=exit_code)
            else:
                await _annotate(api, PROCESS_EXIT, pod, exit_code)

        try:
            async with in_background(fake.run(), name="kubelets"):
                yield Site(api, namespace, add_node, end)
        finally:
            await remove_namespace(api, namespace)
            await delete_nodes(api)


async def _annotate(api: RawClient, key: str, pod: Object, exit_code: int) -> None:
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
    await api.patch(path, {"metadata": {"annotations": {key: str(exit_code)}}})
