"""Kubeflow's training-operator v1: TFJobs and PyTorchJobs become PodGroups, then pods.

It runs as a process, not in a pod. The certificate of its webhook, which it makes and stores in a
Secret, is therefore copied to where the Secret would be mounted. The configuration of its webhooks
is empty: an API server on this machine could not reach a Service.
"""

import asyncio
import base64
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.locks import exclusive
from tests.controlplane.operators.building import BuiltOperator, Recipe
from tests.controlplane.processes import Component, ReservedPort
from tests.support.waiting import eventually

KINDS: Final = ("tfjobs", "pytorchjobs")
RECIPE: Final = Recipe(
    name="training-operator",
    module="github.com/kubeflow/training-operator",
    version="v1.9.3",
    main="cmd/training-operator.v1",
    crds="manifests/base/crds",
    crd_files=tuple(f"kubeflow.org_{kind}.yaml" for kind in KINDS),
)

_NAMESPACE: Final = "kubeflow"
_SECRET: Final = "training-operator-webhook-cert"
_WEBHOOKS: Final = "validator.training-operator.kubeflow.org"
#: Where it insists on finding the certificate: compiled in.
_CERTIFICATES: Final = Path("/").joinpath("tmp", "k8s-webhook-server", "serving-certs")
_START_S: Final = 60.0


@asynccontextmanager
async def running_operator(
    operator: BuiltOperator, control_plane: ControlPlane, api: RawClient, log: Path
) -> AsyncIterator[Component]:
    """Run it with ``--gang-scheduler-name=volcano`` until the block is left.

    One at a time on a machine: the place of its certificate is compiled in.
    """
    await asyncio.to_thread(control_plane.install_crds, operator.crds)
    await _make(api, "/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
    await _make(api, f"/api/v1/namespaces/{_NAMESPACE}/secrets", {"metadata": {"name": _SECRET}})
    await _make(
        api,
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        {"metadata": {"name": _WEBHOOKS}, "webhooks": []},
    )
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
    with exclusive(_CERTIFICATES.parents[1] / "tutti-training-operator.lock"):
        try:
            await asyncio.to_thread(component.start)
            await _lay_certificate(api)
            await eventually(
                lambda: "Starting workers" in log.read_text(),
                timeout_s=_START_S,
                because="the operator's controllers work",
            )
            yield component
        finally:
            await asyncio.to_thread(component.stop)
            shutil.rmtree(_CERTIFICATES.parent, ignore_errors=True)


async def _lay_certificate(api: RawClient) -> None:
    """Put what the operator stored in its Secret where a pod would have it mounted."""

    async def stored() -> Object:
        secret = await api.get(f"/api/v1/namespaces/{_NAMESPACE}/secrets/{_SECRET}")
        return dict(secret.get("data") or {})

    data = await eventually(stored, timeout_s=_START_S, because="the operator made a certificate")
    _CERTIFICATES.mkdir(parents=True, exist_ok=True)
    for name, value in data.items():
        (_CERTIFICATES / name).write_bytes(base64.b64decode(value))


async def _make(api: RawClient, path: str, body: Object) -> None:
    try:
        await api.create(path, body)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
