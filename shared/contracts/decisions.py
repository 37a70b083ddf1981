"""Messages of the DECISIONS stream: the audit log and the planner's memory.

Writer: the active planner, fenced. Readers: binders (one durable work consumer on
`decisions.act.>`), planners.

The *epoch* of a planner is the sequence, in DECISIONS, of its `EpochOpened` record. The sequence of
a decision is the fencing token that binders write into the Binding's annotations.
"""

from typing import Literal, TypeAlias

import msgspec

from shared.contracts.cluster import StreamOpened
from shared.contracts.outcomes import Outcome


class Cycle(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What the cycle that decided had consumed: enough to reproduce it byte for byte from a
    recording.
    """

    cluster_seq: int
    outcomes_seq: int
    now_ms: int
    configuration: str
    #: How many pods might be decided and not answered yet; 0: any number.
    in_flight_max: int = msgspec.field(default=0, name="under_way_max")
    #: When the newest `cluster.synced` had arrived at the planner, on the clock of `now_ms`. None:
    #: in a record of an older version, which used the watcher's own instant.
    synced_ms: int | None = None


class Binding(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One member to one node. `uid` is a precondition, never only a hint."""

    uid: str
    namespace: str
    name: str
    node: str


class VolumeChoice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What a claim that waits for its first consumer gets before its pod is bound: an existing
    volume, or (`volume` "") one that its provisioner makes for `node`.
    """

    #: UID of the pod that it is for.
    pod_uid: str
    namespace: str
    claim: str
    claim_uid: str
    node: str
    volume: str = ""
    volume_uid: str = ""


class DeviceChoice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The whole devices that a ResourceClaim gets, (request, driver, pool, device) each, before its
    pod is bound.
    """

    pod_uid: str
    namespace: str
    claim: str
    claim_uid: str
    node: str
    devices: tuple[tuple[str, str, str, str], ...] = ()


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


class GangDecision(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag="gang.decided"
):
    """Bind all of these, or what could not be bound is repaired or released: it never binds and
    evicts.
    """

    gang_id: str
    #: "namespace/name" of the group, for people.
    gang: str
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
    #: their room goes to these bindings.
    #: The `NoteClosed` that follows says so to people; a crash between the two changes nothing.
    fills: tuple[str, ...] = ()
    #: Sequence of the decision that this one repeats, because the log will soon drop that; 0: none.
    again: int = 0
    #: What the binder does for members before it binds them.
    volumes: tuple[VolumeChoice, ...] = ()
    devices: tuple[DeviceChoice, ...] = ()
    #: Sequence of the eviction for this gang that ends with this record: the room kept for it goes
    #: to these bindings. 0: none.
    preemption: int = 0
    #: The topology domain that all members are in: a HyperNode's name, or "label=value"; "": none.
    domain: str = ""
    #: The rest of the gang's `minResources`, reserved with this decision.
    reserves: tuple[ReservedRoom, ...] = ()


class Victim(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pod to evict or delete, by UID."""

    uid: str
    namespace: str
    name: str


class EvictionDecision(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="eviction.decided"
):
    """Remove these pods: for a preemptor whose placement is proven (`via` "eviction"), or to
    release a gang that cannot be whole ("delete").

    Each victim is removed only under its UID: a pod made again under its name is never touched.
    """

    gang_id: str
    gang: str
    epoch: int
    attempt: int
    victims: tuple[Victim, ...]
    via: Literal["eviction", "delete"]
    #: CamelCase: BindingRefused, RepairDeadline, RepairsBlocked, StartDeadline, DegradedGrace; of
    #: evictions for a preemptor Preempted (same queue) and Reclaimed (another queue's).
    reason: str
    #: One sentence for people: what happened, with the API server's or the kubelet's own words.
    why: str = ""
    #: The preemptor's bindings, dry-run with the evictions; empty for a release.
    bindings: tuple[Binding, ...] = ()
    trace_id: str
    first_seen_ms: int = 0
    cycle: Cycle
    #: As in `GangDecision`.
    traceparent: str = ""
    #: Of an eviction: a binder that has not begun with it by then drops it. 0: no such end.
    until_ms: int = 0


class EpochOpened(msgspec.Struct, frozen=True, kw_only=True, tag="epoch.opened"):
    """A planner has read everything before this record and is the writer from here on."""

    epoch: int
    planner: str
    at_ms: int
    cluster_epoch: int


class GangStarted(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="gang.started"
):
    """Note: the gang's quorum was reached once; from here on it is *started*."""

    gang_id: str
    epoch: int
    at_ms: int
    attempt: int
    #: The cycle that noted it, as with decisions.
    cycle: Cycle | None = None


NoteKind = Literal["repair", "release", "hold", "backoff", "start", "degraded", "preemption"]
"""repair: a starting gang has something bound and not its quorum. release: what is bound of it is
being deleted. hold: room is owed for a lost member. backoff: a pause after a failure. start:
placed, and to run by a deadline. degraded: started, below its quorum, and to be restored by a
deadline. preemption: pods are evicted for the gang, and what they leave is kept for it; its opening
is the `EvictionDecision` itself, its end the `GangDecision` that names it, or a `NoteClosed`.
"""


class NoteOpened(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="note.opened"):
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
    #: Decisions to bind that were made of the gang so far.
    attempt: int = 0
    decision_seq: int = 0
    pod_uids: tuple[str, ...] = ()
    #: Role of the lost pod, and msgpack of its `Shape`: what is held, or kept for its successor.
    role: str = ""
    shape: bytes = b""
    #: The lost pod's namespace, and msgpack of its `Labels`: terms of others may be about them.
    namespace: str = ""
    labels: bytes = b""
    #: Where room is held; "": on no node yet.
    node: str = ""
    #: The node that the lost pod was on.
    lost_on: str = ""
    #: The API server's or the kubelet's words.
    message: str = ""
    cycle: Cycle | None = None
    #: Of a hold whose gang is made again by a `Workload`: its UID, the lost pod's part of it, and
    #: the gang's key, queue and priority, for as long as nothing of the gang exists.
    workload: str = ""
    part: str = ""
    gang_key: tuple[str, str, str] | None = None
    queue: str = ""
    priority: int = 0


class NoteClosed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="note.closed"):
    """Note: what `NoteOpened` began has ended, and how."""

    gang_id: str
    epoch: int
    kind: NoteKind
    at_ms: int
    reason: str
    #: Which of the gang's open notes of this kind, by the pods they are about; empty: all of them.
    #: Of a preemption: the victims that were refused.
    pod_uids: tuple[str, ...] = ()
    cycle: Cycle | None = None
    #: Why, in words: a budget's, the API server's.
    message: str = ""


class OpenDecision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A decision that CLUSTER has not retired yet, as a checkpoint keeps it."""

    seq: int
    decision: GangDecision | EvictionDecision
    #: What became of it, where that was read before the checkpoint: it will not be read again.
    outcome: Outcome | None = None
    outcome_seq: int = 0
    #: Of an eviction: nothing is kept for the gang any more, and pods it named are still there.
    ended: bool = False


class OpenGang(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a gang carries from decision to decision."""

    gang_id: str
    attempt: int = 0
    started: bool = False
    #: Failed attempts in a row.
    failures: int = 0
    #: (pod UID, node, instant until which the pair is avoided); node "": refused on whatever node.
    bad: tuple[tuple[str, str, int], ...] = ()
    first_seen_ms: int = 0
    notes: tuple[NoteOpened, ...] = ()
    #: Nodes on which a member has failed for which room was then held there: not a second time.
    failed_on: tuple[str, ...] = ()
    #: Namespace and name, as decisions name them: another object may have that name by now.
    gang: str = ""
    #: Evictions for it that came to nothing, in a row; until when it asks for none; how the last
    #: one ended; victims that were refused, with the instant until which they are left alone.
    preemptions_failed: int = 0
    preempt_after_ms: int = 0
    preemption_ended: str = ""
    spared: tuple[tuple[str, int], ...] = ()
    #: The topology domain that it was placed in last.
    home: str = ""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="checkpoint"):
    """Everything that is open as of sequence `up_to`, in pages of at most 512 KiB."""

    epoch: int
    up_to: int
    outcomes_seq: int
    #: Outcomes up to here were consumed by cycles before `up_to`.
    consumed_seq: int = 0
    #: The newest cycle's instant when it was written; 0: in a record of an older version.
    at_ms: int = 0
    page: int
    pages: int
    decisions: tuple[OpenDecision, ...] = ()
    gangs: tuple[OpenGang, ...] = ()


Act: TypeAlias = GangDecision | EvictionDecision
Note: TypeAlias = GangStarted | NoteOpened | NoteClosed
DecisionRecord: TypeAlias = Act | Note | EpochOpened | Checkpoint | StreamOpened


def cycle_of(record: DecisionRecord) -> Cycle | None:
    """The cycle that made a record; None: none did."""
    if isinstance(record, GangDecision | EvictionDecision | GangStarted | NoteOpened | NoteClosed):
        return record.cycle
    return None
