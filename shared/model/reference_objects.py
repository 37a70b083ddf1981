"""Reference objects: namespaces, quotas, budgets, storage, topology and workloads; `devices` has
those of dynamic resource allocation.

The watcher reads them and the planner looks them up: each has only the fields that a decision
depends on. Units and ordering as in `shared.model.objects`.
"""

from typing import Literal, TypeAlias

from shared.model.terms import Labels, Resources, Selector, SelectorTerm, Struct, TooLarge


class ClusterScoped(Struct, frozen=True, kw_only=True):
    """The base of objects without a namespace."""

    uid: str
    name: str
    resource_version: int
    #: None: it is whole.
    too_large: TooLarge | None = None


class Namespaced(Struct, frozen=True, kw_only=True):
    """The base of objects in a namespace."""

    uid: str
    namespace: str
    name: str
    resource_version: int
    #: None: it is whole.
    too_large: TooLarge | None = None


class Namespace(ClusterScoped, frozen=True, kw_only=True):
    """A namespace: its labels, and the queue of groups in it that name none."""

    labels: Labels = ()
    queue: str = ""


class ResourceQuota(Namespaced, frozen=True, kw_only=True):
    """A ResourceQuota: hard limits and usage, under the quota's own names (`requests.cpu`,
    `limits.memory`, `count/pods`, `pods`, …).
    """

    hard: Resources = ()
    used: Resources = ()
    #: `spec.scopes`, and scope selectors in their place as "scopeName operator value,value".
    scopes: tuple[str, ...] = ()


class Budget(Namespaced, frozen=True, kw_only=True):
    """A PodDisruptionBudget: the fields that evictions depend on."""

    #: None matches no pod, an empty one every pod of the namespace (policy/v1).
    selector: Selector | None = None
    disruptions_allowed: int = 0


class Volume(ClusterScoped, frozen=True, kw_only=True):
    """A PersistentVolume."""

    capacity_bytes: int = 0
    access_modes: tuple[str, ...] = ()
    storage_class: str = ""
    #: "Block" or "Filesystem".
    mode: str = "Filesystem"
    phase: str = ""
    labels: Labels = ()
    #: `spec.claimRef`: namespace, name and UID; "" where absent.
    claim_namespace: str = ""
    claim_name: str = ""
    claim_uid: str = ""
    #: `spec.nodeAffinity.required`; None: usable everywhere.
    node_affinity: tuple[SelectorTerm, ...] | None = None
    #: CSI driver and handle (a migrated in-tree volume has its driver's name), "" for other kinds.
    driver: str = ""
    handle: str = ""
    deleting: bool = False


class Claim(Namespaced, frozen=True, kw_only=True):
    """A PersistentVolumeClaim."""

    #: None: the field is absent.
    storage_class: str | None = None
    volume_name: str = ""
    access_modes: tuple[str, ...] = ()
    request_bytes: int = 0
    mode: str = "Filesystem"
    selector: Selector | None = None
    #: Annotation `volume.kubernetes.io/selected-node`.
    selected_node: str = ""
    #: Whether its binding is complete (annotation `pv.kubernetes.io/bind-completed`).
    bind_completed: bool = False
    phase: str = ""
    #: UID of the pod that controls it (an ephemeral volume's); "" otherwise.
    owner_uid: str = ""
    deleting: bool = False


class StorageClass(ClusterScoped, frozen=True, kw_only=True):
    """A StorageClass."""

    provisioner: str = ""
    wait_for_first_consumer: bool = False
    allowed_topologies: tuple[SelectorTerm, ...] = ()
    default: bool = False


class CsiLimit(Struct, frozen=True, kw_only=True):
    """One driver on one node; `volumes_max` -1: no limit is known."""

    driver: str
    volumes_max: int = -1
    topology_keys: tuple[str, ...] = ()


class CsiNode(ClusterScoped, frozen=True, kw_only=True):
    """A CSINode: its name is the node's."""

    drivers: tuple[CsiLimit, ...] = ()


class CsiDriver(ClusterScoped, frozen=True, kw_only=True):
    """A CSIDriver: whether it publishes capacity."""

    storage_capacity: bool = False


class VolumeAttachment(ClusterScoped, frozen=True, kw_only=True):
    """A VolumeAttachment: the driver has attached the volume to the node, or is about to."""

    node: str = ""
    driver: str = ""
    #: Name of the PersistentVolume; "" for an inline volume.
    volume: str = ""


class StorageCapacity(Namespaced, frozen=True, kw_only=True):
    """A CSIStorageCapacity: the free capacity of one storage class for one segment of nodes."""

    storage_class: str = ""
    node_topology: Selector | None = None
    capacity_bytes: int = 0
    #: -1: absent.
    volume_bytes_max: int = -1


class HyperNodeMember(Struct, frozen=True, kw_only=True):
    """One entry of `spec.members`: nodes or HyperNodes, by exactly one of the three selectors."""

    kind: Literal["Node", "HyperNode"]
    exact: str = ""
    regex: str = ""
    labels: Selector | None = None


class HyperNode(ClusterScoped, frozen=True, kw_only=True):
    """`topology.volcano.sh` HyperNode; a lower tier means closer together."""

    tier: int = 1
    tier_name: str = ""
    members: tuple[HyperNodeMember, ...] = ()


class Topology(ClusterScoped, frozen=True, kw_only=True):
    """`kai.scheduler` Topology: the node labels of its levels, from the widest to the closest."""

    levels: tuple[str, ...] = ()


class Workload(Struct, frozen=True, kw_only=True):
    """An object at the top of its pods' owners whose controller creates them again when they are
    deleted. One that is being deleted, has finished or is suspended creates none, and is left out.
    """

    uid: str
    namespace: str
    #: Its resource's title and its own name, as in `Pod.workload`: "jobsets.jobset.x-k8s.io/train".
    name: str
    resource_version: int
    #: The object by which users know it, in lower case kind and name: the controller that owns it
    #: ("trainjob/train"), or itself ("jobset/train").
    title: str = ""
    #: UID of the controller that owns it; "": none does.
    owner_uid: str = ""
    #: Number of its parts, which are numbered from 0; None: its parts are not numbered.
    parts: int | None = None


ProvisioningState: TypeAlias = Literal[
    "", "Accepted", "Provisioned", "BookingExpired", "CapacityRevoked", "Failed"
]
"""The answer of an autoscaler to a ProvisioningRequest; "": none yet. See `autoscaling.x-k8s.io`.

Accepted: it tries to provide the capacity. Provisioned: the capacity exists, or was ordered, and is
kept for the request. BookingExpired: it is not kept any more, because the time is over or because
the pods have been bound. CapacityRevoked: it was taken away. Failed: it cannot be provided.
"""


class ProvisioningRequest(Namespaced, frozen=True, kw_only=True):
    """A ProvisioningRequest that was made for a gang; the first three fields are in its name."""

    gang_id: str
    #: The digest of what it requests (`shared.contracts.provisioning`).
    digest: str
    attempt: int
    state: ProvisioningState = ""
    #: Reason and message of the condition with the state; before that of the condition Provisioned.
    reason: str = ""
    message: str = ""
