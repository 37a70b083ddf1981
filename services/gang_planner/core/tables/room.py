"""Kept room: one table of everything that takes room on a node without a pod being there.

| reason | ends by | outranked by |
| --- | --- | --- |
| assumed | its event: the UID is bound or gone, or definitely refused at first delivery | nothing |
| | or it was said to be bound, and a later epoch's picture does not show it for a minute | |
| late | the same events, or two minutes after the outcome | nothing |
| repair | the end of its gang's repair, or its pod's successor | nothing |
| debt | its deadline, its pod's successor, or its gang's end | gangs of higher priority |
| preemptor | its gang's decision, or the end of its preemption: a deadline at last | nothing |
| reservation | its deadline, its gang's end, or pods of it that hold as much | higher priority |

Every row has an owner, the gang it was decided for.

An *assumed* row belongs to the newest decision on its pod; there is at most one per pod. When its
outcome leaves open whether a POST is still under way, the row becomes *late*: its member may be
planned elsewhere meanwhile, and a late POST finds room. Every row is subtracted from what is free
exactly once, by `keep`, or before by the Statement whose allocation it adopts.

Rows of *repair* and *debt* stand for a pod that is lost (`debts`); there is at most one per lost
pod, and no decision owns it. A row of *reservation* stands for a part of its gang's `minResources`
for which no pod exists yet (`recovery.reservation`). A *preemptor* row stands for a pod that waits
for others to leave (`preempting`); until they have, what is free on its node may be negative.
"""

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from services.gang_planner.core.decisions.open_acts import OpenAct
from services.gang_planner.core.tables.ground import Ground
from services.gang_planner.core.tables.shapes import ShapeEntry

if TYPE_CHECKING:
    from services.gang_planner.core.tables.members import Seats

Reason = Literal["assumed", "late", "repair", "debt", "preemptor", "reservation"]

#: `until_ms` of a row that ends by an event alone.
BY_EVENT: Final = -1
#: `until_ms` of a row whose deadline is counted from the next cycle: records carry no instant of
#: ours.
UNDATED: Final = 0


class Room(msgspec.Struct, kw_only=True, eq=False, gc=False):
    """One row. Nothing that it refers to leads back to it, so no collector need look at it."""

    #: Gang id.
    owner: str
    uid: str
    shape: ShapeEntry
    slot: int
    #: The decision that it belongs to; None: no decision to bind owns it.
    act: OpenAct | None = None
    reason: Reason = "assumed"
    until_ms: int = BY_EVENT


