"""Kubeflow's training-operator v1: TFJobs and PyTorchJobs become PodGroups, then pods."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator, Recipe
from tests.controlplane.operators.own_certificates import (
    OwnCertificate,
    running_with_own_certificate,
)
from tests.controlplane.processes import Component, ReservedPort

KINDS: Final = ("tfjobs", "pytorchjobs")
RECIPE: Final = Recipe(
    name="training-operator",
    module="github.com/kubeflow/training-operator",
    version="v1.9.3",
    main="cmd/training-operator.v1",
    crds="manifests/base/crds",
    crd_files=tuple(f"kubeflow.org_{kind}.yaml" for kind in KINDS),
)
_CERTIFICATE: Final = OwnCertificate(
    namespace="kubeflow",
    secret="training-operator-webhook-cert",
    configurations=(
        ("validatingwebhookconfigurations", "validator.training-operator.kubeflow.org"),
    ),
)


@asynccontextmanager
async def running_operator(
    operator: BuiltOperator, control_plane: ControlPlane, api: RawClient, log: Path
) -> AsyncIterator[Component]:
    """Run it with ``--gang-scheduler-name=volcano`` until the block is left.

    One at a time on a machine: the place of its certificate is compiled in.
    """
    await asyncio.to_thread(control_plane.install_crds, operator.crds)
    health, webhook = ReservedPort(), ReservedPort()
    component = Component(
        RECIPE.name,
        [
            str(operator.program),
            f"--kubeconfig={control_plane.admin_kubeconfig}",
            "--gang-scheduler-name=volcano",
            *(f"--enable-scheme={kind.removesuffix('s')}" for kind in KINDS),
            "--metrics-bind-address=0",
            f"--health-probe-bind-address=127.0.0.1:{health.number}",
            f"--webhook-server-port={webhook.number}",
        ],
        log,
    )
    health.release()
    webhook.release()
    running = running_with_own_certificate(component, api, _CERTIFICATE, works="Starting workers")
    async with running as started:
        yield started
