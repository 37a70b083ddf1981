"""Debts: what is owed to gangs for members that they lost, and the room that is kept for it.

A debt is an open `hold` note in DECISIONS, known by the lost pod's UID. It has at most one row in
the table of room: without one it stands first in line. Its reason says what was lost: PodFailed,
PodEvicted, PodDeleted, NodeLost; of a gang that has not started, Repair.

The log tells the whole of it. A note is written at the end of the cycle in which a debt was made,
moved or reshaped, and a debt that ends in the cycle in which it was made is not in the log at all.
The decision that fills a debt names it (`fills`), so that there is no instant at which a restart
would keep both the decision's room and the debt's.

Losses are judged where a record of CLUSTER ends, not in a cycle (`holding.judge`): the same
records give the same debts, however cycles fall between them.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from services.gang_planner.core.pairwise import labelling
from services.gang_planner.core.tables.gangs import Gang
from services.gang_planner.core.tables.room import Reason, Room
from services.gang_planner.core.tables.shapes import ShapeEntry
from shared.contracts.decisions import Cycle, Note, NoteClosed, NoteOpened
from shared.model.gang_keys import GangKey

if TYPE_CHECKING:
    from services.gang_planner.state import State

#: Reason of a debt to a gang that is being repaired: it ends with the repair.
REPAIR: Final = "Repair"
#: Reason of a debt for a pod that was simply deleted: it ends when the gang does not miss it.
DELETED: Final = "PodDeleted"
FAILED_POD: Final = "PodFailed"
EVICTED: Final = "PodEvicted"
NODE_LOST: Final = "NodeLost"
#: Reason of a debt for a pod of a gang that its workload makes again as a whole: it ends when the
#: successor does not miss it.
RESTARTED: Final = "GangRestarted"
#: Reason of what stands for no lost pod, but for a unit of `minResources` (`reservation`).
MIN_RESOURCES: Final = "MinResources"


class Loss(NamedTuple):
    """A member that counted and is gone, as the picture showed it."""

    uid: str
    key: GangKey
    role: str
    shape: ShapeEntry
    namespace: str
    #: msgpack of its labels.
    labels: bytes
    #: Name of the node it was on.
    node: str
    #: CamelCase, as a debt's reason.
    reason: str
    #: For people: which pod, and what happened.
    message: str
    #: Nobody but the user or its controller asked for it.
    plain: bool
    #: A controller would make it again.
    owned: bool
    #: The node's kubelet refused it: it would do so again.
    refused: bool
    cluster_seq: int
    #: Its gang had started when it was lost: room is held, not only kept for a repair.
    started: bool = False
    #: UID of the living workload that makes its gang again, and its part of it; "": none is known.
    workload: str = ""
    part: str = ""


class Debt:
    """What is owed for one lost pod."""

    __slots__ = (
        "at_ms",
        "cluster_seq",
        "dirty",
        "gang",
        "gang_id",
        "gang_key",
        "labels",
        "logged",
        "lost_on",
        "message",
        "namespace",
        "node",
        "part",
        "priority",
        "queue",
        "reason",
        "role",
        "room",
        "shape",
        "tried",
        "uid",
        "until_ms",
        "workload",
    )

    def __init__(
        self,
        *,
        uid: str,
        gang_id: str,
        role: str,
        shape: ShapeEntry,
        reason: str,
        message: str,
        lost_on: str,
        namespace: str,
        labels: bytes,
        workload: str = "",
        part: str = "",
    ) -> None:
        #: UID of the lost pod.
        self.uid = uid
        self.gang_id = gang_id
        #: None until the picture shows its gang.
        self.gang: Gang | None = None
        self.role = role
        self.shape = shape
        #: Of the lost pod; the labels as msgpack.
        self.namespace = namespace
        self.labels = labels
        self.reason = reason
        self.message = message
        #: Name of the node that it was lost on.
        self.lost_on = lost_on
        #: UID of the workload that makes its gang again, and the pod's part of it; "": it ends with
        #: its gang.
        self.workload = workload
        self.part = part
        #: Key, queue and priority of its gang, for while nothing of the gang exists.
        self.gang_key: GangKey | None = None
        self.queue = ""
        self.priority = 0
        self.at_ms = 0
        self.until_ms = 0
        self.room: Room | None = None
        #: Name of the node on which it has room; "": on none.
        self.node = ""
        #: The log does not say what is true now.
        self.dirty = True
        #: The log knows it.
        self.logged = False
        #: A picture at least this new shows its gang, if there is one.
        self.cluster_seq = 0
        #: With what room was looked for in vain.
        self.tried: tuple[object, ...] = ()

    @property
    def repairing(self) -> bool:
        """Whether it ends with its gang's repair, and not by a deadline of its own."""
        return self.reason == REPAIR

    @property
    def reserving(self) -> bool:
        """Whether it stands for pods that do not exist yet, and not for one that is lost."""
        return self.reason == MIN_RESOURCES

    @property
    def room_reason(self) -> Reason:
        """What the reservation table says of its row."""
        if self.reserving:
            return "reservation"
        return "repair" if self.repairing else "debt"


