"""Messages of the DECISIONS stream: the audit log and the planner's memory.

Writer: the active planner, fenced. Readers: binders (one durable work consumer on
`decisions.act.>`), planners.

The *epoch* of a planner is the sequence, in DECISIONS, of its `EpochOpened` record. The sequence of
a decision is the fencing token that binders write into the Binding's annotations.
"""

from typing import Final, Literal, TypeAlias

import msgspec

from shared.contracts.cluster import StreamOpened
from shared.contracts.outcomes import Outcome
from shared.model.objects import GROUP_NAME_SCOPE
from shared.model.terms import SelectorTerm, Struct

#: The subject's last token of notes about past use.
PAST_USE: Final = "past-use"


class Cycle(Struct, frozen=True, kw_only=True):
    """The inputs that the deciding cycle had consumed: with a recording they reproduce the decision
    byte for byte.
    """

    cluster_seq: int
    outcomes_seq: int
    now_ms: int
    configuration: str
    #: Limit of pods that are decided and have no outcome yet; 0: no limit.
    in_flight_max: int = msgspec.field(default=0, name="under_way_max")
    #: When the newest `cluster.synced` had arrived at the planner, on the clock of `now_ms`. None:
    #: in a record of an older version, which used the watcher's own instant.
    synced_ms: int | None = None


