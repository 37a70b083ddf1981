"""Gangs: their members, the counts of members by state, and their place in the backlog.

A pod belongs to the gang with its `key`: the group it names in its namespace, else its controller
owner, else the pod itself. The key does not depend on group objects, so a group that is recreated
under its name has the same gang, with its open notes and decisions. Only the gang's id changes,
which is the object's UID.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import msgspec

from services.gang_planner.core.state.gang_history import (
    Evicted,
    Failure,
    History,
    Kept,
    LateRoles,
    Run,
)
from services.gang_planner.core.state.gang_requests import GangRequest
from services.gang_planner.core.state.member_states import (
    ASSUMED,
    FAILED,
    FOREIGN,
    GATED,
    LEAVING,
    PLACED,
    RUNNING,
    STATES,
    SUCCEEDED,
    UNSUPPORTED,
    WAITING,
    PodTraits,
)
from services.gang_planner.core.state.needs import (
    Claimant,
    Delay,
    Explanation,
    FailedSearch,
    Need,
    Shortfall,
)
from services.gang_planner.core.state.past_use import Account
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.queues import DEFAULT, QueueEntry
from shared.contracts.decisions import Binding
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.verdicts import GangPhase
from shared.model.gang_keys import UNNAMED, GangKey
from shared.model.invariants import InvariantViolation
from shared.model.minimums import MemberDeclarations, binding_role_minima
from shared.model.objects import Owner, Pod, PodGroup, Resources, SubGroup

if TYPE_CHECKING:
    from services.gang_planner.core.state.node_capacity import NodeCapacity
    from services.gang_planner.core.state.reservations import Reservation

Belonging: TypeAlias = tuple[SubGroup, tuple[str, ...]] | None
"""The sub-group policy of a pod, and its values of the policy's keys; None: it is in none."""

OrderKey: TypeAlias = tuple[int | str, ...]
"""The sort key of gangs. All keys of one configuration have items of the same types."""

_NO_ROLE: Final = [0] * STATES
_LIVING: Final = (WAITING, ASSUMED, PLACED, RUNNING, GATED, UNSUPPORTED)


class Member:
    """One pod: its shape, the node on which it is accounted, and its reservation."""

    __slots__ = (
        *("charged", "gang", "leaving_ms", "past", "pod", "reservation", "shape", "slot", "state"),
    )

    def __init__(self, pod: Pod, shape: ShapeEntry) -> None:
        self.pod = pod
        #: When CLUSTER first showed it being deleted, on the watcher's clock; 0: it is not.
        self.leaving_ms = 0
        self.shape = shape
        self.gang: Gang | None = None
        self.state = FOREIGN
        #: Slot of the node on which the pod itself is accounted; None: on no node.
        self.slot: int | None = None
        #: The reservation of its newest decision; it ends by an event.
        self.reservation: Reservation | None = None
        #: Whether its gang and queue are charged for it.
        self.charged = False
        #: It does not count once its pod is gone: the pod was deleted before it had ended, or is of
        #: a run before its gang's present one.
        self.past = False

    def note_deletion(self, pod: Pod, at_ms: int) -> None:
        """Note when its pod is first being deleted."""
        if pod.deleting and not self.leaving_ms:
            self.leaving_ms = at_ms


