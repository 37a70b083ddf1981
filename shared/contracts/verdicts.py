"""Messages of the VERDICTS stream: the last word on each gang, for the gang's whole life.

Writer: the active planner, with its epoch. Reader: the controller, whose writes are a pure function
of one verdict.
"""

from typing import Literal

import msgspec

GangPhase = Literal["Pending", "Inqueue", "Starting", "Running", "Unknown", "Completed", "Gone"]
"""Pending: not admitted. Inqueue: admitted, waits for room or pods. Starting: decided, quorum not
yet placed. Running: quorum reached. Unknown: started, below quorum, with or without held room (the
conditions RoomHeld and Degraded report). Completed: all members ended. Gone: the group and its pods
are deleted; the verdict is purged after it.
"""


class Reason(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Why nodes or quotas refused, as data: `reason` is CamelCase or kube-scheduler's own words,
    `count` nodes.
    """

    reason: str
    count: int = 0
    #: How much is short, per resource, where the reason is one of amounts.
    resource: str = ""
    short: int = 0


class Condition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A condition of the group, in Volcano's and Kubernetes' vocabulary.

    Unschedulable: it waits, the message says for what. Scheduled: its quorum is placed.
    PartlyBound: members of it are bound, its quorum is not, and nothing can be released; the
    message names them. Degraded: it has started, is below its quorum, and no room is held for it.
    RoomHeld: capacity is reserved for lost members; the message names the members, the nodes and
        the time.
    Releasing: what is bound of it is being deleted, because it could not become whole.
    """

    type: str
    status: Literal["True", "False"]
    reason: str = ""
    message: str = ""
    since_ms: int = 0


class PodRef(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A member pod by name and UID; `node` where it is placed, `owner` only where the controller
    must find it.
    """

    uid: str
    name: str
    node: str = ""


class ShapeReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What the search found for one role and shape of a waiting gang."""

    role: str = ""
    wanted: int = 0
    #: How many of them would fit now, alone on the cluster as it is.
    fit: int = 0
    nodes: int = 0
    reasons: tuple[Reason, ...] = ()


class Why(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Why a gang waits: one sentence, and all of it."""

    #: CamelCase: NotEnoughResources, SearchBudgetExceeded (it may fit: the search for room was
    #: ended by its budget), NotEnoughPods, NotEnoughPodsOfTask, NotEnoughPodsOfSubGroup,
    #: QueueNotOpen, QueueMissing, Gated, ClusterViewStale, …; after a failed attempt BindingRefused
    #: (with the API server's words and the member's name), RepairDeadline, RepairsBlocked,
    #: StartDeadline, DegradedGrace; RepairRoom while what is missing of a gang bound in part finds
    #: no room; NotStarting while members are placed and do not run (with the kubelet's words): it
    #: waits for nothing of ours then.
    reason: str
    sentence: str
    since_ms: int = 0
    shapes: tuple[ShapeReport, ...] = ()
    quota: tuple[Reason, ...] = ()
    #: "namespace/name" of gangs that wait as well, and before which it gets nothing; foreign
    #: namespaces reduced to counts on writing.
    ahead: tuple[str, ...] = ()
    ahead_count: int = 0
    #: Likewise those of its queue that hold what it lacks, oldest first: they do not wait.
    holders: tuple[str, ...] = ()
    holders_count: int = 0


class Verdict(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag="gang.verdict"
):
    """Phase, counts and conditions of one gang; while it waits, why."""

    gang_id: str
    epoch: int
    at_ms: int
    #: Dialect of the group object; "" for a gang that exists only through its pods (no object to
    #: write to).
    dialect: str
    namespace: str
    name: str
    #: UID of the group object; "" when there is none.
    uid: str = ""
    #: UID of the common controller owner of a gang without object.
    owner_uid: str = ""
    #: The PodGroup of these bare pods (controllers=podgroup): to be made when `uid` is "", and
    #: named by the members in `unnamed`.
    group_wanted: str = ""
    queue: str = ""
    phase: GangPhase
    min_member: int = 0
    members: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    conditions: tuple[Condition, ...] = ()
    why: Why | None = None
    attempt: int = 0
    #: Members without a node that get PodScheduled=False with `why`; bounded by the largest gang
    #: one message holds.
    waiting: tuple[PodRef, ...] = ()
    #: Members placed by the newest decision, for their Scheduled events.
    placed: tuple[PodRef, ...] = ()
    #: Members that the newest eviction for another gang took, at most 100, where they were: for
    #: their Evict events. The condition Evicted says why.
    evicted: tuple[PodRef, ...] = ()
    #: Members that do not name `group_wanted` yet, at most 500; the remaining ones follow when
    #: these do.
    unnamed: tuple[PodRef, ...] = ()
    trace_id: str = ""
    first_seen_ms: int = 0
    #: The HyperNode that a gang with a topology was placed in last; "": none.
    domain: str = ""
