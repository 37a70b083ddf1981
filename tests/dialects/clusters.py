"""The two clusters on which cases are played, each with all services of Tutti.

Tutti serves the scheduler names that users of the APIs write, so that no manifest needs a change.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import WORKLOAD_CONTROLLERS, ControlPlaneOptions
from tests.controlplane.fixtures import CRDS_DIR
from tests.controlplane.kubelet import FakeKubelet
from tests.controlplane.nodes import NodeShape, node_manifest
from tests.dialects.cases import FOLDER
from tests.support.background import in_background
from tests.support.waiting import eventually
from tests.tutti.up.running import suite
from tutti.cluster.embedded import EmbeddedCluster, Settings
from tutti.cluster.kubelet import EXIT

SCHEDULER_NAMES: Final = (
    "tutti",
    "volcano",
    "kube-batch",
    "default-scheduler",
    "scheduler-plugins-scheduler",
    "yunikorn",
    "koord-scheduler",
    "kai-scheduler",
)
FLAGS: Final = (
    "--no-webhook",
    f"--scheduler-conf={FOLDER / 'scheduler.yaml'}",
    *(f"--scheduler-name={name}" for name in SCHEDULER_NAMES),
)
#: For each part of a cluster; it takes two seconds on a quiet machine.
START_S: Final = 180.0
GPU: Final = "nvidia.com/gpu"
#: Kubernetes' own groups, behind gates of the pinned minor.
_GATES: Final = (
    "GangScheduling",
    "GenericWorkload",
    "TopologyAwareWorkloadScheduling",
    "WorkloadAwarePreemption",
)
_CRDS: Final = FOLDER / "crds"
#: What cases of all APIs share: objects that must exist before a pod names them.
_PRIORITIES: Final[Mapping[str, int]] = {"dialects-low": 10, "dialects-high": 1000}


class Cluster(Protocol):
    """A cluster with running services."""

    @property
    def api(self) -> RawClient:
        """A client that may do everything."""
        ...

    async def add_node(
        self, name: str, resources: Mapping[str, int], labels: dict[str, str]
    ) -> None:
        """Add a Ready node with a kubelet."""
        ...

    async def finish(self, pod: Object, exit_code: int) -> None:
        """Let the containers of a running pod end."""
        ...


@dataclass(frozen=True)
class _Real:
    api: RawClient
    kubelet: FakeKubelet

    async def add_node(
        self, name: str, resources: Mapping[str, int], labels: dict[str, str]
    ) -> None:
        shape = NodeShape(extended=resources, labels=labels)
        await self.api.create("/api/v1/nodes", node_manifest(name, shape))

    async def finish(self, pod: Object, exit_code: int) -> None:
        self.kubelet.finish(pod["metadata"]["uid"], exit_code=exit_code)


@dataclass(frozen=True)
class _Embedded:
    api: RawClient
    embedded: EmbeddedCluster

    async def add_node(
        self, name: str, resources: Mapping[str, int], labels: dict[str, str]
    ) -> None:
        await self.embedded.add_node(name, resources=resources, labels=labels)

    async def finish(self, pod: Object, exit_code: int) -> None:
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        await self.api.patch(path, {"metadata": {"annotations": {EXIT: str(exit_code)}}})


@asynccontextmanager
async def real_cluster(folder: Path) -> AsyncIterator[Cluster]:
    """A real control plane with controllers, and fake kubelets."""
    gates = f"--feature-gates={','.join(f'{gate}=true' for gate in _GATES)}"
    options = ControlPlaneOptions(
        start_timeout_s=START_S,
        controllers=(*WORKLOAD_CONTROLLERS, "podgroup-protection-controller"),
        controller_manager_args=(gates,),
        apiserver_args=(
            gates,
            "--runtime-config=scheduling.k8s.io/v1alpha2=true",
            f"--request-timeout={START_S:.0f}s",
        ),
    )
    with ControlPlane(options) as running:
        running.install_crds(CRDS_DIR)
        running.install_crds(_CRDS)
        kubeconfig = running.admin_kubeconfig
        async with RawClient(kubeconfig) as api, _services(api, kubeconfig, folder):
            kubelet = FakeKubelet(api)
            async with in_background(kubelet.run(), name="fake-kubelet"):
                yield _Real(api, kubelet)


@asynccontextmanager
async def embedded_cluster(folder: Path) -> AsyncIterator[Cluster]:
    """The cluster of `make demo`, in this process."""
    settings = Settings(nodes=0, crds=(CRDS_DIR, _CRDS))
    async with EmbeddedCluster(settings) as running:
        kubeconfig = running.kubeconfig(folder / "kubeconfig")
        async with RawClient(kubeconfig) as api, _services(api, kubeconfig, folder):
            yield _Embedded(api, running)


@asynccontextmanager
async def _services(api: RawClient, kubeconfig: Path, folder: Path) -> AsyncIterator[None]:
    for name, value in _PRIORITIES.items():
        path = "/apis/scheduling.k8s.io/v1/priorityclasses"
        await api.create(path, {"metadata": {"name": name}, "value": value})
    async with suite(kubeconfig, folder / "up", *FLAGS) as running:

        def is_ready() -> bool:
            if running.process.returncode is not None:
                raise RuntimeError(f"tutti up ended: {running.errors}")
            return running.ready_path.is_file()

        await eventually(is_ready, timeout_s=START_S, because="tutti up is ready")
        yield
