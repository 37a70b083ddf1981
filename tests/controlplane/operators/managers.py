"""JobSet and LeaderWorkerSet: operators that are configured by a file and default their objects in
webhooks.

The API server calls the webhooks on the loopback address, with a certificate of its own authority.
"""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator, Recipe
from tests.controlplane.processes import Component, ReservedPort
from tests.support.waiting import eventually

_START_S: Final = 60.0
_REGISTRATION: Final = "/apis/admissionregistration.k8s.io/v1"


class Hook(NamedTuple):
    """One webhook of an operator."""

    path: str
    group: str
    resource: str
    operations: tuple[str, ...] = ("CREATE", "UPDATE")


class Manager(NamedTuple):
    """An operator of this kind: how it is built, configured and called."""

    recipe: Recipe
    #: API version of its configuration file, and what the file has beside the usual fields.
    configuration: str
    settings: Mapping[str, object]
    version: str
    mutating: tuple[Hook, ...]
    validating: tuple[Hook, ...]
    #: Pods are sent to the webhooks only with this label.
    pod_label: str


JOBSET: Final = Manager(
    recipe=Recipe(
        name="jobset",
        module="sigs.k8s.io/jobset",
        version="v0.10.1",
        crds="config/components/crd/bases",
        crd_files=("jobset.x-k8s.io_jobsets.yaml",),
    ),
    configuration="config.jobset.x-k8s.io/v1alpha1",
    settings={},
    version="v1alpha2",
    mutating=(
        Hook("/mutate-jobset-x-k8s-io-v1alpha2-jobset", "jobset.x-k8s.io", "jobsets", ("CREATE",)),
        Hook("/mutate--v1-pod", "", "pods", ("CREATE",)),
    ),
    validating=(
        Hook("/validate-jobset-x-k8s-io-v1alpha2-jobset", "jobset.x-k8s.io", "jobsets"),
        Hook("/validate--v1-pod", "", "pods", ("CREATE",)),
    ),
    pod_label="jobset.sigs.k8s.io/jobset-name",
)

LEADER_WORKER_SET: Final = Manager(
    recipe=Recipe(
        name="lws",
        module="sigs.k8s.io/lws",
        version="v0.7.0",
        main="cmd",
        crds="config/crd/bases",
        crd_files=("leaderworkerset.x-k8s.io_leaderworkersets.yaml",),
    ),
    configuration="config.lws.x-k8s.io/v1alpha1",
    settings={"gangSchedulingManagement": {"schedulerProvider": "volcano"}},
    version="v1",
    mutating=(
        Hook(
            "/mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset",
            "leaderworkerset.x-k8s.io",
            "leaderworkersets",
        ),
        Hook("/mutate--v1-pod", "", "pods", ("CREATE",)),
    ),
    validating=(
        Hook(
            "/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset",
            "leaderworkerset.x-k8s.io",
            "leaderworkersets",
        ),
    ),
    pod_label="leaderworkerset.sigs.k8s.io/name",
)


@asynccontextmanager
async def running_manager(
    manager: Manager,
    operator: BuiltOperator,
    control_plane: ControlPlane,
    api: RawClient,
    folder: Path,
) -> AsyncIterator[Component]:
    """Run it until the block is left; its webhooks are registered before it yields.

    Args:
        manager: What is run.
        operator: Where it was built.
        control_plane: The cluster that it works on.
        api: A client of that cluster with all rights.
        folder: An empty folder for its certificate, configuration and log.
    """
    await asyncio.to_thread(control_plane.install_crds, operator.crds)
    webhook, health = ReservedPort(), ReservedPort()
    pair = control_plane.authority.server(["127.0.0.1"])
    (folder / "tls.crt").write_bytes(pair.certificate_pem)
    (folder / "tls.key").write_bytes(pair.key_pem)
    configuration = folder / "configuration.json"
    configuration.write_text(json.dumps(_configuration(manager, folder, webhook, health)))
    component = Component(
        manager.recipe.name,
        [
            str(operator.program),
            f"--kubeconfig={control_plane.admin_kubeconfig}",
            f"--config={configuration}",
        ],
        folder / "operator.log",
    )
    registrations = _registrations(manager, webhook.number, control_plane.authority.certificate_pem)
    webhook.release()
    health.release()
    try:
        await asyncio.to_thread(component.start)
        await eventually(
            lambda: "Serving webhook server" in component.log_path.read_text(),
            timeout_s=_START_S,
            because=f"{manager.recipe.name} serves its webhooks",
        )
        for plural, body in registrations:
            await api.create(f"{_REGISTRATION}/{plural}", body)
        yield component
    finally:
        for plural, body in registrations:
            await _remove(api, f"{_REGISTRATION}/{plural}/{body['metadata']['name']}")
        await asyncio.to_thread(component.stop)


def _configuration(
    manager: Manager, folder: Path, webhook: ReservedPort, health: ReservedPort
) -> Object:
    return {
        "apiVersion": manager.configuration,
        "kind": "Configuration",
        "webhook": {"host": "127.0.0.1", "port": webhook.number, "certDir": str(folder)},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health.number}"},
        "metrics": {"bindAddress": "0"},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        **manager.settings,
    }


def _registrations(manager: Manager, port: int, authority: bytes) -> list[tuple[str, Object]]:
    """Collection and body of both webhook configurations."""
    bundle = base64.b64encode(authority).decode()

    def body(kind: str, hooks: Sequence[Hook]) -> Object:
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": manager.recipe.name},
            "webhooks": [_webhook(manager, hook, port, bundle) for hook in hooks],
        }

    return [
        (
            "mutatingwebhookconfigurations",
            body("MutatingWebhookConfiguration", manager.mutating),
        ),
        (
            "validatingwebhookconfigurations",
            body("ValidatingWebhookConfiguration", manager.validating),
        ),
    ]


def _webhook(manager: Manager, hook: Hook, port: int, bundle: str) -> Object:
    selector: Object = {}
    if hook.resource == "pods":
        selector = {"matchExpressions": [{"key": manager.pod_label, "operator": "Exists"}]}
    return {
        "name": f"{hook.resource}.{manager.recipe.name}.test",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "objectSelector": selector,
        "clientConfig": {"url": f"https://127.0.0.1:{port}{hook.path}", "caBundle": bundle},
        "rules": [
            {
                "apiGroups": [hook.group],
                "apiVersions": [manager.version if hook.group else "v1"],
                "operations": list(hook.operations),
                "resources": [hook.resource],
            }
        ],
    }


async def _remove(api: RawClient, path: str) -> None:
    try:
        await api.delete(path)
    except ApiError as error:
        if error.status != 404:
            raise
