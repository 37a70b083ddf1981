"""Kueue: it admits Jobs and plain pod groups by quota, and leaves binding to a scheduler."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator, Recipe
from tests.controlplane.operators.managers import Manager, running_manager
from tests.controlplane.operators.own_certificates import OwnCertificate, make_objects
from tests.controlplane.operators.webhooks import Hook, Registration
from tests.controlplane.processes import Component

_GROUP: Final = ("kueue.x-k8s.io", "v1beta1")
_CLUSTER_QUEUES: Final = (*_GROUP, "clusterqueues")
_FLAVORS: Final = (*_GROUP, "resourceflavors")
_WORKLOADS: Final = (*_GROUP, "workloads")
_JOBS: Final = ("batch", "v1", "jobs")
_PODS: Final = ("", "v1", "pods")
_CREATE: Final = ("CREATE",)

KUEUE: Final = Manager(
    recipe=Recipe(
        name="kueue",
        module="sigs.k8s.io/kueue",
        version="v0.14.0",
        main="cmd/kueue",
        crds="config/components/crd/bases",
        crd_files=tuple(
            f"kueue.x-k8s.io_{plural}.yaml"
            for plural in (
                "admissionchecks",
                "clusterqueues",
                "cohorts",
                "localqueues",
                "multikueueclusters",
                "multikueueconfigs",
                "provisioningrequestconfigs",
                "resourceflavors",
                "topologies",
                "workloadpriorityclasses",
                "workloads",
            )
        ),
    ),
    configuration="config.kueue.x-k8s.io/v1beta1",
    settings={
        "integrations": {"frameworks": ["batch/job", "pod"]},
        # It would serve an API of its own, on a fixed port.
        "featureGates": {"VisibilityOnDemand": False},
        # Without it the place of another certificate, that of its metrics, is compiled in.
        "internalCertManagement": {"enable": True},
    },
    webhooks=Registration(
        mutating_name="kueue-test",
        validating_name="kueue-test",
        mutating=(
            Hook("/mutate-batch-v1-job", *_JOBS, operations=_CREATE),
            Hook("/mutate--v1-pod", *_PODS, operations=_CREATE),
            Hook("/mutate-kueue-x-k8s-io-v1beta1-clusterqueue", *_CLUSTER_QUEUES, _CREATE),
            Hook("/mutate-kueue-x-k8s-io-v1beta1-resourceflavor", *_FLAVORS, _CREATE),
            Hook("/mutate-kueue-x-k8s-io-v1beta1-workload", *_WORKLOADS, _CREATE),
        ),
        validating=(
            Hook("/validate-batch-v1-job", *_JOBS),
            Hook("/validate--v1-pod", *_PODS),
            Hook("/validate-kueue-x-k8s-io-v1beta1-clusterqueue", *_CLUSTER_QUEUES),
            Hook("/validate-kueue-x-k8s-io-v1beta1-resourceflavor", *_FLAVORS),
            Hook("/validate-kueue-x-k8s-io-v1beta1-workload", *_WORKLOADS),
        ),
    ),
)
#: It insists on a certificate of its own, which these webhooks do not use: another serves them.
_CERTIFICATE: Final = OwnCertificate(
    namespace="kueue-system",
    secret="kueue-webhook-server-cert",
    configurations=(
        ("mutatingwebhookconfigurations", "kueue-mutating-webhook-configuration"),
        ("validatingwebhookconfigurations", "kueue-validating-webhook-configuration"),
    ),
)


@asynccontextmanager
async def running_kueue(
    operator: BuiltOperator, control_plane: ControlPlane, api: RawClient, folder: Path
) -> AsyncIterator[Component]:
    """Run it for batch Jobs and pods until the block is left.

    Args:
        operator: Where it was built.
        control_plane: The cluster that it works on.
        api: A client of that cluster with all rights.
        folder: An empty folder for its certificate, configuration and log.
    """
    await make_objects(api, _CERTIFICATE)
    async with running_manager(KUEUE, operator, control_plane, api, folder) as component:
        yield component
