"""The controller of the scheduler plugins: it writes the status of coscheduling's PodGroups."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator, Recipe
from tests.controlplane.operators.started import started
from tests.controlplane.processes import Component, ReservedPort

RECIPE: Final = Recipe(
    name="scheduler-plugins",
    module="sigs.k8s.io/scheduler-plugins",
    version="v0.32.7",
    main="cmd/controller",
    crds="config/crd/bases",
    crd_files=("scheduling.x-k8s.io_podgroups.yaml", "scheduling.x-k8s.io_elasticquotas.yaml"),
)
_CONTROLLERS: Final = ("podgroup", "elasticquota")


@asynccontextmanager
async def running_scheduler_plugins(
    operator: BuiltOperator, control_plane: ControlPlane, log: Path
) -> AsyncIterator[Component]:
    """Run the controller until the block is left; the plugins' scheduler does not run."""
    await asyncio.to_thread(control_plane.install_crds, operator.crds)
    health = ReservedPort()
    component = Component(
        RECIPE.name,
        [
            str(operator.program),
            f"--kubeconfig={control_plane.admin_kubeconfig}",
            "--metricsAddr=0",
            f"--probeAddr=127.0.0.1:{health.number}",
        ],
        log,
    )
    health.release()
    async with started(component, "Starting workers", times=len(_CONTROLLERS)):
        yield component
