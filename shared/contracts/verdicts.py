"""Messages of the VERDICTS stream: the newest verdict of each gang, for as long as the gang exists.

Writer: the active planner, with its epoch. Reader: the controller, whose writes are a pure function
of one verdict.
"""

from typing import Literal

from shared.contracts import subjects
from shared.contracts.pending_reasons import PendingReason
from shared.model.objects import LastRun
from shared.model.terms import Labels, Resources, Struct

GangPhase = Literal["Pending", "Inqueue", "Starting", "Running", "Unknown", "Completed", "Gone"]
"""Pending: not admitted. Inqueue: admitted, waits for free capacity or for pods. Starting: decided,
quorum not yet placed. Running: quorum reached. Unknown: started and below its quorum; the
conditions RoomHeld and Degraded say whether capacity is reserved for lost members. Completed: all
members have ended. Gone: the group and its pods are deleted; the verdict is purged afterwards.
"""


class Reason(Struct, frozen=True, kw_only=True):
    """Why nodes or quotas refused: `reason` is CamelCase or in kube-scheduler's words, `count` is
    the number of nodes.
    """

    reason: str
    count: int = 0
    #: How much is short, per resource, where the reason is one of amounts.
    resource: str = ""
    short: int = 0


class Condition(Struct, frozen=True, kw_only=True):
    """A condition of the group, in Volcano's and Kubernetes' vocabulary.

    Unschedulable: the gang waits; the message has the reason. Scheduled: its quorum is placed.
    PartlyBound: some members are bound, fewer than its quorum, and cannot be released; the message
    names them. Degraded: it has started, is below its quorum, and no capacity is reserved for it.
    RoomHeld: capacity is reserved for lost members; the message names members, nodes and time.
    Releasing: its bound pods are being deleted, because its quorum could not be placed.
    Provisioned: its ProvisioningRequest is, and its capacity is kept. ProvisioningFailed: the
    request failed or has lost its capacity, and another one follows; or the API server refuses it,
    or no autoscaler accepts it.
    OtherScheduler: pods of it name kube-scheduler, which does not read its group.
    DurationShortened: its group asks for a longer duration than the operator allows.
    Reserved: capacity is kept for it from an instant on, or now for some time; the message says
    when, where, and which gangs end before. RunLimit: its run limit is near, and it is evicted at
    an instant, or it has passed a limit that is not enforced.
    """

    type: str
    status: Literal["True", "False"]
    reason: str = ""
    message: str = ""
    since_ms: int = 0


class PodRef(Struct, frozen=True, kw_only=True):
    """A member pod by name and UID; `node` is "" until it is placed or nominated."""

    uid: str
    name: str
    node: str = ""


class ShapeReport(Struct, frozen=True, kw_only=True):
    """Result of the search for one role and shape of a waiting gang."""

    role: str = ""
    wanted: int = 0
    #: How many of them would fit now if the gang had no other members.
    fit: int = 0
    nodes: int = 0
    reasons: tuple[Reason, ...] = ()


class Why(Struct, frozen=True, kw_only=True):
    """Why a gang waits: one sentence, and the data behind it."""

    #: One of `PendingReason` in `shared/contracts/pending_reasons.py`, in CamelCase.
    reason: str
    sentence: str
    since_ms: int = 0
    #: The first roles and shapes, as many as fit into 32 KiB.
    shapes: tuple[ShapeReport, ...] = ()
    #: The first 32.
    quota: tuple[Reason, ...] = ()
    #: "namespace/name" of the gangs ahead of it in the queue; those of other namespaces are only
    #: counted when this is written on objects.
    ahead: tuple[str, ...] = ()
    ahead_count: int = 0
    #: Likewise placed gangs of its queue that hold the resources it lacks, oldest first.
    holders: tuple[str, ...] = ()
    holders_count: int = 0
    #: The number of all shapes, and of all reasons of quota, if not all are listed; 0: all are.
    shapes_count: int = 0
    quota_count: int = 0
    #: The reason of the condition PodScheduled=False of its waiting members, without those of
    #: `Verdict.unschedulable`; "": `reason`. See `shared/contracts/pod_reasons.py`.
    pod_reason: str = ""


class PodSet(Struct, frozen=True, kw_only=True):
    """Pods of one shape in a ProvisioningRequest: the pod after which their template is made, by
    name and UID, and their number.
    """

    name: str
    uid: str
    count: int
    #: What each of them requests, sorted by name, in Tutti's units (milli-CPUs, bytes, numbers);
    #: (): the same as the named pod. It is set for later pods that do not exist, of which only the
    #: gang's `minResources` are known.
    requests: Resources = ()