class DebtTable:
    """All debts, by the lost pod's UID."""

    def __init__(self) -> None:
        self.by_uid: dict[str, Debt] = {}
        #: Losses that nobody has judged yet: the record that shows them is still being applied.
        self.losses: list[Loss] = []
        #: Losses to become debts in the next cycle of whoever leads.
        self.pending: dict[str, Loss] = {}
        #: Lost pods that the picture still shows and that had their hold, as far as the log has
        #: told: there is no second one, whichever of the two logs is read first.
        self._known: dict[str, None] = {}
        self._of: dict[GangKey, dict[str, Debt]] = {}
        #: What was tried in vain for all that a gang is owed.
        self.tried: dict[GangKey, tuple[object, ...]] = {}
        #: Grows with every row that is kept: who outranks it may look again.
        self.kept = 0
        #: How many losses of a gang have not been dealt with.
        self._lost: dict[GangKey, int] = {}
        #: Debts that ended since the last cycle's notes, and how.
        self._ended: list[tuple[Debt, str]] = []
        #: Sequence of CLUSTER that the newest logged cycle had applied, and the one before it.
        self._cycle_seq = 0

    def of(self, gang: Gang) -> tuple[Debt, ...]:
        """What a gang is owed, what ends first first."""
        found = self._of.get(gang.key) if self._of else None
        if not found:
            return ()
        return tuple(sorted(found.values(), key=_by_deadline))

    def debtors(self) -> list[GangKey]:
        """Keys of the gangs that are owed anything."""
        return list(self._of)

    def owes(self, key: GangKey) -> bool:
        """Whether a gang is owed anything, or has lost what is still to be judged."""
        return key in self._of or key in self._lost

    @property
    def open_count(self) -> int:
        """Debts that are open."""
        return len(self.by_uid)

    def knows(self, uid: str) -> bool:
        """Whether a loss of this pod is, or was, a debt already."""
        return uid in self.by_uid or uid in self._known or uid in self.pending

    def forget(self, uid: str) -> None:
        """The picture no longer shows the pod, or shows it placed again: nothing of it can be lost
        twice.
        """
        self._known.pop(uid, None)

    def come_back(self, uid: str) -> None:
        """A pod whose node was gone is placed again: it is not lost, and may be lost anew."""
        self.forget(uid)
        self.settle(uid)
        for loss in [loss for loss in self.losses if loss.uid == uid]:
            self.losses.remove(loss)
            self._uncount(loss.key)

    # ------------------------------------------------------------------ changes

    def lose(self, loss: Loss) -> None:
        """A member is lost; judged when the record that shows it has been applied whole."""
        self.losses.append(loss)
        self._lost[loss.key] = self._lost.get(loss.key, 0) + 1

    def take_losses(self) -> list[Loss]:
        """What has to be judged now: each becomes pending or is owed nothing."""
        losses, self.losses = self.losses, []
        for loss in losses:
            self._uncount(loss.key)
        return losses

    def await_cycle(self, loss: Loss) -> None:
        """The loss becomes a debt in the next cycle of whoever leads."""
        self.pending[loss.uid] = loss
        self._lost[loss.key] = self._lost.get(loss.key, 0) + 1

    def settle(self, uid: str) -> None:
        """A pending loss is dealt with, or owed nothing."""
        loss = self.pending.pop(uid, None)
        if loss is not None:
            self._uncount(loss.key)

    def add(self, state: "State", debt: Debt, gang: Gang) -> None:
        """A loss became a debt; its note is written at the end of the cycle."""
        self.by_uid[debt.uid] = debt
        if debt.uid in state.members:
            self._known[debt.uid] = None
        self.attach(debt, gang)

    def attach(self, debt: Debt, gang: Gang) -> None:
        """The gang of a debt is known now, and is charged for its room."""
        debt.gang = gang
        debt.gang_key = gang.key
        debt.queue, debt.priority = gang.queue.name, gang.priority
        gang.hold_ended = ""
        self._of.setdefault(gang.key, {})[debt.uid] = debt
        if debt.room is not None:
            gang.hold(debt.shape, 1)

    def pass_on(self, debt: Debt, successor: Gang) -> None:
        """The debt and its room are another gang's from now on."""
        self._detach(debt)
        if debt.gang is not None and debt.room is not None:
            debt.gang.hold(debt.shape, -1)
        debt.gang_id, debt.dirty, debt.tried = successor.gang_id, True, ()
        if debt.room is not None:
            debt.room.owner = successor.gang_id
        self.attach(debt, successor)

    def close(self, state: "State", debt: Debt, reason: str) -> None:
        """End a debt and its row; the note that says so is written at the end of the cycle."""
        if debt.gang is not None:
            debt.gang.hold_ended = reason
        drop_room(state, debt)
        self._remove(debt)
        if debt.logged:
            self._ended.append((debt, reason))

    def notes(self, epoch: int, cycle: Cycle) -> list[Note]:
        """What the log has to be told of this cycle's changes, oldest debts first."""
        told: list[Note] = []
        for debt in self.by_uid.values():
            if debt.dirty:
                debt.dirty = False
                debt.logged = True
                told.append(_opened(debt, epoch, cycle))
        for debt, reason in self._ended:
            told.append(
                NoteClosed(
                    gang_id=debt.gang_id,
                    epoch=epoch,
                    kind="hold",
                    at_ms=cycle.now_ms,
                    reason=reason,
                    pod_uids=(debt.uid,),
                    cycle=cycle,
                )
            )
        self._ended.clear()
        return told

    def relabel(self, state: "State") -> None:
        """What terms ask for has changed: lost pods are counted as they would be."""
        for debt in self.by_uid.values():
            before = debt.shape
            entry = labelling.entry_of_lost(state, before.encoded, debt.namespace, debt.labels)
            if entry is before:
                continue
            debt.shape, debt.tried = entry, ()
            if debt.room is None:
                continue
            state.ground.exchange(debt.room.slot, before, entry)
            debt.room.shape = entry
            if debt.gang is not None:
                debt.gang.hold(before, -1)
                debt.gang.hold(entry, 1)

    # ---------------------------------------------------------------- from the log

    def recall(self, state: "State", note: NoteOpened) -> None:
        """Take a hold over from the log: row and all. One of the same pod is replaced."""
        for uid in note.pod_uids:
            self.settle(uid)
            self._told_of(uid)
            if uid in state.members:
                self._known[uid] = None
            before = self.by_uid.get(uid)
            if before is not None:
                drop_room(state, before)
                self._remove(before)
            elif note.reason == FAILED_POD:
                state.gangs.history(note.gang_id).failed_on[note.lost_on] = None
            debt = Debt(
                uid=uid,
                gang_id=note.gang_id,
                role=note.role,
                shape=labelling.entry_of_lost(state, note.shape, note.namespace, note.labels),
                reason=note.reason,
                message=note.message,
                lost_on=note.lost_on,
                namespace=note.namespace,
                labels=note.labels,
                workload=note.workload,
                part=note.part,
            )
            debt.gang_key, debt.queue, debt.priority = note.gang_key, note.queue, note.priority
            debt.at_ms, debt.until_ms = note.at_ms, note.until_ms
            debt.dirty, debt.logged = False, True
            debt.cluster_seq = note.cycle.cluster_seq if note.cycle is not None else 0
            self.by_uid[uid] = debt
            if note.node:
                keep_room(state, debt, state.nodes.slot(note.node), adopted=False)
            gang = state.gangs.by_id.get(note.gang_id)
            if gang is not None:
                self.attach(debt, gang)

    def recall_end(self, state: "State", gang_id: str, uids: Iterable[str]) -> None:
        """The log says that holds of a gang ended: of these lost pods, or all of them."""
        named = tuple(uids)
        if not named:
            known = [*self.by_uid.values(), *(debt for debt, _ in self._ended)]
            named = tuple(debt.uid for debt in known if debt.gang_id == gang_id)
        for uid in named:
            self.settle(uid)
            self._told_of(uid)
            debt = self.by_uid.get(uid)
            if debt is not None:
                drop_room(state, debt)
                self._remove(debt)
                if debt.gang is not None:
                    state.gangs.drop_if_empty(debt.gang)

    def recall_filled(self, state: "State", uids: Iterable[str]) -> None:
        """A decision in the log fills holds of these lost pods. The notes of their ends come behind
        it; whoever leads next writes those that never came.
        """
        for uid in uids:
            self.settle(uid)
            debt = self.by_uid.get(uid)
            if debt is not None:
                drop_room(state, debt)
                self._remove(debt)
                self._ended.append((debt, "Filled"))

    def recall_cycle(self, state: "State", cluster_seq: int) -> None:
        """A record of a newer cycle is in the log: an earlier one had its say on every loss up to
        where it had read, and what it did not open it did not owe.
        """
        if cluster_seq <= self._cycle_seq:
            return
        before, self._cycle_seq = self._cycle_seq, cluster_seq
        for uid, loss in list(self.pending.items()):
            if loss.cluster_seq <= before:
                self.settle(uid)
                gang = state.gangs.gangs.get(loss.key)
                if gang is not None:
                    state.gangs.drop_if_empty(gang)

    def notes_of(self) -> dict[str, list[NoteOpened]]:
        """Open notes by gang id, for a checkpoint."""
        found: dict[str, list[NoteOpened]] = {}
        for debt in self.by_uid.values():
            found.setdefault(debt.gang_id, []).append(_opened(debt, 0, None))
        return found

    # ---------------------------------------------------------------- internal

    def _told_of(self, uid: str) -> None:
        """The log says itself how a debt of this pod ended, or that there is another."""
        if self._ended:
            self._ended = [one for one in self._ended if one[0].uid != uid]

    def _remove(self, debt: Debt) -> None:
        del self.by_uid[debt.uid]
        self._detach(debt)

    def _detach(self, debt: Debt) -> None:
        """Its gang does not know of it any more."""
        if debt.gang is None:
            return
        owed = self._of[debt.gang.key]
        del owed[debt.uid]
        if not owed:
            del self._of[debt.gang.key]
            self.tried.pop(debt.gang.key, None)

    def _uncount(self, key: GangKey) -> None:
        self._lost[key] -= 1
        if not self._lost[key]:
            del self._lost[key]


