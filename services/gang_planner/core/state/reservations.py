"""Reservations: capacity of a node that is taken without a pod on the node.

| reason | ends by | outranked by |
| --- | --- | --- |
| assumed | its event: the UID is bound or gone, or definitely refused at first delivery | nothing |
| | or an outcome reported it bound, and a later epoch's snapshot has it unbound for a minute | |
| late | the same events, or two minutes after the outcome | nothing |
| repair | the end of its gang's repair, or its pod's successor | nothing |
| hold | its deadline, its pod's successor, or its gang's end | gangs of higher priority |
| preemptor | its gang's decision, the end of its preemption, or its deadline | nothing |
| reservation | its deadline, its gang's end, or pods of it that hold as much | higher priority |

Every row has an owner, the gang for which it was decided.

An *assumed* row belongs to the newest decision for its pod; there is at most one per pod. If a POST
may still be in flight after its outcome, the row becomes *late*: its member may be placed
elsewhere, and a late POST still finds its capacity. Every row is subtracted from the free amounts
exactly once: by `keep`, or earlier by the Statement whose allocation it adopts.

Rows of *repair* and *hold* are for a lost pod (`replacements`); there is at most one per lost pod,
and no decision owns it. A row of *reservation* is for a part of its gang's `minResources` for which
no pod exists yet (`allocation.min_resources`). A *preemptor* row is for a pod that waits for its
victims to leave (`preemptions`); before that, the free amount of its node may be negative.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, Protocol

import msgspec

from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from shared.contracts.decisions import Binding, EvictionDecision, GangDecision
from shared.contracts.outcomes import Outcome
from shared.model.invariants import InvariantViolation
from shared.model.objects import Pod


class OpenAct(msgspec.Struct, eq=False, gc=False):
    """A decision to bind, with reservations that CLUSTER has not retired. It is part of no
    reference cycle, so the garbage collector need not track it.
    """

    #: Its sequence in the log; 0 until it is appended.
    seq: int
    act: GangDecision
    #: Number of its reservations.
    rows: int = 0
    #: The binder's outcome; None: POSTs may be in flight, or not sent yet.
    outcome: Outcome | None = None
    outcome_seq: int = 0
    #: Until when its bindings count although a newer epoch's snapshot does not have them; 0: no
    #: deadline.
    believed_until_ms: int = 0
    #: Whether its pods count as in flight: they wait only for binders.
    counted: bool = True

    def repeat(self, seq: int, act: GangDecision) -> None:
        """Replace the record by one that repeats the decision and has no outcome yet."""
        self.seq, self.act = seq, act
        self.outcome, self.outcome_seq = None, 0
        self.believed_until_ms = 0


def awaits_binders_alone(decision: GangDecision) -> bool:
    """Whether the decision waits only for binders and the API server, not for new volumes or for
    devices to be attached. A reissued decision does not count: it waited for days, and so does not
    show the binders' load.
    """
    slow = any(device.conditions for device in decision.devices)
    return not decision.again and not slow and all(volume.volume for volume in decision.volumes)


class OpenEviction(msgspec.Struct, eq=False):
    """A decision to release, in the log; kept until the release is over."""

    seq: int
    act: EvictionDecision
    uids: frozenset[str] = frozenset()
    outcome: Outcome | None = None
    outcome_seq: int = 0

    def __post_init__(self) -> None:
        self.uids = frozenset(victim.uid for victim in self.act.victims)


class Unresolved(NamedTuple):
    """A logged binding of a pod that is not in the cluster state, or not yet."""

    binding: Binding
    gang_id: str
    act: OpenAct
    #: Cluster state at least this new would have the pod if it existed.
    cluster_seq: int
    #: Whether the decision chose volumes or devices for the pod: an older state may not have the
    #: names of its claims yet, and a reservation without them would not hold what was chosen.
    has_claims: bool


Reason = Literal["assumed", "late", "repair", "hold", "preemptor", "reservation"]

#: `until_ms` of a row that ends by an event alone.
BY_EVENT: Final = -1
#: `until_ms` of a row whose deadline the next cycle sets: records have times of other clocks.
UNDATED: Final = 0


class Reservation(msgspec.Struct, kw_only=True, eq=False, gc=False):
    """One row. It is part of no reference cycle, so the garbage collector need not track it."""

    #: Gang id.
    owner: str
    uid: str
    shape: ShapeEntry
    slot: int
    #: The decision that it belongs to; None: no decision to bind owns it.
    act: OpenAct | None = None
    reason: Reason = "assumed"
    until_ms: int = BY_EVENT


class Reserving(Protocol):
    """A member for which a decision reserves capacity."""

    pod: Pod
    shape: ShapeEntry
    reservation: Reservation | None


class ReservationTable:
    """All rows, by pod UID."""

    def __init__(self, node_capacity: NodeCapacity) -> None:
        self._node_capacity = node_capacity
        self._rows: dict[str, list[Reservation]] = {}
        #: Rows per slot, so that a phantom node is not forgotten while it has reservations.
        self._per_slot: dict[int, int] = {}
        #: Rows with a deadline.
        self.late: dict[str, None] = {}
        #: Rows for lost pods, by the lost pod's UID.
        self.replacements: dict[str, Reservation] = {}
        #: Rows for pods of preemptors, by the UID of the pod that waits.
        self.promised: dict[str, Reservation] = {}
        #: Number of rows of decisions that wait only for the answers of binders.
        self.pods_in_flight = 0
        #: Number of such rows that have ended by a bound pod or by an answer.
        self.answered = 0

    @property
    def pods_not_seen_bound(self) -> int:
        """Number of pods with a decision's reservation: decided, and not bound in CLUSTER yet."""
        return len(self._rows)

    def settle(self, act: OpenAct, *, answered: bool) -> None:
        """Count a decision's rows as no longer in flight: it is `answered`, or no planner expects
        an answer any more. Its reservations stay.
        """
        if act.counted:
            act.counted = False
            self.pods_in_flight -= act.rows
            self.answered += act.rows if answered else 0

    def keep(self, reservation: Reservation, *, adopted: bool) -> None:
        """Add a row; `adopted`: its amounts are taken from the node capacity already."""
        _check_owner(reservation)
        if not adopted:
            self._node_capacity.take(reservation.slot, reservation.shape)
        self._rows.setdefault(reservation.uid, []).append(reservation)
        self._per_slot[reservation.slot] = self._per_slot.get(reservation.slot, 0) + 1
        if reservation.act is not None:
            reservation.act.rows += 1
            self.pods_in_flight += reservation.act.counted

    def adopt(self, act: OpenAct, members: Sequence[Reserving], slots: Sequence[int]) -> None:
        """Add a row for each member of a decision, on the node at the same place in `slots`; its
        capacity has been taken from the node capacity already. The member's newest row is this one.
        """
        owner = act.act.gang_id
        if not owner:
            raise InvariantViolation("a decision", "makes reservations without an owner")
        rows, per_slot = self._rows, self._per_slot
        for member, slot in zip(members, slots, strict=True):
            uid = member.pod.uid
            reservation = Reservation(owner=owner, uid=uid, shape=member.shape, slot=slot, act=act)
            if uid in rows:
                rows[uid].append(reservation)
            else:
                rows[uid] = [reservation]
            per_slot[slot] = per_slot.get(slot, 0) + 1
            member.reservation = reservation
        pods = len(members)
        act.rows += pods
        self.pods_in_flight += pods if act.counted else 0

    def end(self, reservation: Reservation, *, handed_over: bool = False) -> None:
        """Remove a row; `handed_over`: a pod takes its capacity, so nothing becomes free."""
        rows = self._rows[reservation.uid]
        rows.remove(reservation)
        if not rows:
            del self._rows[reservation.uid]
            self.late.pop(reservation.uid, None)
        self._uncount(reservation.slot)
        if reservation.act is not None:
            reservation.act.rows -= 1
            self.pods_in_flight -= reservation.act.counted
            self.answered += reservation.act.counted and handed_over
        if not handed_over:
            self._node_capacity.give(reservation.slot, reservation.shape)

    def keep_apart(self, reservation: Reservation, *, adopted: bool = False) -> None:
        """Add a row that no decision to bind owns, for a lost pod or for a preemptor's pod that
        waits for victims to leave; `adopted` as above.
        """
        _check_owner(reservation)
        rows = self._apart(reservation)
        if reservation.uid in rows:
            raise InvariantViolation(f"pod {reservation.uid}", "has a reservation already")
        if not adopted:
            self._node_capacity.take(reservation.slot, reservation.shape)
        rows[reservation.uid] = reservation
        self._per_slot[reservation.slot] = self._per_slot.get(reservation.slot, 0) + 1

    def end_apart(self, reservation: Reservation, *, handed_over: bool = False) -> None:
        """Remove such a row; `handed_over`: a decision takes its capacity."""
        del self._apart(reservation)[reservation.uid]
        self._uncount(reservation.slot)
        if not handed_over:
            self._node_capacity.give(reservation.slot, reservation.shape)

    def _apart(self, reservation: Reservation) -> dict[str, Reservation]:
        return self.promised if reservation.reason == "preemptor" else self.replacements

    def rows(self, uid: str) -> tuple[Reservation, ...]:
        return tuple(self._rows.get(uid, ()))

    def every(self) -> list[Reservation]:
        return [*self.of_decisions(), *self.replacements.values(), *self.promised.values()]

    def of_decisions(self) -> list[Reservation]:
        return [reservation for rows in self._rows.values() for reservation in rows]

    def on(self, slot: int) -> int:
        return self._per_slot.get(slot, 0)

    def becomes_late(self, reservation: Reservation) -> None:
        """Give a row a deadline: its member may be placed again, while a POST may still arrive."""
        reservation.reason = "late"
        reservation.until_ms = UNDATED
        self.late[reservation.uid] = None

    def _uncount(self, slot: int) -> None:
        left = self._per_slot[slot] - 1
        if left:
            self._per_slot[slot] = left
        else:
            del self._per_slot[slot]


def _check_owner(reservation: Reservation) -> None:
    if not reservation.owner:
        raise InvariantViolation(f"reservation for {reservation.uid}", "has no owner")
