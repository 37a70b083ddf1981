"""A real control plane on which the chart is installed by Helm, and its pods run as processes."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import WORKLOAD_CONTROLLERS, ControlPlaneOptions
from tests.controlplane.nodes import NodeShape, node_manifest
from tests.deploy.pod_processes import PodProcesses
from tests.deploy.service_proxy import APISERVER_ARGS, ServiceProxy

CHART: Final = Path(__file__).parents[2] / "deploy" / "chart"
_HELM_S: Final = 400.0
#: Helm's own and this are for a machine that many share.
_START_S: Final = 240.0
#: Endpoints may not be loopback addresses; `ServiceProxy` needs none.
_CONTROLLERS: Final = (
    *(one for one in WORKLOAD_CONTROLLERS if one != "endpointslice-controller"),
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
)
_NODES: Final = 3
_VOLUMES: Final = 8


class HelmFailed(Exception):
    """Helm ended with an error; the message is what it printed."""


class Installing(NamedTuple):
    """Everything at hand."""

    control_plane: ControlPlane
    api: RawClient
    pods: PodProcesses
    helm_program: Path

    async def helm(self, *arguments: str) -> str:
        """Run Helm as administrator and return what it printed. Raises HelmFailed."""
        return await asyncio.to_thread(self._helm, arguments)

    def _helm(self, arguments: Sequence[str]) -> str:
        folder = self.control_plane.dir
        done = subprocess.run(
            [str(self.helm_program), *arguments],
            env={
                "HOME": str(folder),
                "PATH": "",
                "KUBECONFIG": str(self.control_plane.admin_kubeconfig),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=_HELM_S,
        )
        if done.returncode != 0:
            raise HelmFailed(f"{done.stderr.strip()}\n{done.stdout.strip()}")
        return done.stdout


@asynccontextmanager
async def installing(helm_program: Path, folder: Path) -> AsyncIterator[Installing]:
    """Everything that the chart needs of a cluster: controllers, scheduler, nodes, volumes."""
    options = ControlPlaneOptions(
        controllers=_CONTROLLERS,
        scheduler=True,
        disable_admission_plugins=("TaintNodesByCondition",),
        apiserver_args=APISERVER_ARGS,
        start_timeout_s=_START_S,
    )
    control_plane = ControlPlane(options)
    await asyncio.to_thread(control_plane.start)
    try:
        async with RawClient(control_plane.admin_kubeconfig) as api:
            await _furnish(api)
            pods = PodProcesses(api, ServiceProxy(api), folder)
            kubelets = asyncio.create_task(pods.run(), name="kubelets")
            try:
                yield Installing(control_plane, api, pods, helm_program)
            finally:
                kubelets.cancel()
                await asyncio.wait([kubelets])
                if not kubelets.cancelled():
                    kubelets.result()
    finally:
        await asyncio.to_thread(control_plane.stop)


async def _furnish(api: RawClient) -> None:
    for number in range(_NODES):
        zone = {"topology.kubernetes.io/zone": f"zone-{number}"}
        shape = NodeShape(cpu_milli=16_000, labels=zone)
        await api.create("/api/v1/nodes", node_manifest(f"node-{number}", shape))
    storage: Object = {
        "metadata": {
            "name": "local",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "kubernetes.io/no-provisioner",
    }
    await api.create("/apis/storage.k8s.io/v1/storageclasses", storage)
    for number in range(_VOLUMES):
        volume: Object = {
            "metadata": {"name": f"volume-{number}"},
            "spec": {
                "capacity": {"storage": "8Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "hostPath": {"path": f"/volume-{number}"},
            },
        }
        await api.create("/api/v1/persistentvolumes", volume)
