"""The resources of the API server that Tutti knows, and their paths."""

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


def _of_cluster(group: str, version: str, plural: str, kind: str) -> Resource:
    return Resource(group, version, plural, kind, namespaced=False)


PODS: Final = Resource("", "v1", "pods", "Pod")
NODES: Final = _of_cluster("", "v1", "nodes", "Node")
NAMESPACES: Final = _of_cluster("", "v1", "namespaces", "Namespace")
SECRETS: Final = Resource("", "v1", "secrets", "Secret")
CONFIGMAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
CORE_EVENTS: Final = Resource("", "v1", "events", "Event")
EVENTS: Final = Resource("events.k8s.io", "v1", "events", "Event")
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
PRIORITY_CLASSES: Final = _of_cluster("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass")
DISRUPTION_BUDGETS: Final = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
RESOURCE_QUOTAS: Final = Resource("", "v1", "resourcequotas", "ResourceQuota")
VOLUMES: Final = _of_cluster("", "v1", "persistentvolumes", "PersistentVolume")
VOLUME_CLAIMS: Final = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
STORAGE_CLASSES: Final = _of_cluster("storage.k8s.io", "v1", "storageclasses", "StorageClass")
CSI_NODES: Final = _of_cluster("storage.k8s.io", "v1", "csinodes", "CSINode")
CSI_DRIVERS: Final = _of_cluster("storage.k8s.io", "v1", "csidrivers", "CSIDriver")
CSI_CAPACITIES: Final = Resource(
    "storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity"
)
VOLUME_ATTACHMENTS: Final = _of_cluster(
    "storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment"
)
DEVICE_CLASSES: Final = _of_cluster("resource.k8s.io", "v1", "deviceclasses", "DeviceClass")
RESOURCE_SLICES: Final = _of_cluster("resource.k8s.io", "v1", "resourceslices", "ResourceSlice")
RESOURCE_CLAIMS: Final = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
DEVICE_TAINT_RULES: Final = Resource(
    "resource.k8s.io",
    "v1beta2",
    "devicetaintrules",
    "DeviceTaintRule",
    namespaced=False,
    further_versions=("v1alpha3",),
)
PROVISIONING_REQUESTS: Final = Resource(
    "autoscaling.x-k8s.io", "v1", "provisioningrequests", "ProvisioningRequest"
)
POD_TEMPLATES: Final = Resource("", "v1", "podtemplates", "PodTemplate")
TOPOLOGIES_KAI: Final = _of_cluster("kai.scheduler", "v1alpha1", "topologies", "Topology")
HYPERNODES: Final = _of_cluster("topology.volcano.sh", "v1alpha1", "hypernodes", "HyperNode")
PODGROUPS_VOLCANO: Final = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
QUEUES_VOLCANO: Final = _of_cluster("scheduling.volcano.sh", "v1beta1", "queues", "Queue")
PODGROUPS_INCUBATOR: Final = Resource(
    "scheduling.incubator.k8s.io", "v1alpha1", "podgroups", "PodGroup"
)
QUEUES_INCUBATOR: Final = _of_cluster("scheduling.incubator.k8s.io", "v1alpha1", "queues", "Queue")
PODGROUPS_SIGS: Final = Resource("scheduling.sigs.dev", "v1alpha2", "podgroups", "PodGroup")
QUEUES_SIGS: Final = _of_cluster("scheduling.sigs.dev", "v1alpha2", "queues", "Queue")
PODGROUPS_KUBERNETES: Final = Resource(
    "scheduling.k8s.io",
    "v1",
    "podgroups",
    "PodGroup",
    further_versions=("v1beta1", "v1alpha3", "v1alpha2"),
)
COMPOSITE_PODGROUPS: Final = Resource(
    "scheduling.k8s.io", "v1alpha3", "compositepodgroups", "CompositePodGroup"
)
PODGROUPS_COSCHEDULING: Final = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
POD_GANGS: Final = Resource("scheduler.grove.io", "v1alpha1", "podgangs", "PodGang")
PODGROUPS_KAI: Final = Resource("scheduling.run.ai", "v2alpha2", "podgroups", "PodGroup")
JOBS_VOLCANO: Final = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job")
CRONJOBS_VOLCANO: Final = Resource("batch.volcano.sh", "v1alpha1", "cronjobs", "CronJob")
COMMANDS: Final = Resource("bus.volcano.sh", "v1alpha1", "commands", "Command")
JOBFLOWS: Final = Resource("flow.volcano.sh", "v1alpha1", "jobflows", "JobFlow")
JOBTEMPLATES: Final = Resource("flow.volcano.sh", "v1alpha1", "jobtemplates", "JobTemplate")
SERVICES: Final = Resource("", "v1", "services", "Service")
NETWORK_POLICIES: Final = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
REPLICATION_CONTROLLERS: Final = Resource(
    "", "v1", "replicationcontrollers", "ReplicationController"
)
REPLICA_SETS: Final = Resource("apps", "v1", "replicasets", "ReplicaSet")
STATEFUL_SETS: Final = Resource("apps", "v1", "statefulsets", "StatefulSet")
DAEMON_SETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet")
JOBS_BATCH: Final = Resource("batch", "v1", "jobs", "Job")
JOB_SETS: Final = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
LEADER_WORKER_SETS: Final = Resource(
    "leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet"
)
TRAIN_JOBS: Final = Resource("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob")
RAY_CLUSTERS: Final = Resource("ray.io", "v1", "rayclusters", "RayCluster")
RAY_JOBS: Final = Resource("ray.io", "v1", "rayjobs", "RayJob")
RAY_SERVICES: Final = Resource("ray.io", "v1", "rayservices", "RayService")
MPI_JOBS: Final = Resource("kubeflow.org", "v2beta1", "mpijobs", "MPIJob")
SPARK_APPLICATIONS: Final = Resource(
    "sparkoperator.k8s.io", "v1beta2", "sparkapplications", "SparkApplication"
)
CUSTOM_RESOURCE_DEFINITIONS: Final = _of_cluster(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"
)
API_SERVICES: Final = _of_cluster("apiregistration.k8s.io", "v1", "apiservices", "APIService")
ACCESS_REVIEWS: Final = _of_cluster(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview"
)
TOKEN_REVIEWS: Final = _of_cluster("authentication.k8s.io", "v1", "tokenreviews", "TokenReview")
CLUSTER_ROLES: Final = _of_cluster("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole")
CLUSTER_ROLE_BINDINGS: Final = _of_cluster(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding"
)
VALIDATING_WEBHOOKS: Final = _of_cluster(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
)
ADMISSION_POLICIES: Final = _of_cluster(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
)
ADMISSION_POLICY_BINDINGS: Final = _of_cluster(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
)
MUTATING_WEBHOOKS: Final = _of_cluster(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
)