class Provisioning(Struct, frozen=True, kw_only=True):
    """The ProvisioningRequests of a gang, by their names in its namespace (ADR 0087)."""

    #: The one that must exist; "": none.
    request: str = ""
    class_name: str = ""
    #: Sorted by name.
    parameters: Labels = ()
    #: At most 32.
    pod_sets: tuple[PodSet, ...] = ()
    #: Those to delete, after `request` was created.
    obsolete: tuple[str, ...] = ()
    #: The UID of each obsolete request, in their order: another request of the same name stays. "":
    #: the cluster state has not shown it. () in verdicts of older planners.
    obsolete_uids: tuple[str, ...] = ()
    #: How often `request` was asked for again, because it was not seen for a minute: so the verdict
    #: differs from the last one, and the controller reads it.
    repeats: int = 0
    #: The API server's answer to the last attempt to create `request`; "": it has not refused it,
    #: or this planner does not know.
    refusal: str = ""


class Verdict(Struct, frozen=True, kw_only=True, tag="gang.verdict"):
    """Phase, counts and conditions of one gang, and the pending reason while it waits."""

    gang_id: str
    epoch: int
    at_ms: int
    #: Dialect of the group object; "" for a gang without an object.
    dialect: str
    namespace: str
    name: str
    #: UID of the group object; "" when there is none.
    uid: str = ""
    #: UID of the common controller owner of a gang without object.
    owner_uid: str = ""
    #: Name of the PodGroup of these bare pods (controllers=podgroup): the controller creates it
    #: while `uid` is "", and lets the members in `unnamed` name it.
    group_wanted: str = ""
    queue: str = ""
    phase: GangPhase
    min_member: int = 0
    members: int = 0
    pending: int = 0
    running: int = 0
    #: Members that have ended in the gang's present run, those whose pods are gone included.
    succeeded: int = 0
    failed: int = 0
    #: The number of succeeded members of each role, and of each sub-gang; at most 32 of either.
    succeeded_by_role: tuple[tuple[str, int], ...] = ()
    succeeded_by_part: tuple[tuple[str, int], ...] = ()
    #: UIDs of the Jobs that had members, at most 32, of a gang that has no pods.
    jobs: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    why: Why | None = None
    attempt: int = 0
    #: Members without a node, which get the condition PodScheduled=False with `why`. The node of a
    #: reference is where pods are being evicted for the member: it gets this nominatedNodeName.
    waiting: tuple[PodRef, ...] = ()
    #: New nodes would help this number of waiting members, the first ones of `waiting`: they get
    #: the reason Unschedulable, on which autoscalers act.
    unschedulable: int = 0
    #: After its members were Unschedulable they fitted, and the rest of its `minResources` did not:
    #: no member is marked again until the gang is placed or declares other `minResources`.
    out_of_reach: bool = False
    #: Members placed by the newest decision, and by earlier ones if no verdict has named them: for
    #: their Scheduled Events.
    placed: tuple[PodRef, ...] = ()
    #: Members that the newest eviction for another gang removed, at most 100, with the nodes they
    #: were on: for their Evict events. The condition Evicted has the reason.
    evicted: tuple[PodRef, ...] = ()
    #: Members of a gang that has ended, if autoscalers were asked to keep their nodes: the
    #: annotations that ask for it are removed.
    ended: tuple[PodRef, ...] = ()
    #: Members that do not name `group_wanted` yet, at most 500 at a time.
    unnamed: tuple[PodRef, ...] = ()
    #: The minimum in force that the members of a group made for bare pods declare on themselves; 0:
    #: they declare none, or the group is a user's.
    members_minimum: int = 0
    #: The queue in force that these members name; "": none, or as above.
    members_queue: str = ""
    #: None: nothing is to be written, and existing requests stay.
    provisioning: Provisioning | None = None
    trace_id: str = ""
    first_seen_ms: int = 0
    #: The HyperNode that a gang with a topology was placed in last; "": none.
    domain: str = ""
    #: The value of the node label that the gang's group requires (KAI's node pool); "": none.
    node_pool: str = ""

    @property
    def gang(self) -> str:
        """The gang's "namespace/name", for logs."""
        return f"{self.namespace}/{self.name}"

    @property
    def last_run(self) -> LastRun | None:
        """What the verdict says of members that have ended; None: none has."""
        ended = self.phase == "Completed"
        if not (ended or self.succeeded):
            return None
        return LastRun(
            ended=ended,
            attempt=self.attempt,
            succeeded=self.succeeded,
            failed=self.failed,
            succeeded_by_role=self.succeeded_by_role,
            succeeded_by_part=self.succeeded_by_part,
            jobs=self.jobs,
        )

    @property
    def request_subjects(self) -> frozenset[str]:
        """The subjects on which controllers read the verdict that write objects for its gang."""
        wanted_on: set[str] = set()
        if self.group_wanted:
            wanted_on.add(subjects.wanted(self.gang_id))
        if self.provisioning is not None:
            wanted_on.add(subjects.provisioning(self.gang_id))
        return frozenset(wanted_on)

    def waits_for(self, reason: PendingReason) -> bool:
        """Whether this is the gang's pending reason."""
        return self.why is not None and self.why.reason == reason
