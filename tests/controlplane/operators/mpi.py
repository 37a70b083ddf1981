"""Kubeflow's MPI operator: an MPIJob becomes a PodGroup, worker pods and a launcher's batch Job."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator, Recipe
from tests.controlplane.operators.started import started
from tests.controlplane.processes import Component

RECIPE: Final = Recipe(
    name="mpi-operator",
    module="github.com/kubeflow/mpi-operator",
    version="v0.6.0",
    crds="manifests/base",
    crd_files=("kubeflow.org_mpijobs.yaml",),
    own_main=Path(__file__).with_name("mpi"),
)


@asynccontextmanager
async def running_mpi_operator(
    operator: BuiltOperator,
    control_plane: ControlPlane,
    log: Path,
    *,
    flags: tuple[str, ...] = ("--gang-scheduling=volcano",),
) -> AsyncIterator[Component]:
    """Run it with these flags until the block is left; without any it makes no groups."""
    await asyncio.to_thread(control_plane.install_crds, operator.crds)
    component = Component(
        RECIPE.name,
        [
            str(operator.program),
            f"--kubeconfig={control_plane.admin_kubeconfig}",
            *flags,
        ],
        log,
    )
    async with started(component, "Started workers"):
        yield component