class Bucket(msgspec.Struct, eq=False):
    """Gangs with the same signature, in order."""

    need: Need
    entries: list[tuple[OrderKey, GangKey, "Gang"]] = []
    #: `NodeCapacity.freed` at its refusal; None: not refused.
    refused_at: int | None = None
    #: The queue's ceiling refused it, not the nodes.
    short_of_quota: bool = False
    #: The search for nodes ended by its budget.
    budget_exceeded: bool = False
    #: At its refusal, all nodes together or its queue's capability were below its `minResources`:
    #: it blocks no other gang.
    minimum_unattainable: bool = False
    #: Title of the gang that must be placed first, because the queue is strict.
    blocked_by: str | None = None
    #: It would fit, but might delay this reservation.
    would_delay: Delay | None = None
    #: No instant is known for its gangs as of this state (`actions.reserve`).
    unplanned_at: tuple[object, ...] | None = None
    #: It would fit, but leaves the capacity to these queues, which deserve it.
    claimants: tuple[Claimant, ...] = ()
    #: It would not fit on empty nodes, as of `judged_at` in the nodes' changes: its queue's demand
    #: does not include it.
    unsatisfiable: bool = False
    judged_at: int | None = None
    #: Searches for victims that failed, by action.
    failed_searches: dict[str, FailedSearch] = {}
    #: Actions that have not searched for victims yet, only because of the limits of a cycle.
    searches_due: frozenset[str] = frozenset()
    #: The shortfall at its refusal; None: the nodes did not refuse it. See `placement.refusals`.
    shortfall: Shortfall | None = None
    #: Spaces (level, domain) in which one of its gangs did not fit, as of `failed_spaces_at`.
    #: True: unknown, because the search there exceeded its budget.
    failed_spaces: dict[tuple[int, int], bool] = {}
    failed_spaces_at: tuple[int, int] | None = None
    #: Cached by `verdicts.pending_reason`, as of `explained_at`.
    explanation: Explanation | None = None
    explained_at: int | None = None
    #: Even when empty, all nodes together would not hold it: cached by `verdicts.pending_reason`,
    #: as of this position in the nodes' changes.
    exceeds_nodes: bool = False
    exceeds_nodes_at: int | None = None
    #: The state of the tables when its first gang last failed to take reservations of gangs with
    #: lower priority.
    outranking_mark: tuple[object, ...] = ()

    def spaces_to_skip(self, node_capacity: "NodeCapacity") -> dict[tuple[int, int], bool]:
        """Spaces in which one of its gangs did not fit; empty when capacity was freed since."""
        now = node_capacity.freed, node_capacity.nodes.changes.position
        if self.failed_spaces_at != now:
            self.failed_spaces_at = now
            self.failed_spaces.clear()
        return self.failed_spaces

    @property
    def reason(self) -> PendingReason | None:
        """The reason of the last refusal; None: no attempt was made yet."""
        if self.blocked_by is not None:
            return PendingReason.BEHIND_IN_QUEUE
        if self.refused_at is None:
            return None
        if self.short_of_quota:
            return PendingReason.NOT_ENOUGH_QUOTA
        if self.would_delay is not None:
            return PendingReason.WOULD_DELAY
        if self.budget_exceeded:
            return PendingReason.SEARCH_BUDGET_EXCEEDED
        return PendingReason.NOT_ENOUGH_RESOURCES


class Promise(NamedTuple):
    """The promise of an admitted gang (`lifecycle.promises`)."""

    #: When CLUSTER first showed its group Inqueue; 0: the group is in another phase.
    since_ms: int = 0
    #: It was withdrawn, because the gang cannot start for too long.
    ended: bool = False


