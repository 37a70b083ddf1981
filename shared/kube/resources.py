"""The resources of the API server that Tutti knows, and their paths."""

from functools import partial
from typing import Final
from urllib.parse import quote

import msgspec


class Resource(msgspec.Struct, frozen=True, order=True):
    """One kind as the API server serves it: the names in paths, RBAC and manifests.

    A kind whose API changes its version with Kubernetes has `further_versions`: `version` is the
    preferred one, and `shared.kube.served_versions` finds the one that the API server serves.
    """

    #: "" for the core group.
    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    #: Versions that are used where `version` is not served, the preferred ones first.
    further_versions: tuple[str, ...] = ()

    @property
    def variants(self) -> "tuple[Resource, ...]":
        """The kind in each of its versions, the preferred ones first."""
        return tuple(map(self.at, (self.version, *self.further_versions)))

    def at(self, version: str) -> "Resource":
        """The kind in this version only."""
        return msgspec.structs.replace(self, version=version, further_versions=())

    @property
    def api_version(self) -> str:
        """`apiVersion` of its manifests: "v1", "policy/v1"."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def title(self) -> str:
        """Its name in messages and metrics: "pods", "podgroups.scheduling.volcano.sh"."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Percent-encoded path of a collection, an object or its subresource.

        Without namespace a namespaced collection is that of all namespaces. Raises ValueError when
        the parts do not fit together (a namespace for a cluster-scoped kind, a subresource without
        a name, a name without a namespace).
        """
        if namespace and not self.namespaced:
            raise ValueError(
                f"{self.kind} is cluster-scoped: namespace {namespace!r} must be empty"
            )
        if name and self.namespaced and not namespace:
            raise ValueError(f"{self.kind} {name!r}: a namespace is needed")
        if subresource and not name:
            raise ValueError(f"{self.kind}/{subresource}: a name is needed")
        path = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if namespace:
            path = f"{path}/namespaces/{quote(namespace, safe='')}"
        path = f"{path}/{self.plural}"
        if name:
            # Names of RBAC objects may hold ":", which is legal in a path.
            path = f"{path}/{quote(name, safe=':')}"
        return f"{path}/{subresource}" if subresource else path


def _namespaced(
    api_version: str,
    kind: str,
    plural: str = "",
    further_versions: tuple[str, ...] = (),
    *,
    namespaced: bool = True,
) -> Resource:
    """A kind with this `apiVersion`; `plural` is for those that do not only get an s."""
    group, _, version = api_version.rpartition("/")
    return Resource(
        group, version, plural or f"{kind.lower()}s", kind, namespaced, further_versions
    )


_of_cluster: Final = partial(_namespaced, namespaced=False)


PODS: Final = _namespaced("v1", "Pod")
NODES: Final = _of_cluster("v1", "Node")
NAMESPACES: Final = _of_cluster("v1", "Namespace")
SECRETS: Final = _namespaced("v1", "Secret")
CONFIGMAPS: Final = _namespaced("v1", "ConfigMap")
CORE_EVENTS: Final = _namespaced("v1", "Event")
EVENTS: Final = _namespaced("events.k8s.io/v1", "Event")
LEASES: Final = _namespaced("coordination.k8s.io/v1", "Lease")
DEPLOYMENTS: Final = _namespaced("apps/v1", "Deployment")
PRIORITY_CLASSES: Final = _of_cluster("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses")
DISRUPTION_BUDGETS: Final = _namespaced("policy/v1", "PodDisruptionBudget")
RESOURCE_QUOTAS: Final = _namespaced("v1", "ResourceQuota")
VOLUMES: Final = _of_cluster("v1", "PersistentVolume")
VOLUME_CLAIMS: Final = _namespaced("v1", "PersistentVolumeClaim")
STORAGE_CLASSES: Final = _of_cluster("storage.k8s.io/v1", "StorageClass", "storageclasses")
CSI_NODES: Final = _of_cluster("storage.k8s.io/v1", "CSINode")
CSI_DRIVERS: Final = _of_cluster("storage.k8s.io/v1", "CSIDriver")
CSI_CAPACITIES: Final = _namespaced(
    "storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities"
)
VOLUME_ATTACHMENTS: Final = _of_cluster("storage.k8s.io/v1", "VolumeAttachment")
DEVICE_CLASSES: Final = _of_cluster("resource.k8s.io/v1", "DeviceClass", "deviceclasses")
RESOURCE_SLICES: Final = _of_cluster("resource.k8s.io/v1", "ResourceSlice")
RESOURCE_CLAIMS: Final = _namespaced("resource.k8s.io/v1", "ResourceClaim")
DEVICE_TAINT_RULES: Final = _of_cluster(
    "resource.k8s.io/v1beta2", "DeviceTaintRule", further_versions=("v1alpha3",)
)
PROVISIONING_REQUESTS: Final = _namespaced("autoscaling.x-k8s.io/v1", "ProvisioningRequest")
POD_TEMPLATES: Final = _namespaced("v1", "PodTemplate")
TOPOLOGIES_KAI: Final = _of_cluster("kai.scheduler/v1alpha1", "Topology", "topologies")
HYPERNODES: Final = _of_cluster("topology.volcano.sh/v1alpha1", "HyperNode")
PODGROUPS_VOLCANO: Final = _namespaced("scheduling.volcano.sh/v1beta1", "PodGroup")
QUEUES_VOLCANO: Final = _of_cluster("scheduling.volcano.sh/v1beta1", "Queue")
PODGROUPS_INCUBATOR: Final = _namespaced("scheduling.incubator.k8s.io/v1alpha1", "PodGroup")
QUEUES_INCUBATOR: Final = _of_cluster("scheduling.incubator.k8s.io/v1alpha1", "Queue")
PODGROUPS_SIGS: Final = _namespaced("scheduling.sigs.dev/v1alpha2", "PodGroup")
QUEUES_SIGS: Final = _of_cluster("scheduling.sigs.dev/v1alpha2", "Queue")
PODGROUPS_KUBERNETES: Final = _namespaced(
    "scheduling.k8s.io/v1", "PodGroup", further_versions=("v1beta1", "v1alpha3", "v1alpha2")
)
COMPOSITE_PODGROUPS: Final = _namespaced("scheduling.k8s.io/v1alpha3", "CompositePodGroup")
PODGROUPS_COSCHEDULING: Final = _namespaced("scheduling.x-k8s.io/v1alpha1", "PodGroup")
POD_GANGS: Final = _namespaced("scheduler.grove.io/v1alpha1", "PodGang")
PODGROUPS_KAI: Final = _namespaced("scheduling.run.ai/v2alpha2", "PodGroup")
JOBS_VOLCANO: Final = _namespaced("batch.volcano.sh/v1alpha1", "Job")
CRONJOBS_VOLCANO: Final = _namespaced("batch.volcano.sh/v1alpha1", "CronJob")
COMMANDS: Final = _namespaced("bus.volcano.sh/v1alpha1", "Command")
JOBFLOWS: Final = _namespaced("flow.volcano.sh/v1alpha1", "JobFlow")
JOBTEMPLATES: Final = _namespaced("flow.volcano.sh/v1alpha1", "JobTemplate")
SERVICES: Final = _namespaced("v1", "Service")
NETWORK_POLICIES: Final = _namespaced("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
REPLICATION_CONTROLLERS: Final = _namespaced("v1", "ReplicationController")
REPLICA_SETS: Final = _namespaced("apps/v1", "ReplicaSet")
STATEFUL_SETS: Final = _namespaced("apps/v1", "StatefulSet")
DAEMON_SETS: Final = _namespaced("apps/v1", "DaemonSet")
JOBS_BATCH: Final = _namespaced("batch/v1", "Job")
JOB_SETS: Final = _namespaced("jobset.x-k8s.io/v1alpha2", "JobSet")
LEADER_WORKER_SETS: Final = _namespaced("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
TRAIN_JOBS: Final = _namespaced("trainer.kubeflow.org/v1alpha1", "TrainJob")
RAY_CLUSTERS: Final = _namespaced("ray.io/v1", "RayCluster")
RAY_JOBS: Final = _namespaced("ray.io/v1", "RayJob")
RAY_SERVICES: Final = _namespaced("ray.io/v1", "RayService")
MPI_JOBS: Final = _namespaced("kubeflow.org/v2beta1", "MPIJob")
#: Those of training-operator.
TRAINING_JOBS: Final = tuple(
    _namespaced("kubeflow.org/v1", kind)
    for kind in ("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")
)
SPARK_APPLICATIONS: Final = _namespaced("sparkoperator.k8s.io/v1beta2", "SparkApplication")
CUSTOM_RESOURCE_DEFINITIONS: Final = _of_cluster(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition"
)
API_SERVICES: Final = _of_cluster("apiregistration.k8s.io/v1", "APIService")
ACCESS_REVIEWS: Final = _of_cluster("authorization.k8s.io/v1", "SubjectAccessReview")
TOKEN_REVIEWS: Final = _of_cluster("authentication.k8s.io/v1", "TokenReview")
CLUSTER_ROLES: Final = _of_cluster("rbac.authorization.k8s.io/v1", "ClusterRole")
CLUSTER_ROLE_BINDINGS: Final = _of_cluster("rbac.authorization.k8s.io/v1", "ClusterRoleBinding")
VALIDATING_WEBHOOKS: Final = _of_cluster(
    "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"
)
ADMISSION_POLICIES: Final = _of_cluster(
    "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies"
)
ADMISSION_POLICY_BINDINGS: Final = _of_cluster(
    "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"
)
MUTATING_WEBHOOKS: Final = _of_cluster(
    "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"
)