class RoomTable:
    """All rows, by pod UID."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._rows: dict[str, list[Room]] = {}
        #: Rows per slot, so that a phantom node is not forgotten while room is kept on it.
        self._per_slot: dict[int, int] = {}
        #: Rows with a deadline.
        self.late: dict[str, None] = {}
        #: Rows for lost pods, by the lost pod's UID.
        self.owed: dict[str, Room] = {}
        #: Rows for pods of preemptors, by the UID of the pod that waits.
        self.promised: dict[str, Room] = {}
        #: Rows of decisions that wait for nothing but binders, which have not answered: what these
        #: have before them.
        self.under_way = 0
        #: Of such rows, how many were ended so far by a pod that is bound, or by an answer.
        self.answered = 0

    @property
    def pods_not_seen_bound(self) -> int:
        """Pods that a decision keeps room for: decided, and not seen bound yet."""
        return len(self._rows)

    def settle(self, act: OpenAct, *, answered: bool) -> None:
        """A decision's rows are no longer under way: it is `answered`, or nobody reckons with an
        answer any more. Its room stays.
        """
        if act.counted:
            act.counted = False
            self.under_way -= act.rows
            self.answered += act.rows if answered else 0

    def keep(self, room: Room, *, adopted: bool) -> None:
        """Add a row; `adopted`: its room has been taken from the ground already."""
        assert room.owner, f"room for {room.uid} has no owner"
        if not adopted:
            self._ground.take(room.slot, room.shape)
        self._rows.setdefault(room.uid, []).append(room)
        self._per_slot[room.slot] = self._per_slot.get(room.slot, 0) + 1
        if room.act is not None:
            room.act.rows += 1
            self.under_way += room.act.counted

    def adopt(self, act: OpenAct, seats: "Seats") -> None:
        """Add a row for each member of a decision; its room has been taken from the ground already.
        The member's newest room is this one.
        """
        owner = act.act.gang_id
        assert owner, "room of a decision has no owner"
        rows, per_slot = self._rows, self._per_slot
        for member, slot in seats.pairs():
            uid = member.pod.uid
            room = Room(owner=owner, uid=uid, shape=member.shape, slot=slot, act=act)
            if uid in rows:
                rows[uid].append(room)
            else:
                rows[uid] = [room]
            per_slot[slot] = per_slot.get(slot, 0) + 1
            member.room = room
        pods = len(seats.members)
        act.rows += pods
        self.under_way += pods if act.counted else 0

    def end(self, room: Room, *, handed_over: bool = False) -> None:
        """Remove a row; `handed_over`: a pod takes the place, so nothing becomes free."""
        rows = self._rows[room.uid]
        rows.remove(room)
        if not rows:
            del self._rows[room.uid]
            self.late.pop(room.uid, None)
        self._uncount(room.slot)
        if room.act is not None:
            room.act.rows -= 1
            self.under_way -= room.act.counted
            self.answered += room.act.counted and handed_over
        if not handed_over:
            self._ground.give(room.slot, room.shape)

    def keep_owed(self, room: Room, *, adopted: bool) -> None:
        """Add a row for a lost pod; `adopted` as above."""
        assert room.owner, f"room for lost pod {room.uid} has no owner"
        assert room.uid not in self.owed, f"lost pod {room.uid} has room already"
        if not adopted:
            self._ground.take(room.slot, room.shape)
        self.owed[room.uid] = room
        self._per_slot[room.slot] = self._per_slot.get(room.slot, 0) + 1

    def end_owed(self, room: Room, *, handed_over: bool = False) -> None:
        """Remove a row for a lost pod; `handed_over`: a decision has the place, nothing is free."""
        del self.owed[room.uid]
        self._uncount(room.slot)
        if not handed_over:
            self._ground.give(room.slot, room.shape)

    def keep_promised(self, room: Room) -> None:
        """Add a row for a pod that waits for others to leave."""
        assert room.owner, f"room for preemptor {room.uid} has no owner"
        assert room.uid not in self.promised, f"preemptor {room.uid} has room already"
        self._ground.take(room.slot, room.shape)
        self.promised[room.uid] = room
        self._per_slot[room.slot] = self._per_slot.get(room.slot, 0) + 1

    def end_promised(self, room: Room) -> None:
        """Remove a row of a preemptor; its room is free."""
        del self.promised[room.uid]
        self._uncount(room.slot)
        self._ground.give(room.slot, room.shape)

    def rows(self, uid: str) -> tuple[Room, ...]:
        """Rows of decisions kept for a pod."""
        return tuple(self._rows.get(uid, ()))

    def every(self) -> list[Room]:
        """All rows."""
        return [*self.of_decisions(), *self.owed.values(), *self.promised.values()]

    def of_decisions(self) -> list[Room]:
        """Rows that decisions keep."""
        return [room for rows in self._rows.values() for room in rows]

    def on(self, slot: int) -> int:
        """Rows on a node."""
        return self._per_slot.get(slot, 0)

    def becomes_late(self, room: Room) -> None:
        """Its member may be planned elsewhere, and a POST may still come: keep the room with a
        deadline.
        """
        room.reason = "late"
        room.until_ms = UNDATED
        self.late[room.uid] = None

    def _uncount(self, slot: int) -> None:
        left = self._per_slot[slot] - 1
        if left:
            self._per_slot[slot] = left
        else:
            del self._per_slot[slot]
