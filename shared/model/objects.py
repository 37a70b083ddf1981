"""The neutral model: the parts of Kubernetes objects that scheduling needs, in every dialect.

All objects are frozen. `shared.dialects` builds them from Kubernetes objects, the watcher publishes
them, the planner stores them. Units are fixed: cpu in milli-CPU, memory and storage in bytes,
everything else a count; instants in milliseconds since the epoch. Tuples of pairs are sorted by
their first item, so that equal values are equal bytes.

`shared.contracts` has the messages that contain these objects.
"""

from typing import Final, Literal, TypeAlias

from shared.model.devices import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from shared.model.reference_objects import (
    Budget,
    Claim,
    CsiDriver,
    CsiNode,
    HyperNode,
    Namespace,
    ProvisioningRequest,
    ResourceQuota,
    StorageCapacity,
    StorageClass,
    Topology,
    Volume,
    VolumeAttachment,
    Workload,
)
from shared.model.terms import (
    Labels,
    PodAffinity,
    Requirement,
    Resources,
    Selector,
    SelectorTerm,
    SpreadConstraint,
    Struct,
    TooLarge,
    WeightedTerm,
)

__all__ = [
    "DEVICE_PREFIX",
    "GANG_PREFIX",
    "GROUP_NAME_SCOPE",
    "KINDS",
    "QUEUE_ERRORS",
    "ClusterObject",
    "HostPort",
    "Labels",
    "LastRun",
    "NetworkTopology",
    "Node",
    "Owner",
    "Pod",
    "PodGroup",
    "PodPhase",
    "PriorityClass",
    "Queue",
    "QueueState",
    "ReferenceObject",
    "Requirement",
    "Resources",
    "SelectorTerm",
    "Shape",
    "SubGroup",
    "SubGroupSet",
    "Taint",
    "Toleration",
]

PodPhase = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
QueueState = Literal["", "Open", "Closed", "Closing", "Unknown"]


class Owner(Struct, frozen=True, kw_only=True):
    """The controller owner of an object (`metadata.ownerReferences` with `controller: true`)."""

    api_version: str
    kind: str
    name: str
    uid: str


class Toleration(Struct, frozen=True, kw_only=True):
    """`spec.tolerations[]`; empty strings mean what Kubernetes means by an absent field."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class Taint(Struct, frozen=True, kw_only=True):
    """`spec.taints[]` of a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class HostPort(Struct, frozen=True, kw_only=True):
    """A port that a container claims on its node; `ip` "" and "0.0.0.0" both mean every address."""

    port: int
    protocol: str = "TCP"
    ip: str = ""


class Disk(Struct, frozen=True, kw_only=True):
    """A disk that a pod mounts without a claim; `name` includes the volume's type."""

    name: str
    read_only: bool = False


GROUP_NAME_SCOPE: Final = "name"
"""The scope of gang names that kube-batch, Volcano and coscheduling share: any of their objects may
declare a gang of such a name. Gangs of two scopes are different gangs, whatever their names are.
"""
DEVICE_PREFIX: Final = "device:"
"""Prefix of an entry of `Shape.unsupported`: a resource that is a part of a device."""
GANG_PREFIX: Final = "gang:"
"""Prefix of an entry of `Shape.unsupported`: a sentence about an unsupported gang declaration."""
QUEUE_ERRORS: Final = "errors"
"""Key in `Queue.settings` of the reason why a queue cannot be used; its state is then Unknown."""


class ContainerDevices(Struct, frozen=True, kw_only=True):
    """The extended resources that one container requests, such as `nvidia.com/gpu`."""

    container: str
    #: Its position among the pod's init containers and then its containers.
    index: int
    #: It is an init container that ends before the containers start.
    short_lived: bool = False
    #: Resource, position of its name among those of all resources that the container requests, and
    #: amount (above 0).
    requests: tuple[tuple[str, int, int], ...]


class PodDevices(Struct, frozen=True, kw_only=True):
    """The devices that serve the extended resources of one pod, where its node has them by DRA."""

    pod_uid: str
    containers: tuple[ContainerDevices, ...]


