"""Kubernetes objects, typed: only the fields that scheduling reads. Decoding skips all others.

Absent and null mean the same, as in Kubernetes: the field has its empty value. (`decoding` removes
nulls on its slow path, so the types here need no `| None` for them.) A type includes None only
where absent differs from empty.

These structs follow the API; the field that has a struct names its place there. The kinds of
Tutti's CRDs are in `shared.kinds`, the planner's model in `shared.model`. One long file declares
all kinds, because the declarations have no logic and refer to each other.
"""

from datetime import datetime
from typing import Annotated, Any, TypeAlias

import msgspec

from shared.model.objects import Taint, Toleration
from shared.model.terms import Requirement

Quantity: TypeAlias = str | int | float
"""A resource amount as JSON may hold it; `quantities.amount` reads it."""

ResourceList: TypeAlias = dict[str, Quantity]

Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""The API's int64."""

Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""The API's int32. Custom resources with a lenient schema may contain larger numbers; decoding
refuses those.
"""


class KubeStruct(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False
):
    """The settings that all structs share. gc=False: decoded objects form trees, never cycles.

    Encoding omits fields with their default. This is right for an object that is created or
    replaced whole, and wrong for a merge patch that is to reset a number to 0.
    """


class Present(KubeStruct, frozen=True, kw_only=True):
    """A nested object of which only the presence matters; its fields are skipped."""


class OwnerReference(KubeStruct, frozen=True, kw_only=True):
    """A reference by name and UID: `metadata.ownerReferences[]`, a Command's target."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False

    @property
    def manifest(self) -> dict[str, Any]:
        """The reference as a part of a manifest."""
        manifest: dict[str, Any] = msgspec.to_builtins(self)
        return manifest


