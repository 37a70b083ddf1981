"""KubeRay: a RayCluster becomes a PodGroup, a head pod and worker pods."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator, Recipe
from tests.controlplane.operators.managers import LEADER_WORKER_SET
from tests.controlplane.operators.started import started
from tests.controlplane.processes import Component, ReservedPort

RECIPE: Final = Recipe(
    name="kuberay",
    module="github.com/ray-project/kuberay/ray-operator",
    version="v1.4.2",
    crds="config/crd/bases",
    crd_files=("ray.io_rayclusters.yaml", "ray.io_rayjobs.yaml", "ray.io_rayservices.yaml"),
    versions_of=(LEADER_WORKER_SET.recipe.module, LEADER_WORKER_SET.recipe.version),
)


@asynccontextmanager
async def running_kuberay(
    operator: BuiltOperator,
    control_plane: ControlPlane,
    log: Path,
    *,
    flags: tuple[str, ...] = ("--batch-scheduler=volcano",),
) -> AsyncIterator[Component]:
    """Run it with these flags until the block is left; without any it makes no groups."""
    await asyncio.to_thread(control_plane.install_crds, operator.crds)
    health = ReservedPort()
    component = Component(
        RECIPE.name,
        [
            str(operator.program),
            f"--kubeconfig={control_plane.admin_kubeconfig}",
            *flags,
            "--enable-leader-election=false",
            "--metrics-addr=0",
            f"--health-probe-bind-address=127.0.0.1:{health.number}",
        ],
        log,
    )
    health.release()
    async with started(component, "Starting workers"):
        yield component