class Shape(Struct, frozen=True, kw_only=True):
    """All properties of a pod that determine where it may run. Pods with equal shapes are
    interchangeable.

    A `Pod` carries its shape as msgpack bytes, so that the planner interns it with one dictionary
    look-up and decodes each distinct shape once.
    """

    #: The pod's requests, with init containers, sidecars and overhead counted as Kubernetes does,
    #: and "pods": 1.
    requests: Resources = ()
    node_selector: Labels = ()
    #: Terms of requiredDuringSchedulingIgnoredDuringExecution, any of which must match; None: no
    #: affinity given.
    node_affinity: tuple[SelectorTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    preferred_node_affinity: tuple[WeightedTerm, ...] = ()
    #: Terms about other pods; None: it has none.
    pod_affinity: PodAffinity | None = None
    spread: tuple[SpreadConstraint, ...] = ()
    #: Images of its containers and init containers with their tags, sorted, one per container.
    images: tuple[str, ...] = ()
    #: Names of PersistentVolumeClaims, those of ephemeral volumes (pod name and volume name)
    #: included.
    claims: tuple[str, ...] = ()
    #: The `claims` of ephemeral volumes, each with the UID of the pod, which must own it.
    own_claims: tuple[tuple[str, str], ...] = ()
    #: Names of DRA ResourceClaims; "?<name>" for a template that has no ResourceClaim yet.
    #: `PodDevices` only where the planner made the shape for one pod.
    device_claims: tuple[str | PodDevices, ...] = ()
    #: Disks of types that two pods on a node cannot share, sorted.
    disks: tuple[Disk, ...] = ()
    #: The pod's namespace where terms, claims or spread constraints are read in it, else "".
    namespace: str = ""
    #: Parts of the pod that the planner does not support: a field path, `DEVICE_PREFIX` and a
    #: resource, or `GANG_PREFIX` and a sentence. A pod with any is never bound.
    unsupported: tuple[str, ...] = ()


class Pod(Struct, frozen=True, kw_only=True):
    """A pod that is bound to a node, or is pending and names one of Tutti's schedulers, or is
    misdirected.
    """

    uid: str
    namespace: str
    name: str
    resource_version: int
    created_ms: int = 0
    #: msgpack of a `Shape`.
    shape: bytes
    #: Whether spec.schedulerName is one of Tutti's.
    ours: bool = False
    scheduler_name: str = ""
    #: Name of the group that it declares, in its own namespace; "" when it declares none.
    group_name: str = ""
    #: The scope in which `group_name` is unique: `Dialect.scope`.
    group_scope: str = GROUP_NAME_SCOPE
    #: True when `group_name` is the PodGroup that the podgroup controller creates for bare pods.
    group_implied: bool = False
    #: Gang size given on the pod itself (`scheduling.k8s.io/group-min-member`); 0 when absent.
    group_min_member: int = 0
    #: Whether nothing on the pod makes it a member of a gang: no group, also no implied one, and no
    #: gang size. An object may still claim all pods of its owner.
    one_by_one: bool = False
    #: True when the pods declare the gang completely, so that no group object is expected.
    group_self_declared: bool = False
    #: The group as this pod declares it; it has no UID, because there is no object. None: its gang
    #: has a group object, or other members declare the group, or it is only the members.
    declared_group: "PodGroup | None" = None
    #: Role in the gang (task name, replica type); "" when it has none.
    role: str = ""
    #: Rank within the role; -1 when unknown.
    index: int = -1
    priority: int = 0
    queue: str = ""
    owner: Owner | None = None
    #: spec.nodeName, "" until it is bound.
    node: str = ""
    #: Failed also if it ended with success because it was deleted or evicted (the watcher's
    #: `cluster_state`).
    phase: PodPhase = "Pending"
    #: status.reason: a kubelet's refusal reads OutOfcpu, NodeAffinity, …
    reason: str = ""
    #: The kubelet's reason why its containers do not run: "ImagePullBackOff: …".
    waiting: str = ""
    deleting: bool = False
    #: The condition DisruptionTarget is True: an eviction, a preemption, a taint, or a release.
    disrupted: bool = False
    #: The condition DisruptionTarget has the reason of a release: it was decided to delete the pod.
    released: bool = False
    #: When the API server bound it (condition PodScheduled); 0: it is not bound, or unknown.
    scheduled_ms: int = 0
    #: Names of its remaining scheduling gates.
    gates: tuple[str, ...] = ()
    #: Sequence of the decision that bound it (annotation); 0 if Tutti has not bound it.
    decision_seq: int = 0
    #: W3C traceparent from an annotation by the submitter; "" without one.
    traceparent: str = ""
    #: msgpack of its `Labels`, decoded only for selectors; b"": it has none.
    labels: bytes = b""
    #: status.nominatedNodeName.
    nominated_node: str = ""
    #: spec.preemptionPolicy is not Never.
    preempts: bool = True
    priority_class: str = ""
    #: Volcano's `volcano.sh/preemptable` on the pod: "true", "false" or "" when absent.
    preemptable: str = ""
    #: Volcano's `volcano.sh/task-priority`; None: absent, the pod's own priority counts.
    task_priority: int | None = None
    #: `volcano.sh/cooldown-time` in ms; 0: absent.
    cooldown_ms: int = 0
    #: status.startTime.
    started_ms: int = 0
    #: Restarts of all its containers.
    restarts: int = 0
    #: `Workload.name` of the workload that its labels name, in its namespace; "": none.
    workload: str = ""
    #: The pod's part of the workload; a pod replaces one of the same part. "": not known.
    part: str = ""
    #: It declares a gang and names `default-scheduler`, which does not read such declarations.
    misdirected: bool = False
    #: Its containers that request extended resources, if it is ours.
    extended: tuple[ContainerDevices, ...] = ()
    #: The shortest run limit that it states, in seconds; 0: none.
    run_limit_s: int = 0


class NetworkTopology(Struct, frozen=True, kw_only=True):
    """`spec.networkTopology` of a group or of a sub-group policy: keep its pods inside one domain
    of at most this tier (hard), or prefer to (soft).
    """

    mode: Literal["hard", "soft"] = "hard"
    #: 0: no tier is given.
    highest_tier: int = 0
    highest_tier_name: str = ""
    #: Node label whose values are the domains, for a topology by labels; "": by HyperNodes.
    label_key: str = ""
    #: Name of the `Topology` that has the levels between the keys of `label_key`; "": none.
    levels_of: str = ""


class SubGroup(Struct, frozen=True, kw_only=True):
    """`spec.subGroupPolicy[]`: pods that match `selector` and have `match_label_keys`, one sub-gang
    of `size` per distinct tuple of their values.

    In a gang with `PodGroup.sets` it is one sub-gang instead: the pods that have `name` in the
    label `label`, or those that `pods` names, or else those that name the group `name`.
    """

    name: str
    #: `SubGroupSet.name` of the set that it is in; "": the gang has no sets.
    set_name: str = ""
    #: Key of the label in which its pods have its name; "": none.
    label: str = ""
    #: Names of its pods, sorted; None: any.
    pods: tuple[str, ...] | None = None
    selector: Selector | None = None
    match_label_keys: tuple[str, ...] = ()
    size: int = 1
    min_sub_groups: int = 0
    topology: NetworkTopology | None = None


class SubGroupSet(Struct, frozen=True, kw_only=True):
    """A number of sub-gangs, or of other sets, that are placed together, or none of them."""

    name: str
    #: The set that it is in; "" for the outermost one, which is the gang.
    set_name: str = ""
    #: How many of its sub-gangs and sets must be placed, at least 1.
    least: int = 1
    topology: NetworkTopology | None = None
    #: Whether its pods are evicted only together.
    disrupted_whole: bool = False


class LastRun(Struct, frozen=True, kw_only=True):
    """What a group's status, or the verdict on it, says about members that have ended: the memory
    of them on the API server, which outlasts their pods and NATS' storage.
    """

    #: All members have ended.
    ended: bool = False
    #: The gang's attempt at that time; 0: unknown.
    attempt: int = 0
    succeeded: int = 0
    failed: int = 0
    #: (role, succeeded members) and (sub-gang, succeeded members), as in `Verdict`.
    succeeded_by_role: tuple[tuple[str, int], ...] = ()
    succeeded_by_part: tuple[tuple[str, int], ...] = ()
    #: As in `Verdict`.
    jobs: tuple[str, ...] = ()


class PodGroup(Struct, frozen=True, kw_only=True):
    """A gang as its dialect declares it.

    `by_owner` groups (a PodDisruptionBudget) claim the pods in their namespace whose controller has
    the UID `owner.uid`; all others claim the pods in their namespace that name them.
    """

    uid: str
    dialect: str
    namespace: str
    name: str
    resource_version: int
    created_ms: int = 0
    by_owner: bool = False
    owner: Owner | None = None
    #: The scope in which `name` is unique: `Dialect.scope`.
    scope: str = GROUP_NAME_SCOPE
    #: 0 means no gang: each member is placed by itself. Readers turn negative values into 0.
    min_member: int = 0
    min_task_member: tuple[tuple[str, int], ...] = ()
    #: None: not declared; the group is admitted at once.
    min_resources: Resources | None = None
    queue: str = ""
    #: Whether it is in its namespace's queue if it names none. Where admission sets the queue, the
    #: group has it already.
    queue_of_namespace: bool = False
    priority_class: str = ""
    #: The group's own priority, which counts before that of its class; None: it has none.
    priority: int | None = None
    #: Whether pods may be evicted for it. Its class and its pods may say no, too.
    preempts: bool = True
    #: Whether its members need one scheduler name and, where it has a priority, this priority and
    #: one preemption policy.
    uniform: bool = False
    #: Whether its members may be evicted only together.
    disrupted_whole: bool = False
    #: From this priority on its members are not evicted, unless `preemptable` is "true"; None: the
    #: priority does not protect them.
    protected_from: int | None = None
    #: Whether other schedulers have groups of this API, too: only a pod shows whose this one is.
    shared: bool = False
    #: Whether its status says that it was scheduled once.
    scheduled_once: bool = False
    #: The stored status.phase.
    phase: str = ""
    #: None: neither its status nor the verdict on it names a member that has ended.
    last_run: LastRun | None = None
    #: Whether the dialect's controller creates pods only after the group left Pending (Volcano).
    waits_for_inqueue: bool = False
    #: Whether it was made for pods that name no group: then its priority and queue are those that
    #: its members declare.
    made_for_pods: bool = False
    #: Whether it has no declared minimum: it is no gang, and each of its members is placed, waits
    #: and preempts by itself.
    one_by_one: bool = False
    #: Whether the workload for whose pods it was made has completed or failed: it makes none again.
    workload_ended: bool = False
    deleting: bool = False
    #: Settings from the group's `tutti.dev/` annotations: (key, value), keys as in
    #: `shared.contracts.annotations`.
    settings: Labels = ()
    #: The shortest run limit that it or the object above it states, in seconds; 0: none.
    run_limit_s: int = 0
    traceparent: str = ""
    #: The root of the Job's trace that the group continues; "": the group has its own trace.
    trace_root: str = ""
    #: Violations. A group with any is never planned, and its verdict lists them.
    errors: tuple[str, ...] = ()
    #: What the labels of its members' nodes must satisfy, beside the members' own constraints.
    nodes: tuple[Requirement, ...] = ()
    topology: NetworkTopology | None = None
    sub_groups: tuple[SubGroup, ...] = ()
    #: Sets of sub-groups, each after the one that it is in; the first one is the gang. With sets,
    #: `sub_groups` are sorted by name, and find their pods in one way.
    sets: tuple[SubGroupSet, ...] = ()
    #: The group of groups that it is a part of, in the same namespace: name and scope; "": none.
    parent: str = ""
    parent_scope: str = ""
    #: For a group of groups, which no pod names: how many of them must be placed together, at least
    #: 1. None: it is a group of pods.
    min_groups: int | None = None
    #: Name of the object whose templates made it; all groups of one tree need the same. "": none.
    made_from: str = ""
    #: `sla-waiting-time` in ms; 0: absent.
    sla_waiting_ms: int = 0
    #: `volcano.sh/preemptable` on the group: "true", "false" or "" when absent.
    preemptable: str = ""
    #: Volcano's annotations that policies read (task-topology, cooldown, revocable zone),
    #: unchanged.
    notes: Labels = ()


class Node(Struct, frozen=True, kw_only=True):
    """A node. `allocatable` includes "pods"."""

    uid: str
    name: str
    resource_version: int
    labels: Labels = ()
    allocatable: Resources = ()
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    #: (image name, bytes), sorted; as many as the kubelet reports.
    images: tuple[tuple[str, int], ...] = ()
    #: None: it is whole.
    too_large: TooLarge | None = None


class RunLimits(Struct, frozen=True, kw_only=True):
    """What a queue says about the run limits of its gangs, in seconds; None: its parent decides."""

    #: Of gangs that state none; 0: none.
    usual_s: int | None = None
    most_s: int | None = None
    notice_s: int | None = None
    #: Whether gangs are evicted at their limits.
    enforced: bool | None = None
    #: How long a gang waits until free capacity is kept for it that may never suffice; 0: never.
    hold_after_s: int | None = None


class Queue(Struct, frozen=True, kw_only=True):
    """A queue of either API."""

    uid: str
    dialect: str
    name: str
    resource_version: int
    created_ms: int = 0
    weight: int = 1
    capability: Resources = ()
    deserved: Resources = ()
    guarantee: Resources = ()
    reclaimable: bool = True
    parent: str = ""
    priority: int = 0
    state: QueueState = ""
    settings: Labels = ()
    #: Annotations `volcano.sh/hierarchy` and `-weights`, for hierarchical DRF.
    hierarchy: str = ""
    hierarchy_weights: str = ""
    #: `spec.dequeueStrategy`: "fifo" (strict), "traverse" or "".
    dequeue_strategy: str = ""
    #: `spec.affinity` of the nodegroup policy: (kind, group names); kinds are "required",
    #: "preferred", "antiRequired", "antiPreferred".
    node_groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    run_limits: RunLimits = RunLimits()


class PriorityClass(Struct, frozen=True, kw_only=True):
    """A PriorityClass: value, and whether it is the cluster's default."""

    uid: str
    name: str
    resource_version: int
    value: int = 0
    global_default: bool = False
    preempts: bool = True


ReferenceObject: TypeAlias = (
    Namespace
    | ResourceQuota
    | Budget
    | Volume
    | Claim
    | StorageClass
    | CsiNode
    | CsiDriver
    | StorageCapacity
    | VolumeAttachment
    | HyperNode
    | Topology
    | DeviceClass
    | ResourceSlice
    | DeviceTaintRule
    | ResourceClaim
    | Workload
    | ProvisioningRequest
)
"""Kinds that the planner stores unchanged, for look-ups."""

ClusterObject: TypeAlias = Node | Pod | PodGroup | Queue | PriorityClass | ReferenceObject

KINDS: dict[str, type[ClusterObject]] = {
    "namespace": Namespace,
    "resourcequota": ResourceQuota,
    "budget": Budget,
    "storageclass": StorageClass,
    "csidriver": CsiDriver,
    "csinode": CsiNode,
    "storagecapacity": StorageCapacity,
    "volumeattachment": VolumeAttachment,
    "volume": Volume,
    "claim": Claim,
    "deviceclass": DeviceClass,
    "devicetaintrule": DeviceTaintRule,
    "resourceslice": ResourceSlice,
    "resourceclaim": ResourceClaim,
    "priorityclass": PriorityClass,
    "queue": Queue,
    "node": Node,
    "hypernode": HyperNode,
    "topology": Topology,
    "workload": Workload,
    "provisioningrequest": ProvisioningRequest,
    "podgroup": PodGroup,
    "pod": Pod,
}
"""Neutral kinds, as they appear in subjects (`cluster.<kind>`): objects come before those that
refer to them.
"""