class ObjectMeta(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def version(self) -> int:
        """`resourceVersion` as an integer; 0 if absent. Kubernetes guarantees since 1.35 that
        versions can be compared; those of etcd always could.
        """
        return int(self.resource_version) if self.resource_version else 0

    @property
    def created_ms(self) -> int:
        """`creationTimestamp` in milliseconds since the epoch; 0 if absent."""
        return instant_ms(self.creation_timestamp)

    @property
    def controller(self) -> OwnerReference | None:
        """The owner with `controller: true`, if there is one."""
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None


class KubeObject(KubeStruct, frozen=True, kw_only=True):
    """The base of all kinds."""

    metadata: ObjectMeta = ObjectMeta()


def instant_ms(instant: datetime | None) -> int:
    """Milliseconds since the epoch; 0 for None."""
    return 0 if instant is None else int(instant.timestamp() * 1000)


class Condition(KubeStruct, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class Conditions(KubeStruct, frozen=True, kw_only=True):
    """A status of which only the conditions are read."""

    conditions: tuple[Condition, ...] = ()


# --- Pod ---


class NodeSelectorTerm(KubeStruct, frozen=True, kw_only=True):
    """One alternative of a node selector; a term without requirements matches nothing."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


class NodeSelector(KubeStruct, frozen=True, kw_only=True):
    """Terms, any of which must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredNodeTerm(KubeStruct, frozen=True, kw_only=True):
    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(KubeStruct, frozen=True, kw_only=True):
    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[PreferredNodeTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class LabelSelector(KubeStruct, frozen=True, kw_only=True):
    """metav1.LabelSelector; an empty one selects everything."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[Requirement, ...] = ()


class PodAffinityTerm(KubeStruct, frozen=True, kw_only=True):
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(KubeStruct, frozen=True, kw_only=True):
    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(KubeStruct, frozen=True, kw_only=True):
    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(KubeStruct, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(KubeStruct, frozen=True, kw_only=True):
    max_skew: Int32 = 1
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 = 1
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


class ResourceRequirements(KubeStruct, frozen=True, kw_only=True):
    requests: ResourceList = {}
    limits: ResourceList = {}


class ContainerPort(KubeStruct, frozen=True, kw_only=True):
    container_port: Int32 = 0
    host_port: Int32 = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class Container(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    #: "Always" makes an init container a sidecar.
    restart_policy: str = ""


class ClaimSource(KubeStruct, frozen=True, kw_only=True):
    claim_name: str = ""


class GceDisk(KubeStruct, frozen=True, kw_only=True):
    pd_name: str = ""
    read_only: bool = False


class AwsDisk(KubeStruct, frozen=True, kw_only=True):
    volume_id: str = msgspec.field(default="", name="volumeID")


class IscsiDisk(KubeStruct, frozen=True, kw_only=True):
    iqn: str = ""
    read_only: bool = False


class RbdImage(KubeStruct, frozen=True, kw_only=True):
    monitors: tuple[str, ...] = ()
    pool: str = "rbd"
    image: str = ""
    read_only: bool = False


class Volume(KubeStruct, frozen=True, kw_only=True):
    """`spec.volumes[]`: only the volume types that restrict a pod's nodes. A volume of another type
    has none of them set.
    """

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Present | None = None
    gce_persistent_disk: GceDisk | None = None
    aws_elastic_block_store: AwsDisk | None = None
    iscsi: IscsiDisk | None = None
    rbd: RbdImage | None = None


class SchedulingGate(KubeStruct, frozen=True, kw_only=True):
    name: str = ""


class PodResourceClaim(KubeStruct, frozen=True, kw_only=True):
    """`spec.resourceClaims[]`: an existing ResourceClaim by its name, or one from a template."""

    name: str = ""
    resource_claim_name: str = ""


class SchedulingGroup(KubeStruct, frozen=True, kw_only=True):
    """`spec.schedulingGroup`: the pod's group in Kubernetes' own gang API, since 1.36."""

    pod_group_name: str = ""


class WorkloadReference(KubeStruct, frozen=True, kw_only=True):
    """`spec.workloadRef`: its predecessor in Kubernetes 1.35; `name` is the Workload's."""

    name: str = ""


class PodSpec(KubeStruct, frozen=True, kw_only=True):
    scheduler_name: str = ""
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: ResourceList = {}
    #: Pod-level resources (`spec.resources`).
    resources: ResourceRequirements | None = None
    priority: Int32 = 0
    priority_class_name: str = ""
    preemption_policy: str = ""
    host_network: bool = False
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    active_deadline_seconds: Int64 = 0
    volumes: tuple[Volume, ...] = ()
    #: Claims of dynamic resource allocation.
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None


class ContainerStateWaiting(KubeStruct, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""


class ContainerState(KubeStruct, frozen=True, kw_only=True):
    """`state` of a container; `waiting` is None if it runs or has ended."""

    waiting: ContainerStateWaiting | None = None


class ContainerStatus(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    state: ContainerState = ContainerState()
    restart_count: Int32 = 0
    #: The resources that the kubelet has allocated, and those that it has applied. They differ from
    #: the spec during an in-place resize.
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None


class PodResourceClaimStatus(KubeStruct, frozen=True, kw_only=True):
    """`status.resourceClaimStatuses[]`: the ResourceClaim created for an entry of
    `spec.resourceClaims`; "" if the entry needs none.
    """

    name: str = ""
    resource_claim_name: str = ""


class PodStatus(KubeStruct, frozen=True, kw_only=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    start_time: datetime | None = None
    nominated_node_name: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    #: Pod-level resources, with the same meaning as a container's.
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None


class Pod(KubeObject, frozen=True, kw_only=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


# --- Node ---


class NodeSpec(KubeStruct, frozen=True, kw_only=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class ContainerImage(KubeStruct, frozen=True, kw_only=True):
    """`status.images[]` of a node: one image with all its names."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeStatus(KubeStruct, frozen=True, kw_only=True):
    allocatable: ResourceList = {}
    conditions: tuple[Condition, ...] = ()
    images: tuple[ContainerImage, ...] = ()


class Node(KubeObject, frozen=True, kw_only=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# --- budgets, priority classes ---


class DisruptionBudgetSpec(KubeStruct, frozen=True, kw_only=True):
    #: A number or a percentage ("50%"); None when absent.
    min_available: Int32 | str | None = None
    selector: LabelSelector | None = None


class DisruptionBudgetStatus(KubeStruct, frozen=True, kw_only=True):
    disruptions_allowed: Int32 = 0


class DisruptionBudget(KubeObject, frozen=True, kw_only=True):
    spec: DisruptionBudgetSpec = DisruptionBudgetSpec()
    status: DisruptionBudgetStatus = DisruptionBudgetStatus()


class PriorityClass(KubeObject, frozen=True, kw_only=True):
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"


# --- Status: the API server's response when it returns no object ---


class StatusCause(KubeStruct, frozen=True, kw_only=True):
    """`details.causes[]`: one violation, with its field."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: Int32 = 0


class Status(KubeStruct, frozen=True, kw_only=True):
    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    code: Int32 = 0
    details: StatusDetails = StatusDetails()