def keep_room(state: "State", debt: Debt, slot: int, *, adopted: bool) -> None:
    """Keep a debt's room on a node, charged to its gang and queue; `adopted`: the ground has been
    taken already.
    """
    room = Room(owner=debt.gang_id, uid=debt.uid, shape=debt.shape, slot=slot)
    room.reason = debt.room_reason
    room.until_ms = debt.until_ms
    state.rooms.keep_owed(room, adopted=adopted)
    state.debts.kept += 1
    debt.room = room
    debt.node = state.nodes.names[slot]
    if debt.gang is not None:
        debt.gang.hold(debt.shape, 1)


def drop_room(state: "State", debt: Debt) -> None:
    """Give a debt's room up, if it has any; the debt stays."""
    room = debt.room
    if room is None:
        return
    debt.room, debt.node = None, ""
    state.rooms.end_owed(room)
    if debt.gang is not None:
        debt.gang.hold(debt.shape, -1)
    debt.tried = ()
    nothing_there = room.slot not in state.residents and not state.rooms.on(room.slot)
    if nothing_there and not state.nodes.exists[room.slot]:
        state.nodes.drop_phantom(room.slot)


def _opened(debt: Debt, epoch: int, cycle: Cycle | None) -> NoteOpened:
    return NoteOpened(
        gang_id=debt.gang_id,
        epoch=epoch,
        kind="hold",
        at_ms=debt.at_ms,
        until_ms=debt.until_ms,
        reason=debt.reason,
        pod_uids=(debt.uid,),
        role=debt.role,
        shape=debt.shape.encoded,
        namespace=debt.namespace,
        labels=debt.labels,
        node=debt.node,
        lost_on=debt.lost_on,
        message=debt.message,
        cycle=cycle,
        workload=debt.workload,
        part=debt.part,
        gang_key=debt.gang_key if debt.workload else None,
        queue=debt.queue if debt.workload else "",
        priority=debt.priority if debt.workload else 0,
    )


def _by_deadline(debt: Debt) -> tuple[int, str]:
    return debt.until_ms, debt.uid
