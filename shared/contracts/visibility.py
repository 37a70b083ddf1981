"""The objects of the API `visibility.tutti.dev/v1alpha1`, as JSON: what users may read of Tutti.

Served by services/api (ADR 0092); its OpenAPI document is generated from these structs. Field names
are camelCase, instants RFC 3339 in UTC, amounts quantities. A field is left out while it has its
default.
"""

from datetime import datetime
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

import msgspec

GROUP: Final = "visibility.tutti.dev"
VERSION: Final = "v1alpha1"
ApiVersion: TypeAlias = Literal["visibility.tutti.dev/v1alpha1"]
API_VERSION: Final[ApiVersion] = "visibility.tutti.dev/v1alpha1"

K = TypeVar("K", bound=str)
S = TypeVar("S")


class _Api(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """The base of all structs here."""


class ObjectMeta(_Api, frozen=True, kw_only=True):
    """Standard metadata."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None


class ListMeta(_Api, frozen=True, kw_only=True):
    """Standard metadata of a list."""

    resource_version: str = ""
    #: Token for the next page; "": this is the last one.
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _Read(_Api, Generic[K, S], frozen=True, kw_only=True):
    """An object that is read."""

    api_version: ApiVersion
    kind: K
    metadata: ObjectMeta
    status: S


class _List(_Api, Generic[K, S], frozen=True, kw_only=True):
    """A list of objects."""

    api_version: ApiVersion
    kind: K
    metadata: ListMeta
    items: tuple[S, ...]


class ManifestsSpec(_Api, frozen=True, kw_only=True):
    """Manifests of workloads, groups and pods, as `kubectl create` takes them."""

    manifests: tuple[dict[str, Any], ...]


class _Question(_Api, Generic[K, S], frozen=True, kw_only=True):
    """A question about manifests, which is created and not stored."""

    api_version: ApiVersion
    kind: K
    metadata: ObjectMeta | None = None
    spec: ManifestsSpec
    status: S | None = None


class GangCondition(_Api, frozen=True, kw_only=True):
    """A condition of a gang: Unschedulable, Scheduled, PartlyBound, Degraded, RoomHeld, Releasing,
    OtherScheduler, DurationShortened, Reserved, RunLimit or Evicted.
    """

    type: str
    status: Literal["True", "False"]
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class MemberCounts(_Api, frozen=True, kw_only=True):
    """Members of a gang by the phase of their pods."""

    total: int
    pending: int
    running: int
    succeeded: int
    failed: int


class RoleStatus(_Api, frozen=True, kw_only=True):
    """Members of one role (task, replica type); `name` "" for members without one."""

    name: str
    members: int
    #: Members that are bound to a node.
    placed: int
    running: int


class NodePlacement(_Api, frozen=True, kw_only=True):
    """Members of a gang on one node."""

    node: str
    members: int


class NamedGangs(_Api, frozen=True, kw_only=True):
    """Gangs: the names (namespace/name) that the reader may see, and how many there are."""

    count: int
    names: tuple[str, ...] = ()


class PlacementRefusal(_Api, frozen=True, kw_only=True):
    """Why nodes or quotas refuse members: on how many nodes, and how much of a resource is
    missing.
    """

    reason: str
    nodes: int = 0
    resource: str = ""
    missing: str = ""


class RoleSearch(_Api, frozen=True, kw_only=True):
    """Result of the search for nodes for one role of a waiting gang."""

    name: str
    wanted: int
    #: Members that would fit now if the gang had no other members.
    fitting: int
    nodes: int
    refusals: tuple[PlacementRefusal, ...] = ()


class PendingStatus(_Api, frozen=True, kw_only=True):
    """Why a gang waits."""

    #: CamelCase, as in the reference of pending reasons.
    reason: str
    message: str
    since: datetime | None = None
    roles: tuple[RoleSearch, ...] = ()
    quota: tuple[PlacementRefusal, ...] = ()
    #: Gangs ahead of it in its queue.
    ahead: NamedGangs | None = None
    #: Placed gangs that hold the resources that it lacks, oldest first; of its queue if it lacks
    #: quota.
    holders: NamedGangs | None = None


class ExpectedStart(_Api, frozen=True, kw_only=True):
    """When a waiting gang is expected to start."""

    #: Without `earliest` and `latest` there is no estimate; `basis` has the reason.
    earliest: datetime | None = None
    latest: datetime | None = None
    #: A clause: what the instants rest on.
    basis: str = ""
    #: When the estimate was made.
    as_of: datetime | None = None


class GangStatus(_Api, frozen=True, kw_only=True):
    """What Tutti knows about a gang."""

    phase: Literal["Pending", "Inqueue", "Starting", "Running", "Unknown", "Completed"]
    #: The object that its user created: kind in lower case and name, as "jobset/train"; "": none is
    #: known. Messages and lists of gangs name a gang with an owner by namespace and owner.
    owner: str = ""
    #: Its name for users: the owner, with its number among the owner's gangs, or its own name
    #: without the UID of an object. Commands, tables and the console show it.
    title: str = ""
    queue: str
    #: API of the group object (volcano, kubernetes, …); "": the gang has none.
    dialect: str = ""
    min_member: int
    members: MemberCounts
    #: Attempts to start it.
    attempt: int = 0
    conditions: tuple[GangCondition, ...] = ()
    pending: PendingStatus | None = None
    #: While it waits: its place among the waiting gangs of its queue, in the order in which they
    #: are tried, from 1; left out: not known. A new estimate does not change the version.
    position: int | None = None
    expected_start: ExpectedStart | None = None
    roles: tuple[RoleStatus, ...] = ()
    #: By node's name; at most 1,000 nodes.
    placement: tuple[NodePlacement, ...] = ()
    #: The topology domain of its last placement.
    domain: str = ""
    node_pool: str = ""
    trace_id: str = ""
    #: The trace in Jaeger's user interface; "": no address of Jaeger is configured, or the trace is
    #: not among those that are exported.
    trace_url: str = ""


class Gang(_Read[Literal["Gang"], GangStatus], frozen=True, kw_only=True):
    """Pods that are placed together, or none of them."""


class GangList(_List[Literal["GangList"], Gang], frozen=True, kw_only=True):
    """Gangs, by namespace and name."""


class QueueAmounts(_Api, frozen=True, kw_only=True):
    """One resource of a queue, its subtree included."""

    resource: str
    used: str
    #: Requests of gangs that wait for free capacity.
    wanted: str
    #: Minima of admitted gangs that have not started.
    promised: str
    #: Reservations for lost members.
    reserved: str
    guarantee: str
    #: Its fair share now; "": none is computed.
    deserved: str = ""
    #: The most that it may use; "": no limit.
    limit: str = ""
    #: Of the whole cluster: what its nodes have, and how much of that gangs can use, of any queue;
    #: "": not known.
    cluster: str = ""
    usable: str = ""


class QueueGangs(_Api, frozen=True, kw_only=True):
    """Numbers of gangs of a queue."""

    running: int
    waiting: int
    not_admitted: int


class QueueReservation(_Api, frozen=True, kw_only=True):
    """Capacity that is kept for a gang without a pod on it, for one reason."""

    #: The gang, as namespace/name; "": one of a namespace that the user may not read.
    gang: str = ""
    #: MinResources, Preempting, or how the members were lost: PodFailed, NodeLost and others.
    reason: str
    #: Quantities by resource.
    resources: dict[str, str]
    #: Number of lost pods, or of parts of `minResources`.
    count: int
    #: When the last of it ends, unless pods use it before.
    until: datetime | None = None


class QueueStatus(_Api, frozen=True, kw_only=True):
    """What a queue uses, deserves and waits for."""

    #: Whether a Queue object exists; False: gangs name it only.
    exists: bool
    state: str = ""
    parent: str = ""
    weight: int
    priority: int
    #: Strictly first-in, first-out.
    strict: bool
    reclaimable: bool
    gangs: QueueGangs
    resources: tuple[QueueAmounts, ...] = ()
    #: Gangs that hold most members.
    holders: NamedGangs | None = None
    #: Its current limit, in a sentence; "": none.
    message: str = ""
    #: Reservations with the latest ends, at most 20, and the number of all.
    reservations: tuple[QueueReservation, ...] = ()
    reservations_count: int = 0
    #: Whether a policy, such as proportion or capacity, computes fair shares. `deserved` is "" also
    #: while one queue alone has gangs.
    shared: bool = True


class Queue(_Read[Literal["Queue"], QueueStatus], frozen=True, kw_only=True):
    """A queue of gangs."""


class QueueList(_List[Literal["QueueList"], Queue], frozen=True, kw_only=True):
    """Queues, by name."""


class NodeAmounts(_Api, frozen=True, kw_only=True):
    """One resource of a node. `free` is what pods may still request; it may be negative."""

    resource: str
    allocatable: str
    requested: str
    free: str


class NodeStatus(_Api, frozen=True, kw_only=True):
    """A node as the planner sees it."""

    ready: bool
    schedulable: bool
    #: Taints with an effect, as `key=value:effect`.
    taints: tuple[str, ...] = ()
    #: Its labels whose keys contain `topology`: region, zone, block, rack.
    topology: dict[str, str] = {}
    pods: int
    #: Members of gangs among its pods.
    members: int
    resources: tuple[NodeAmounts, ...] = ()


class Node(_Read[Literal["Node"], NodeStatus], frozen=True, kw_only=True):
    """Free capacity of one node."""


class NodeList(_List[Literal["NodeList"], Node], frozen=True, kw_only=True):
    """Nodes, by name."""


class TierFit(_Api, frozen=True, kw_only=True):
    """The domain of one tier of HyperNodes that holds the most further pods of a shape."""

    tier: str
    #: "": no domain holds any.
    domain: str = ""
    pods: int


class PodShapeStatus(_Api, frozen=True, kw_only=True):
    """Pods that members of gangs have, and how many more of them fit now. For pods with rules about
    other pods, the numbers are upper bounds.
    """

    #: Quantities by resource.
    requests: dict[str, str]
    node_selector: dict[str, str] = {}
    #: Members of gangs that are such pods, and those of them without a node.
    members: int
    waiting: int
    #: Further pods on all nodes: the largest gang of such pods that fits now.
    fits: int
    #: The node that holds the most of them; "": none holds any.
    node: str = ""
    fits_on_node: int
    #: The largest gang that fits into one domain, from the lowest tier up.
    tiers: tuple[TierFit, ...] = ()
    #: Pods that would fit if all free amounts were on one node. The larger the difference to
    #: `fits`, the more fragmented is the free capacity.
    unfragmented: int


class PodShape(_Read[Literal["PodShape"], PodShapeStatus], frozen=True, kw_only=True):
    """Equal pods of gangs, and the free capacity for more of them."""


class PodShapeList(_List[Literal["PodShapeList"], PodShape], frozen=True, kw_only=True):
    """The most common pod shapes, by name."""


class InstanceStatus(_Api, frozen=True, kw_only=True):
    """The state of one process of Tutti, as it reports it itself."""

    service: str
    ready: bool
    #: Why it is not ready.
    not_ready: tuple[str, ...] = ()
    #: True for the one planner or watcher that writes; other services are always active.
    active: bool
    version: str
    started: datetime | None = None


class Instance(_Read[Literal["Instance"], InstanceStatus], frozen=True, kw_only=True):
    """A process of a service of Tutti that runs now."""


class InstanceList(_List[Literal["InstanceList"], Instance], frozen=True, kw_only=True):
    """Processes of Tutti, by name."""


class DecidedPod(_Api, frozen=True, kw_only=True):
    """A pod that is bound to `node`, or evicted (`node` "")."""

    namespace: str
    name: str
    uid: str
    node: str = ""
    #: It could not be bound.
    unbound: bool = False
    #: When a bound pod ended or was deleted, and its phase or Deleted. Left out: it has not, or
    #: that was before the answering service started.
    ended: datetime | None = None
    end: str = ""


class DecisionFailure(_Api, frozen=True, kw_only=True):
    """A pod that could not be bound or evicted, and why."""

    namespace: str
    name: str
    message: str


class DecisionEvent(_Api, frozen=True, kw_only=True):
    """What followed a decision."""

    time: datetime
    #: Proved, ProofFailed (by a dry run), Bound, NotBound, Removed; of the gang, until its next
    #: decision: Started, and RepairBegun, RepairEnded and likewise for Release, Hold, Backoff,
    #: Start, Degraded and Preemption.
    type: str
    message: str = ""
    #: At most three of the pods that failed, and the number of all.
    failures: tuple[DecisionFailure, ...] = ()
    failures_count: int = 0
    #: Milliseconds that it took.
    took_ms: int = 0
    failed: bool = False


class DecisionStatus(_Api, frozen=True, kw_only=True):
    """One decision of the planner."""

    action: Literal["Bind", "Evict"]
    #: The gang that it was made for, as namespace/name.
    gang: str
    gang_id: str
    #: The gang's name for users, as in its own status.
    title: str = ""
    time: datetime
    #: When the planner first saw the gang.
    first_seen: datetime | None = None
    attempt: int
    reason: str = ""
    message: str = ""
    #: Pods in the decision; `pods` has those that the reader may see, at most 1,000.
    count: int
    pods: tuple[DecidedPod, ...] = ()
    domain: str = ""
    trace_id: str = ""
    #: The newest 50, without texts if a pod of the decision is hidden from the reader.
    events: tuple[DecisionEvent, ...] = ()


class Decision(_Read[Literal["Decision"], DecisionStatus], frozen=True, kw_only=True):
    """A decision to bind or evict pods; its name is its sequence in the log, in 12 digits."""


class DecisionList(_List[Literal["DecisionList"], Decision], frozen=True, kw_only=True):
    """Decisions, by namespace, the oldest first."""


class Displacement(_Api, frozen=True, kw_only=True):
    """Pods that would be evicted for a gang, by preemption in its queue or reclaim from others."""

    action: Literal["preempt", "reclaim"]
    members: int
    gangs: NamedGangs


class GangFit(_Api, frozen=True, kw_only=True):
    """Whether one gang would fit."""

    name: str
    #: "": the Fit's.
    namespace: str = ""
    members: int
    #: It would be placed now, beside the gangs before it in the manifests.
    fits: bool
    #: False: no set of nodes of this cluster could hold it even when empty and in service, or its
    #: quota or queue could not.
    ever: bool
    #: With `ever` False: nodes that are added could hold it.
    needs_nodes: bool = False
    #: Not set in answers of the API: it refuses the whole Fit then.
    refused: bool = False
    message: str = ""
    placement: tuple[NodePlacement, ...] = ()
    displaces: Displacement | None = None


class FitStatus(_Api, frozen=True, kw_only=True):
    """The planner's answer: whether all gangs would fit together, and each gang's."""

    fits: bool
    gangs: tuple[GangFit, ...] = ()
    #: The warnings of admission about the manifests, each with its place in them.
    warnings: tuple[str, ...] = ()


class Fit(_Question[Literal["Fit"], FitStatus], frozen=True, kw_only=True):
    """A question: would the gangs of these manifests fit? Nothing is created."""


class ExplainedScheduling(_Api, frozen=True, kw_only=True):
    """The scheduler of pods: whether Tutti schedules them (`taken`), and why or why not."""

    scheduler: str
    taken: bool
    sentence: str


class ExplainedDeclaration(_Api, frozen=True, kw_only=True):
    """A label, annotation or field in which pods declare a gang; whether it counts, and why."""

    place: str
    value: str
    #: The dialect that reads it; "": none does.
    dialect: str
    counts: bool
    sentence: str


class ExplainedObject(_Api, frozen=True, kw_only=True):
    """How one object of the manifests is understood."""

    #: "document 2".
    place: str
    #: "Pod team/train-0".
    title: str
    #: Gangs that it declares or joins, as namespace/name.
    gangs: tuple[str, ...] = ()
    #: How it is read, in sentences.
    facts: tuple[str, ...] = ()
    #: Where its pods declare a gang, by precedence.
    declared: tuple[ExplainedDeclaration, ...] = ()
    scheduling: tuple[ExplainedScheduling, ...] = ()
    #: What keeps its pods from being scheduled by Tutti as they stand.
    missing: tuple[str, ...] = ()
    #: What is not read, or has no effect, and why.
    ignored: tuple[str, ...] = ()


class ExplainedRole(_Api, frozen=True, kw_only=True):
    """The members of one role; `minimum` 0: the role has none."""

    role: str
    members: int
    minimum: int


class ExplainedGroup(_Api, frozen=True, kw_only=True):
    """One group of a tree of groups: its groups or pods, and how many of them start together."""

    name: str
    #: The group that it is in; "": it is the outermost one.
    parent: str
    #: 1 for the outermost group, 2 for the groups in it, and so on.
    level: int
    of: Literal["groups", "pods"]
    count: int
    minimum: int
    topology: str = ""


class ExplainedGang(_Api, frozen=True, kw_only=True):
    """A gang that the manifests declare."""

    #: Namespace/name.
    title: str
    declared_by: str
    #: Pods that are placed together or not at all; left out: the manifests do not say.
    minimum: int | None = None
    #: Its pods in the manifests.
    members: int
    roles: tuple[ExplainedRole, ...] = ()
    queue: str
    priority_class: str = ""
    topology: str = ""
    #: The smallest run limit that the objects state, and the field that states it.
    run_limit: str = ""
    #: The groups of a tree of groups, each followed by those in it.
    parts: tuple[ExplainedGroup, ...] = ()
    #: Tutti schedules all of its pods.
    scheduled: bool
    #: What is not in the manifests and must exist, or must be changed.
    missing: tuple[str, ...] = ()
    #: What is not in force, and why.
    ignored: tuple[str, ...] = ()


class ExplanationStatus(_Api, frozen=True, kw_only=True):
    """How the manifests are understood. `complete`: Tutti schedules every gang as it stands."""

    complete: bool
    gangs: tuple[ExplainedGang, ...] = ()
    objects: tuple[ExplainedObject, ...] = ()


class Explanation(_Question[Literal["Explanation"], ExplanationStatus], frozen=True, kw_only=True):
    """A question: how does Tutti understand these manifests? Nothing is created or looked up."""