class Binding(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One member on one node. `uid` is a precondition of the request, not a hint."""

    uid: str
    namespace: str
    name: str
    node: str


class VolumeChoice(Struct, frozen=True, kw_only=True):
    """The volume of a claim that waits for its first consumer, set before the pod is bound: an
    existing volume, or (`volume` "") one that the provisioner creates for `node`.
    """

    #: UID of the pod that it is for.
    pod_uid: str
    namespace: str
    claim: str
    claim_uid: str
    node: str
    volume: str = ""
    volume_uid: str = ""


class DeviceShare(Struct, frozen=True, kw_only=True):
    """What a claim consumes of a shareable device: name and quantity of each capacity."""

    #: Position in `DeviceChoice.devices`.
    index: int
    capacity: tuple[tuple[str, str], ...] = ()


class DeviceConditions(Struct, frozen=True, kw_only=True):
    """Conditions of a device in its claim's status: its pod is bound once all of `binding` are
    true, and the preparation fails once one of `failure` is.
    """

    #: Position in `DeviceChoice.devices`.
    index: int
    binding: tuple[str, ...]
    failure: tuple[str, ...] = ()


class ExtendedClaim(Struct, frozen=True, kw_only=True):
    """A ResourceClaim for extended resources of a pod, which the pod owns. The binder makes it,
    unless it exists, and writes into the pod's status which request serves which container.
    """

    #: Name, DeviceClass and number of devices of each request.
    requests: tuple[tuple[str, str, int], ...]
    #: (container, resource, request), each once.
    mappings: tuple[tuple[str, str, str], ...]


class DeviceChoice(Struct, frozen=True, kw_only=True):
    """The devices that a ResourceClaim gets, (request, driver, pool, device) each, before its pod
    is bound; without `devices`, it has some, and is reserved for the pod.
    """

    pod_uid: str
    namespace: str
    claim: str
    claim_uid: str
    node: str
    devices: tuple[tuple[str, str, str, str], ...] = ()
    #: Those of the devices that other claims may have, too.
    shares: tuple[DeviceShare, ...] = ()
    #: Requests with admin access.
    admin: tuple[str, ...] = ()
    #: Where the devices can be used; (): on all nodes; None: only on `node`.
    node_affinity: tuple[SelectorTerm, ...] | None = None
    #: DeviceClasses of the claim's requests that have configuration, which the binder copies.
    classes: tuple[str, ...] = ()
    #: Of the claim for the pod's extended resources: how it is made. `claim_uid` is "" until it has
    #: devices.
    extended: ExtendedClaim | None = None
    #: Of the devices that have conditions.
    conditions: tuple[DeviceConditions, ...] = ()


class ReservedRoom(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Capacity on one node for pods of the gang that do not exist yet: equal units of its
    `minResources`. Each is an open hold from here on, with the reason MinResources.
    """

    node: str
    #: msgpack of the `Shape` of one unit.
    shape: bytes
    #: Names of the units, as holds have UIDs of lost pods.
    uids: tuple[str, ...]
    #: When they end, if the gang's pods have not consumed them.
    until_ms: int


class GangDecision(Struct, frozen=True, kw_only=True, tag="gang.decided"):
    """Bind all of these members. If a member cannot be bound, the planner repairs or releases the
    gang. A decision never both binds and evicts.
    """

    gang_id: str
    #: "namespace/name" of the group, shown to users.
    gang: str
    #: The scope of the group's name, as in `PodGroup`.
    scope: str = GROUP_NAME_SCOPE
    dialect: str
    epoch: int
    attempt: int
    bindings: tuple[Binding, ...]
    #: How many of the bindings the gang needs to reach its quorum; the remaining ones are elastic
    #: extras.
    quorum: int
    #: Prove all bindings by dryRun=All before the first is sent.
    preflight: bool = False
    why: str = ""
    trace_id: str
    first_seen_ms: int
    cycle: Cycle
    #: W3C traceparent that the submitter left on the group, or on a member; "" when there is none.
    traceparent: str = ""
    #: UIDs of lost pods, or names of units (`reserves`), whose open holds end with this decision:
    #: their reservations go to these bindings. The `NoteClosed` that follows reports it to users; a
    #: crash between the two changes nothing.
    fills: tuple[str, ...] = ()
    #: Sequence of the decision that this one repeats, because the log will soon drop it; 0: none.
    again: int = 0
    #: Claims that the binder prepares before it binds their pods.
    volumes: tuple[VolumeChoice, ...] = ()
    devices: tuple[DeviceChoice, ...] = ()
    #: Sequence of the eviction for this gang that ends with this record: the capacity reserved for
    #: it goes to these bindings. 0: none.
    preemption: int = 0
    #: The topology domain that all members are in: a HyperNode's name, or "label=value"; "": none.
    domain: str = ""
    #: The rest of the gang's `minResources`, reserved with this decision.
    reserves: tuple[ReservedRoom, ...] = ()
    #: The pods get annotations that ask autoscalers to keep their nodes.
    undisturbed: bool = False
    #: The ProvisioningRequest whose capacity the pods use, and its class: they get annotations that
    #: name both. "": none.
    provisioning_request: str = ""
    provisioning_class: str = ""


class Victim(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pod to evict or delete, by UID."""

    uid: str
    namespace: str
    name: str


class EvictionDecision(Struct, frozen=True, kw_only=True, tag="eviction.decided"):
    """Remove these pods: for a preemptor whose placement is proven (`via` "eviction"), or to
    release a gang that cannot be whole ("delete").

    Each victim is removed by its UID: a new pod of the same name is never touched.
    """

    gang_id: str
    gang: str
    #: As in `GangDecision`.
    scope: str = GROUP_NAME_SCOPE
    epoch: int
    attempt: int
    victims: tuple[Victim, ...]
    via: Literal["eviction", "delete"]
    #: CamelCase: BindingRefused, RepairDeadline, RepairsBlocked, StartDeadline, DegradedGrace; of
    #: evictions for a preemptor Preempted (same queue) and Reclaimed (another queue's).
    reason: str
    #: One sentence for users: what happened, with the API server's or the kubelet's own words.
    why: str = ""
    #: The preemptor's bindings, dry-run with the evictions; empty for a release.
    bindings: tuple[Binding, ...] = ()
    trace_id: str
    first_seen_ms: int = 0
    cycle: Cycle
    #: As in `GangDecision`.
    traceparent: str = ""
    #: Of an eviction: a binder that has not started it by then drops it. 0: no limit.
    until_ms: int = 0


class EpochOpened(msgspec.Struct, frozen=True, kw_only=True, tag="epoch.opened"):
    """A planner has read everything before this record and is the writer from here on."""

    epoch: int
    planner: str
    at_ms: int
    cluster_epoch: int
    #: Sequence in CLUSTER up to which it had read. Started gangs that lack members there may get
    #: holds for them. 0: in a record of an older version.
    cluster_seq: int = 0
    #: Sequence in CLUSTER of the snapshot from which it started: it saw no losses before that.
    snapshot_seq: int = 0
    #: Whether the ids of gangs of one owner contain its namespace from here on. In the records of
    #: older versions they are the owner's UID alone.
    namespaced_ids: bool = False


class GangStarted(Struct, frozen=True, kw_only=True, tag="gang.started"):
    """Note: the gang's quorum was reached once; from here on it is *started*."""

    gang_id: str
    epoch: int
    at_ms: int
    attempt: int
    #: The cycle that noted it, as with decisions.
    cycle: Cycle | None = None


NoteKind = Literal[
    "repair",
    "release",
    "hold",
    "backoff",
    "start",
    "degraded",
    "preemption",
    "run",
    "reservation",
]
"""repair: some members of a starting gang are bound, fewer than its quorum. release: its bound pods
are being deleted. hold: capacity is reserved for a lost member. backoff: a pause after a failure.
start: placed, and must run by a deadline. degraded: started, below its quorum, and must be restored
by a deadline. run: its minimum runs, until its run limit. reservation: it waits, and capacity is
kept for it from an instant on. preemption: pods are evicted for the gang, and their capacity is
reserved for it; the `EvictionDecision` itself opens it, the `GangDecision` that names it or a
`NoteClosed` closes it.
"""


Rooms: TypeAlias = tuple[tuple[bytes, tuple[tuple[str, int], ...]], ...]
"""(msgpack of a `Shape`, (node, number of pods of it)): capacity that is kept for a gang."""


class NoteOpened(Struct, frozen=True, kw_only=True, tag="note.opened"):
    """Note: a repair, release, hold or backoff began; its deadline is an instant in this log.

    Opened again while it is open, a note of the same kind (a hold: of the same pods) replaces the
    one before it. A release has no deadline: `until_ms` is 0, it ends when nothing is left of what
    it releases.
    """

    gang_id: str
    epoch: int
    kind: NoteKind
    at_ms: int
    until_ms: int
    reason: str
    #: Number of decisions to bind that the gang has had so far.
    attempt: int = 0
    decision_seq: int = 0
    #: Of a hold: the lost pod's UID, or a name instead of it if no planner saw the loss.
    pod_uids: tuple[str, ...] = ()
    #: Role of the lost pod, and msgpack of its `Shape`: the reservation for its successor.
    role: str = ""
    shape: bytes = b""
    #: The lost pod's namespace, and msgpack of its `Labels`: affinity terms of other pods may
    #: select them.
    namespace: str = ""
    labels: bytes = b""
    #: Node of the reservation; "": on no node yet.
    node: str = ""
    #: The node that the lost pod was on.
    lost_on: str = ""
    #: The API server's or the kubelet's words.
    message: str = ""
    cycle: Cycle | None = None
    #: Of a hold whose gang a `Workload` creates again: the workload's UID, the lost pod's part of
    #: it, and the gang's key, queue and priority, for the time in which the gang does not exist.
    workload: str = ""
    part: str = ""
    gang_key: tuple[str, str, str] | None = None
    queue: str = ""
    priority: int = 0
    #: Of a run: when its minimum was first seen running.
    since_ms: int = 0
    #: Of a reservation: what is kept for it, from `until_ms` on. Of one that is only held, until
    #: then: it is not known when that suffices.
    rooms: Rooms = ()


class NoteClosed(Struct, frozen=True, kw_only=True, tag="note.closed"):
    """Note: a repair, release, hold, backoff or deadline has ended, and how."""

    gang_id: str
    epoch: int
    kind: NoteKind
    at_ms: int
    reason: str
    #: UIDs of the pods whose open notes of this kind end; empty: all notes of the kind.
    #: Of a preemption: the victims that were refused.
    pod_uids: tuple[str, ...] = ()
    cycle: Cycle | None = None
    #: The reason in the words of the API server, or of a disruption budget.
    message: str = ""


class AccountUse(Struct, frozen=True, kw_only=True):
    """The past use of a queue, or of a user in it, up to an instant, and what it holds since."""

    queue: str
    #: None: the queue itself. "": all users that have no account of their own.
    user: str | None = None
    at_ms: int
    #: The average share of the cluster that it has held, by the half-life, in trillionths.
    past: int
    #: The dominant share that it holds from `at_ms` on, in millionths.
    held: int
    #: Whether it has held anything since its account was opened.
    used: bool = False


class UseCharged(Struct, frozen=True, kw_only=True, tag="use.charged"):
    """Note: the shares that these accounts hold have changed, or accounts were opened. It replaces
    what the log has of them. Only written with the policy `past-use`.
    """

    epoch: int
    at_ms: int
    accounts: tuple[AccountUse, ...] = ()
    #: (queue, user) of accounts that were dropped.
    forgotten: tuple[tuple[str, str | None], ...] = ()
    cycle: Cycle | None = None

    @property
    def gang_id(self) -> str:
        """Instead of the id of a gang, for the record's subject and its place in a cycle."""
        return PAST_USE


class OpenDecision(Struct, frozen=True, kw_only=True):
    """A decision that CLUSTER has not retired yet, as a checkpoint keeps it."""

    seq: int
    decision: GangDecision | EvictionDecision
    #: Its outcome, if that was read before the checkpoint: it will not be read again.
    outcome: Outcome | None = None
    outcome_seq: int = 0
    #: Of an eviction: no capacity is reserved for the gang any more, but some victims still exist.
    ended: bool = False


class OpenOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of an open decision that is too large for a page together with it."""

    outcome: Outcome
    outcome_seq: int


class OpenGang(Struct, frozen=True, kw_only=True):
    """State of a gang that outlives one decision. One that is too large for a page is written in
    parts with the same plain fields, each of which has some entries of the lists.
    """

    gang_id: str
    attempt: int = 0
    started: bool = False
    #: Failed attempts in a row.
    failures: int = 0
    #: (pod UID, node, instant until which the pair is avoided); node "": refused on whatever node.
    bad: tuple[tuple[str, str, int], ...] = ()
    first_seen_ms: int = 0
    notes: tuple[NoteOpened, ...] = ()
    #: Nodes on which a member failed after capacity had been reserved for it there: they get no
    #: second reservation.
    failed_on: tuple[str, ...] = ()
    #: Namespace and name, as decisions name them: another object may have that name by now.
    gang: str = ""
    scope: str = GROUP_NAME_SCOPE
    #: Consecutive evictions for it that failed; the instant before which it gets none; how the last
    #: one ended; refused victims, with the instant until which they are not chosen again.
    preemptions_failed: int = 0
    preempt_after_ms: int = 0
    preemption_ended: str = ""
    spared: tuple[tuple[str, int], ...] = ()
    #: The topology domain that it was placed in last.
    home: str = ""
    #: Number of missing members for which a planner that takes over opens no hold: their holds have
    #: expired, or they were evicted for another gang.
    holds_forgone: int = 0


PAST_RUN_STEPS: Final = 12


class PastRunsOfUser(Struct, frozen=True, kw_only=True):
    """The newest ended runs with a limit in one namespace of one queue, oldest first: one byte for
    each, in `PAST_RUN_STEPS` for each time that it was only half as long as its limit.
    """

    queue: str
    namespace: str
    parts: bytes = b""


class Checkpoint(Struct, frozen=True, kw_only=True, tag="checkpoint"):
    """All open decisions and notes as of sequence `up_to`, in pages of at most 512 KiB."""

    epoch: int
    up_to: int
    outcomes_seq: int
    #: Outcomes up to here were consumed by cycles before `up_to`.
    consumed_seq: int = 0
    #: The newest cycle's instant when it was written; 0: in a record of an older version.
    at_ms: int = 0
    #: As in the `EpochOpened` before it.
    namespaced_ids: bool = False
    page: int
    pages: int
    decisions: tuple[OpenDecision, ...] = ()
    gangs: tuple[OpenGang, ...] = ()
    #: Of decisions on this page or on earlier ones.
    outcomes: tuple[OpenOutcome, ...] = ()
    #: On the first page. No decision depends on them.
    past_runs: tuple[PastRunsOfUser, ...] = ()
    #: Of all queues and users, with the policy `past-use`.
    uses: tuple[AccountUse, ...] = ()


Act: TypeAlias = GangDecision | EvictionDecision
GangNote: TypeAlias = GangStarted | NoteOpened | NoteClosed
Note: TypeAlias = GangNote | UseCharged
DecisionRecord: TypeAlias = Act | Note | EpochOpened | Checkpoint | StreamOpened


def cycle_of(record: DecisionRecord) -> Cycle | None:
    """The cycle that wrote a record; None for records that no cycle writes, and for those of an
    older version.
    """
    if isinstance(record, EpochOpened | Checkpoint | StreamOpened):
        return None
    return record.cycle
