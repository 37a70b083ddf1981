"""JobSet and LeaderWorkerSet: operators that are configured by a file and default their objects in
webhooks.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator, Recipe
from tests.controlplane.operators.started import started
from tests.controlplane.operators.webhooks import Hook, Registration, registered
from tests.controlplane.processes import Component, ReservedPort

_JOBSET_LABEL: Final = "jobset.sigs.k8s.io/jobset-name"
_JOBSETS: Final = ("jobset.x-k8s.io", "v1alpha2", "jobsets")
_LWS: Final = ("leaderworkerset.x-k8s.io", "v1", "leaderworkersets")
_LWS_LABEL: Final = "leaderworkerset.sigs.k8s.io/name"


class Manager(NamedTuple):
    """An operator of this kind: how it is built, configured and called."""

    recipe: Recipe
    #: API version of its configuration file, and what the file has beside the usual fields.
    configuration: str
    settings: Mapping[str, object]
    webhooks: Registration


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
    webhooks=Registration(
        mutating_name="jobset",
        validating_name="jobset",
        mutating=(
            Hook("/mutate-jobset-x-k8s-io-v1alpha2-jobset", *_JOBSETS, operations=("CREATE",)),
            Hook("/mutate--v1-pod", "", "v1", "pods", ("CREATE",), _JOBSET_LABEL),
        ),
        validating=(
            Hook("/validate-jobset-x-k8s-io-v1alpha2-jobset", *_JOBSETS),
            Hook("/validate--v1-pod", "", "v1", "pods", ("CREATE",), _JOBSET_LABEL),
        ),
    ),
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
    webhooks=Registration(
        mutating_name="lws",
        validating_name="lws",
        mutating=(
            Hook("/mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset", *_LWS),
            Hook("/mutate--v1-pod", "", "v1", "pods", ("CREATE",), _LWS_LABEL),
        ),
        validating=(Hook("/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset", *_LWS),),
    ),
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
    webhook.release()
    health.release()
    authority_pem = control_plane.authority.certificate_pem
    async with (
        started(component, "Serving webhook server"),
        registered(manager.webhooks, api, webhook.number, authority_pem),
    ):
        yield component


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
