"""Kubeflow's Trainer v2: a TrainJob becomes a PodGroup of coscheduling and a JobSet."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator, Recipe
from tests.controlplane.operators.managers import LEADER_WORKER_SET
from tests.controlplane.operators.own_certificates import (
    OwnCertificate,
    running_with_own_certificate,
)
from tests.controlplane.processes import Component, ReservedPort

RECIPE: Final = Recipe(
    name="trainer",
    module="github.com/kubeflow/trainer/v2",
    version="v2.0.0",
    main="cmd/trainer-controller-manager",
    crds="manifests/base/crds",
    crd_files=tuple(
        f"trainer.kubeflow.org_{plural}.yaml"
        for plural in ("clustertrainingruntimes", "trainingruntimes", "trainjobs")
    ),
    versions_of=(LEADER_WORKER_SET.recipe.module, LEADER_WORKER_SET.recipe.version),
)
_CERTIFICATE: Final = OwnCertificate(
    namespace="kubeflow-system",
    secret="kubeflow-trainer-webhook-cert",
    configurations=(("validatingwebhookconfigurations", "validator.trainer.kubeflow.org"),),
)


@asynccontextmanager
async def running_trainer(
    operator: BuiltOperator, control_plane: ControlPlane, api: RawClient, log: Path
) -> AsyncIterator[Component]:
    """Run it until the block is left; the CRDs of JobSet and of coscheduling must be served.

    One at a time on a machine: the place of its certificate is compiled in.
    """
    await asyncio.to_thread(control_plane.install_crds, operator.crds)
    health, webhook = ReservedPort(), ReservedPort()
    component = Component(
        RECIPE.name,
        [
            str(operator.program),
            f"--kubeconfig={control_plane.admin_kubeconfig}",
            f"--health-probe-bind-address=127.0.0.1:{health.number}",
            f"--webhook-server-port={webhook.number}",
        ],
        log,
    )
    health.release()
    webhook.release()
    running = running_with_own_certificate(
        component, api, _CERTIFICATE, works='"controller":"trainjob_controller"'
    )
    async with running as started:
        yield started