class Gang(msgspec.Struct, eq=False):
    """Members, counts and settings of one gang."""

    key: GangKey
    namespace: str
    name: str
    queue: QueueEntry
    #: UID of its group or only pod, or a hash; "" until the table knows whether it has a group.
    gang_id: str = ""
    group: PodGroup | None = None
    #: Values of its deleted group object; None: it has an object, or never had one.
    kept: Kept | None = None
    members: dict[str, Member] = {}
    counts: list[int] = msgspec.field(default_factory=lambda: [0] * STATES)
    late: LateRoles = LateRoles({}, 0)
    #: The sub-gangs of members by pod UID, cached by `sub_gangs`.
    parts: dict[str, tuple[tuple[SubGroup, ...], bytes, Belonging]] = {}
    roles: dict[str, list[int]] = {}
    #: Members that can be placed, by role and shape.
    waiting: dict[tuple[str, int], dict[str, Member]] = {}
    #: Number of members and reservations that take capacity, by shape.
    held: dict[int, int] = {}
    #: Its user's account, which is charged for what it holds; None: past use does not count.
    account: Account | None = None
    #: Grows whenever a member takes or leaves capacity.
    moves: int = 0
    priority: int = 0
    #: The declarations of its members, used where no object declares the gang.
    declarations: MemberDeclarations = msgspec.field(default_factory=MemberDeclarations)
    created_ms: int = 0
    history: History = msgspec.field(default_factory=History)
    run: Run = msgspec.field(default_factory=Run)
    #: The minima that its members last met; None: not met in this process's lifetime.
    minima_reached: tuple[int, tuple[tuple[str, int], ...]] | None = None
    traits: PodTraits = msgspec.field(default_factory=PodTraits)
    #: Admitted by the enqueue action, or its dialect needs no admission.
    admitted: bool = False
    #: Gang size of a deleted PodDisruptionBudget.
    minimum_kept: int | None = None
    #: Bindings of the newest decision, and earlier ones that no verdict has named yet: for
    #: Scheduled Events.
    latest: tuple[Binding, ...] = ()
    #: Failures that outcomes reported since the last cycle.
    unread: list[Failure] = []
    #: When CLUSTER first showed a bound member of the gang; 0: no member is bound.
    bound_ms: int = 0
    #: The newest eviction of members; None: there was none, or it has been placed since.
    evicted: Evicted | None = None
    promise: Promise = Promise()
    #: Its `minResources` when nodes that were added for its pods did not hold them
    #: (`Verdict.out_of_reach`); None: there was no such case, or it has been placed since.
    out_of_reach: Resources | None = None
    #: The number of nodes when its members became Unschedulable; None: they are not.
    nodes_when_marked: int | None = None
    #: The last member that a policy refused, with the API server's message.
    refusal: str = ""
    #: The reason for the end of its last hold; "" after a new one was opened.
    hold_ended: str = ""
    #: The results of the last assessment: see `lifecycle.assessment`.
    phase: GangPhase = "Pending"
    #: The phase under which `GangTable.phases` counts it.
    counted: str = ""
    #: None: it does not wait, or it waits in the backlog.
    pending_reason: PendingReason | None = None
    order: OrderKey = ()
    #: The ProvisioningRequest that it needs to start; None: none, or not assessed yet.
    request: GangRequest | None = None
    #: The bucket of the backlog in which it waits.
    bucket: Bucket | None = None
    #: Meaning of the last published verdict, and its time.
    shown: tuple[object, ...] = ()
    shown_ms: int = 0
    #: Whether it got its id, that of another object, after it had started under a former one.
    started_before: bool = False
    #: `NodeCapacity.freed` when its verdict was last built; None: never.
    shown_at: int | None = None

    @property
    def trace_root(self) -> str:
        """The root from which the gang's trace ids are derived."""
        return (self.group.trace_root if self.group is not None else "") or self.gang_id

    def have(self, role: str | None = None) -> int:
        """Members that count towards the quorum: assumed, placed, running or succeeded."""
        if role is None:
            counts, gone = self.counts, self.run.succeeded
        else:
            counts, gone = self.roles.get(role, _NO_ROLE), self.run.by_role.get(role, 0)
        return counts[ASSUMED] + counts[PLACED] + counts[RUNNING] + counts[SUCCEEDED] + gone

    def placed(self, role: str | None = None) -> int:
        """Members bound to an existing node that have not failed, and all succeeded ones."""
        if role is None:
            counts, gone = self.counts, self.run.succeeded
        else:
            counts, gone = self.roles.get(role, _NO_ROLE), self.run.by_role.get(role, 0)
        return counts[PLACED] + counts[RUNNING] + counts[SUCCEEDED] + gone

    @property
    def succeeded(self) -> int:
        """Members that have succeeded in its present run, deleted or not."""
        return self.counts[SUCCEEDED] + self.run.succeeded

    def able(self, role: str | None = None) -> int:
        """Members that count or could be placed."""
        counts = self.counts if role is None else self.roles.get(role, _NO_ROLE)
        return counts[WAITING] + self.have(role)

    @property
    def declared(self) -> int:
        """The declared gang size; 0: every member is placed on its own."""
        if self.group is not None:
            return self.group.min_member
        if self.minimum_kept is not None:
            return self.minimum_kept
        return self.declarations.declared.minimum or 1

    @property
    def one_by_one(self) -> bool:
        """Whether it has no declared minimum: each member waits and preempts by itself."""
        if self.group is not None:
            return self.group.one_by_one
        members = self.members.values()
        return (
            self.declared == 1
            and bool(members)
            and all(member.pod.one_by_one for member in members)
        )

    @property
    def size_known(self) -> bool:
        """Whether its minimum is known. It is not if the group was deleted and may be recreated."""
        if self.group is not None or self.key[0] in UNNAMED:
            return True
        return self.minimum_kept is not None or self.declarations.declared.minimum > 0

    @property
    def min_member(self) -> int:
        """The declared minimum, lowered by its late roles."""
        # Read several times for every changed gang, so it calls no other property.
        group = self.group
        if group is None:
            return self.declared
        if self.late.excused:
            return max(1, group.min_member - self.late.excused)
        return group.min_member

    @property
    def role_minima(self) -> tuple[tuple[str, int], ...]:
        """The per-role minima that apply, without late roles."""
        if self.group is None or not self.group.min_task_member:
            return ()
        minima = binding_role_minima(self.declared, self.group.min_task_member)
        if self.late.roles:
            return tuple((role, least) for role, least in minima if role not in self.late.roles)
        return minima

    @property
    def _left_over(self) -> bool:
        """Whether members without a group object need no more work: they have ended or are being
        deleted, or still run after the object was deleted.
        """
        if not self.living:
            return True
        return self.kept is not None and self.history.started and not self.counts[WAITING]

    @property
    def living(self) -> bool:
        """Whether any member runs or could run."""
        counts = self.counts
        return any(counts[state] for state in _LIVING)

    @property
    def bound(self) -> int:
        """Members on existing nodes that have not ended."""
        return self.counts[PLACED] + self.counts[RUNNING]

    @property
    def shown_phase(self) -> GangPhase:
        """The published phase. As in Volcano, a member on a node counts until its pod is gone: a
        running gang does not change its phase while one of its pods is being deleted.
        """
        may_run_on = self.phase in {"Unknown", "Inqueue", "Pending"} and not self.history.releasing
        if not (may_run_on and self.counts[LEAVING]):
            return self.phase
        there = self.placed() + sum(
            member.state == LEAVING and member.slot is not None for member in self.members.values()
        )
        return "Running" if there >= max(self.min_member, 1) else self.phase

    @property
    def quorum_runs(self) -> bool:
        """Whether members that run or have succeeded reach every minimum."""
        if self.counts[RUNNING] + self.succeeded < max(self.min_member, 1):
            return False
        gone = self.run.by_role
        for role, least in self.role_minima:
            of_role = self.roles.get(role, _NO_ROLE)
            if of_role[RUNNING] + of_role[SUCCEEDED] + gone.get(role, 0) < least:
                return False
        return True

    @property
    def completed(self) -> bool:
        """Whether its run has ended: every member has succeeded or failed, and these were at least
        the minimum, or their workload has ended. It stays true when their pods are deleted.
        """
        ended = self.counts[SUCCEEDED] + self.counts[FAILED]
        if ended != len(self.members):
            return False
        if self.run.ended or (self.group is not None and self.group.workload_ended):
            return True
        return ended + self.run.succeeded >= max(self.min_member, 1)

    @property
    def quorum_held(self) -> bool:
        """Whether members that count, including assumed ones, reach every minimum."""
        have = self.have()
        if not have or have < self.min_member:
            return False
        return all(self.have(role) >= count for role, count in self.role_minima)

    @property
    def quorum_placed(self) -> bool:
        """Whether placed members reach every minimum."""
        placed = self.placed()
        if not placed or placed < self.min_member:
            return False
        return all(self.placed(role) >= count for role, count in self.role_minima)

    # ----------------------------------------------------------------- changes

    def join(self, member: Member) -> bool:
        """Add a member, in its current state; return whether the members' declarations changed."""
        pod = member.pod
        member.gang = self
        self.members[pod.uid] = member
        self.traits.add(pod)
        self._count(member, member.state, 1)
        return self.declarations.add(pod)

    def leave(self, member: Member) -> bool:
        """Remove a member; return whether the members' declarations changed."""
        pod = member.pod
        self._count(member, member.state, -1)
        if not any(self.roles[pod.role]):
            # A gang whose pods come and go for ever may have one name for each.
            del self.roles[pod.role]
        del self.members[pod.uid]
        self.parts.pop(pod.uid, None)
        member.gang = None
        self.traits.remove(pod, is_last=not self.members)
        if not self.bound:
            self.bound_ms = 0
        return self.declarations.remove(pod)

    def follow(self, pod: Pod, before: Pod) -> bool:
        """Update the counts for a changed pod that stays in this gang, with the same role and
        shape; return whether the members' declarations changed.
        """
        traits = self.traits
        # Most changes are of a pod's node or phase.
        if pod.group_implied != before.group_implied:
            traits.implied += pod.group_implied - before.group_implied
        if pod.group_self_declared != before.group_self_declared:
            traits.self_declared += pod.group_self_declared - before.group_self_declared
        if pod.waiting != before.waiting:
            traits.stuck += bool(pod.waiting) - bool(before.waiting)
        if pod.run_limit_s != before.run_limit_s:
            traits.limited += bool(pod.run_limit_s) - bool(before.run_limit_s)
        if pod.priority != before.priority or pod.task_priority != before.task_priority:
            traits.rank_pod(pod)
        return self.declarations.replace(before, pod)

    def move(self, member: Member, state: int) -> None:
        """Change the state of a member."""
        before, counts = member.state, self.counts
        if WAITING in (before, state):
            self._count(member, before, -1)
            member.state = state
            self._count(member, state, 1)
        else:
            # The frequent case, written out: each member of large gangs passes here several times.
            member.state = state
            of_role = self.roles[member.pod.role]
            counts[before] -= 1
            of_role[before] -= 1
            counts[state] += 1
            of_role[state] += 1
        if self.bound_ms and not counts[PLACED] and not counts[RUNNING]:
            self.bound_ms = 0

    def assume(self, members: Collection[Member]) -> dict[tuple[str, int], int]:
        """Change waiting members to assumed after a decision, and count their capacity as held.

        Equal to moving and charging each member, except that the caller must charge the queue with
        the returned number of members by role and shape.
        """
        counts, waiting, held = self.counts, self.waiting, self.held
        for member in members:
            if member.state != WAITING:
                raise InvariantViolation(member.pod.uid, "was placed and did not wait")
            member.state, member.charged = ASSUMED, True
        taken: dict[tuple[str, int], int] = {}
        if len(members) == counts[WAITING]:
            taken = {key: len(group) for key, group in waiting.items()}
            waiting.clear()
        else:
            for member in members:
                key = member.pod.role, member.shape.id
                taken[key] = taken.get(key, 0) + 1
                group = waiting[key]
                del group[member.pod.uid]
                if not group:
                    del waiting[key]
        self.moves += 1
        counts[WAITING] -= len(members)
        counts[ASSUMED] += len(members)
        for (role, shape_id), count in taken.items():
            of_role = self.roles[role]
            of_role[WAITING] -= count
            of_role[ASSUMED] += count
            held[shape_id] = held.get(shape_id, 0) + count
        self.queue.holders[self] = None
        return taken

    def reshape(self, member: Member, shape: ShapeEntry) -> None:
        """Give a member another shape entry, after its labels match other pods' terms."""
        state = member.state
        self._count(member, state, -1)
        if member.charged:
            self.hold(member.shape, -1)
            self.hold(shape, 1)
        member.shape = shape
        self._count(member, state, 1)

    def hold(self, shape: ShapeEntry, count: int) -> None:
        """Add `count` (may be negative) held units of this shape, and charge the queue."""
        self.moves += 1
        held = self.held.get(shape.id, 0) + count
        if held:
            self.held[shape.id] = held
            self.queue.holders[self] = None
        else:
            del self.held[shape.id]
            if not self.held:
                del self.queue.holders[self]
        self.queue.charge(shape, count)
        if self.account is not None:
            self.account.charge(shape, count)

    def _count(self, member: Member, state: int, by: int) -> None:
        pod = member.pod
        self.counts[state] += by
        counts = self.roles.get(pod.role)
        if counts is None:
            counts = self.roles[pod.role] = [0] * STATES
        counts[state] += by
        if state == WAITING:
            key = (pod.role, member.shape.id)
            if by > 0:
                self.waiting.setdefault(key, {})[pod.uid] = member
                return
            group = self.waiting[key]
            del group[pod.uid]
            if not group:
                del self.waiting[key]

    @property
    def full_name(self) -> str:
        """`namespace/name`, for logs and messages."""
        return f"{self.namespace}/{self.name}"

    @property
    def owner(self) -> Owner | None:
        """The controller owner: of the group, else of the members."""
        if self.group is not None and self.group.owner is not None:
            return self.group.owner
        for member in self.members.values():
            if member.pod.owner is not None:
                return member.pod.owner
        return None

    @property
    def vacant(self) -> bool:
        """Whether the gang has neither a group object nor pods."""
        return self.group is None and not self.members

    @property
    def lacks_object(self) -> bool:
        """Whether its pods name a group object that does not exist."""
        return self.group is None and self.key[0] not in UNNAMED and not self.traits.self_declared

    @property
    def silent(self) -> bool:
        """Whether another scheduler manages it, or its object is deleted and no member waits.

        A group of an API that schedulers share is another scheduler's until one of Tutti's pods is
        its member. A gang that had such a pod keeps its verdict up to date without any.
        """
        if self.traits.ours:
            return self.group is None and self.lacks_object and self._left_over
        if self.group is None or self.group.by_owner:
            return True
        if self.members:
            return not self.declarations.misdirected
        is_known = self.shown or self.history.has_started or self.run.ended
        return self.group.shared and not is_known

    @property
    def queue_name(self) -> str:
        """The name of the requested queue."""
        if self.group is not None and self.group.made_for_pods and self.declarations.declared.queue:
            return self.declarations.declared.queue
        if self.group is not None and self.group.queue:
            return self.group.queue
        if self.kept is not None:
            return self.kept.queue
        if self.group is None or self.group.by_owner:
            return self.declarations.declared.queue or DEFAULT
        return DEFAULT
