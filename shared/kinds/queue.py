"""Queue of scheduling.volcano.sh/v1beta1: divides the cluster among its users."""

import re
from typing import Annotated, Final

import msgspec

from shared.kinds.fields import Column, Description, ResourceList, always, rules
from shared.kinds.metadata import KindObject
from shared.kube.objects import Int32, KubeStruct
from shared.kube.resources import QUEUES_VOLCANO

#: Kubernetes' and Volcano's limit for a label value, which a queue's name becomes.
NAME_CHARACTERS_MAX: Final = 63
_REFUSED: Final = re.compile(r"[^a-z0-9.-]+")


def queue_name(text: str) -> str:
    """The name that the queue `text` of another project gets, which Kubernetes allows; "" if no
    character is left.
    """
    return _REFUSED.sub("-", text.lower()).strip("-.")[:NAME_CHARACTERS_MAX].strip("-.")


def name_of_path(path: str) -> str:
    """The name for a path of YuniKorn, "root.team.a": the path without the root queue; "" for the
    root queue itself.
    """
    first, _, rest = path.partition(".")
    return queue_name(rest if first.lower() == ROOT_QUEUE else path)


STATES: Final = ("Open", "Closed", "Closing", "Unknown")

#: The root of the queue tree, and the queue of groups that name none.
ROOT_QUEUE: Final = "root"
DEFAULT_QUEUE: Final = "default"

#: Annotation of a queue: "true" if it was closed with its parent, "false" after each opening.
CLOSED_BY_PARENT: Final = "volcano.sh/closed-by-parent"


class Guarantee(KubeStruct, frozen=True, kw_only=True):
    """The resources that are reserved for a queue."""

    resource: ResourceList = msgspec.field(default_factory=dict)


class NodeGroups(KubeStruct, frozen=True, kw_only=True):
    """Names of node groups, which are values of the node label volcano.sh/nodegroup-name."""

    required: tuple[str, ...] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[str, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class QueueAffinity(KubeStruct, frozen=True, kw_only=True):
    """The groups of nodes that the queue's pods must use, prefer or must not use."""

    node_group_affinity: NodeGroups | None = None
    node_group_anti_affinity: NodeGroups | None = None


class ExtendCluster(KubeStruct, frozen=True, kw_only=True):
    """Another cluster in which jobs of the queue may run."""

    name: str = ""
    weight: Int32 = 0
    capacity: ResourceList = msgspec.field(default_factory=dict)


class QueueSpec(KubeStruct, frozen=True, kw_only=True):
    """The share of a queue and its limits."""

    weight: Annotated[
        Int32 | None,
        rules(
            "The weight of the queue's share relative to other queues.",
            minimum=1,
            maximum=65535,
            default=1,
        ),
    ] = None
    capability: Annotated[ResourceList | None, rules("The maximum amount of each resource.")] = None
    reclaimable: Annotated[
        bool | None,
        rules(
            "Whether other queues may reclaim the resources that this queue uses beyond its share."
        ),
    ] = None
    extend_clusters: tuple[ExtendCluster, ...] = ()
    guarantee: Guarantee | None = None
    affinity: QueueAffinity | None = None
    type: Annotated[str, rules("Stored; no controller reads it.")] = ""
    parent: Annotated[str, rules("The parent queue.")] = ""
    deserved: Annotated[
        ResourceList | None,
        rules("The amount of each resource up to which the queue may reclaim from other queues."),
    ] = None
    priority: Annotated[
        Int32,
        rules(
            "The priority of the queue; the scheduler prefers queues with a higher one.",
            minimum=0,
            default=0,
        ),
    ] = 0
    dequeue_strategy: Annotated[
        str,
        rules(
            "Whether a group that does not fit blocks the groups behind it: fifo does.",
            enum=["fifo", "traverse"],
            default="traverse",
        ),
    ] = ""


class Reservation(KubeStruct, frozen=True, kw_only=True):
    """The nodes and resources that are reserved for a queue."""

    nodes: tuple[str, ...] = ()
    resource: ResourceList = msgspec.field(default_factory=dict)


class QueueStatus(KubeStruct, frozen=True, kw_only=True):
    """The state of a queue, and the resources that its groups use."""

    state: Annotated[
        str,
        rules("The state of the queue. Only an Open queue accepts new groups.", enum=list(STATES)),
    ] = ""
    allocated: ResourceList | None = None
    reservation: Reservation | None = None
    pending: Int32 = 0
    running: Int32 = 0
    unknown: Int32 = 0
    inqueue: Int32 = 0
    completed: Int32 = 0


class Queue(KindObject, frozen=True, kw_only=True):
    """Queue has a share of the cluster, which the groups that are submitted to it use."""

    api_version: str = always("scheduling.volcano.sh/v1beta1")
    kind: str = always("Queue")
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()


QUEUE: Final = Description(
    struct=Queue,
    resource=QUEUES_VOLCANO,
    short_names=("q", "queue-v1beta1"),
    columns=(Column("PARENT", "string", ".spec.parent"),),
)
