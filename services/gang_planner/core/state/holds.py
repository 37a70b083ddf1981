"""Holds for lost members of gangs, and the capacity reserved for their replacements.

A hold is an open `hold` note in DECISIONS, identified by the lost pod's UID. It has at most one
reservation; without one, its replacement is first in line. Its reason is the kind of loss:
PodFailed, PodEvicted, PodDeleted, NodeLost; NodeLeaving for one that is still to come;
MemberMissing if no planner saw the loss, with a name instead of the pod's UID; Repair for a gang
that has not started.

The log has all holds. A note is written at the end of the cycle in which a hold was created, moved
or reshaped. A hold that ends in the cycle in which it was created is not in the log. The decision
that fills a hold names it (`fills`), so that a restart never keeps the reservations of both.

Losses are evaluated after each record of CLUSTER, not in a cycle (`lifecycle.hold_rules.judge`):
the same records give the same holds, independent of the times of cycles.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.inter_pod import profiles
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.reservations import Reason, Reservation
from shared.contracts.decisions import Cycle, Note, NoteClosed, NoteOpened
from shared.model.gang_keys import GangKey

if TYPE_CHECKING:
    from services.gang_planner.core.state.tables import Tables

#: Reason of a hold of a gang under repair: it ends with the repair.
REPAIR: Final = "Repair"
#: Reason of a hold for a deleted pod: it ends when the gang has enough members without it.
DELETED: Final = "PodDeleted"
FAILED_POD: Final = "PodFailed"
EVICTED: Final = "PodEvicted"
NODE_LOST: Final = "NodeLost"
#: Reason of a hold for a member whose node is being removed or not ready, while the member is still
#: there (`lifecycle.announced_losses`). It has no deadline before the member leaves.
NODE_LEAVING: Final = "NodeLeaving"
#: Reason of a hold for a member whose loss no planner saw (`lifecycle.unseen_losses`): it ends when
#: the gang has enough members without it.
MISSING: Final = "MemberMissing"
#: Reason of a hold for a pod of a gang that its workload creates again as a whole: it ends when the
#: successor has enough members without it.
RESTARTED: Final = "GangRestarted"
#: Reason of a hold for a unit of `minResources` instead of a lost pod (`allocation.min_resources`).
MIN_RESOURCES: Final = "MinResources"
#: Reason for which a hold has ended: its deadline passed.
EXPIRED: Final = "Expired"


class LostMember(msgspec.Struct, kw_only=True, eq=False):
    """A lost member of a gang, as in the cluster state."""

    #: UID of its pod.
    uid: str
    role: str
    shape: ShapeEntry
    namespace: str
    #: msgpack of its labels.
    labels: bytes
    #: CamelCase.
    reason: str
    #: The pod's name and what happened to it.
    message: str
    #: Name of the node it was on.
    lost_on: str
    #: Cluster state at least this new has its gang, if the gang exists.
    cluster_seq: int = 0
    #: UID of the workload that creates its gang again, and its part of it; "": none is known, and
    #: its hold ends with its gang.
    workload: str = ""
    part: str = ""


class Loss(LostMember, kw_only=True, eq=False):
    """A lost member that counted towards its gang's quorum."""

    key: GangKey
    #: The user or its controller deleted it; it was neither evicted nor lost with its node.
    plain: bool
    #: A controller would create it again.
    owned: bool
    #: The node's kubelet refused it, and would refuse its successor.
    refused: bool
    #: Its gang had started: the hold has its own deadline, instead of the repair's.
    started: bool = False

    def hold(self, gang: Gang, at_ms: int, until_ms: int) -> "Hold":
        """The hold for it, which is not in the table yet."""
        return Hold(
            uid=self.uid,
            gang_id=gang.gang_id,
            role=self.role,
            shape=self.shape,
            namespace=self.namespace,
            labels=self.labels,
            reason=self.reason if self.started else REPAIR,
            message=self.message,
            lost_on=self.lost_on,
            workload=self.workload if self.started else "",
            part=self.part if self.started else "",
            at_ms=at_ms,
            until_ms=until_ms,
        )


class Hold(LostMember, kw_only=True, eq=False):
    """The hold for one lost member."""

    gang_id: str
    #: None until its gang is in the cluster state.
    gang: Gang | None = None
    #: Key, queue and priority of its gang, for the time in which the gang does not exist.
    gang_key: GangKey | None = None
    queue: str = ""
    priority: int = 0
    at_ms: int = 0
    until_ms: int = 0
    reservation: Reservation | None = None
    #: Name of the node with its reservation; "": it has none.
    node: str = ""
    #: It has changed since its last note.
    dirty: bool = True
    #: The log has a note of it.
    logged: bool = False
    #: State of the tables at its last failed search for a node.
    tried: tuple[object, ...] = ()

    @property
    def repairing(self) -> bool:
        """Whether it ends with its gang's repair, not by its own deadline."""
        return self.reason == REPAIR

    @property
    def reserving(self) -> bool:
        """Whether it is for pods of `minResources` that do not exist yet, not for a lost pod."""
        return self.reason == MIN_RESOURCES

    @property
    def announced(self) -> bool:
        """Whether its member is still on its node, which is being removed or not ready."""
        return self.reason == NODE_LEAVING

    @property
    def reservation_reason(self) -> Reason:
        """The reason of its reservation in the reservation table."""
        if self.reserving:
            return "reservation"
        return "repair" if self.repairing else "hold"


class HoldTable:
    """All holds, by the lost pod's UID."""

    def __init__(self) -> None:
        self.by_uid: dict[str, Hold] = {}
        #: Losses of the record that is being applied, to be judged after it.
        self.losses: list[Loss] = []
        #: Losses that become holds in the leader's next cycle, by pod UID.
        self.pending: dict[str, Loss] = {}
        #: Lost pods that are still in the cluster state and had a hold in the log so far: they get
        #: no second hold, whichever of the two logs is read first.
        self._known: dict[str, None] = {}
        self._of: dict[GangKey, dict[str, Hold]] = {}
        #: State of the tables at the last failed search for all holds of a gang.
        self.tried: dict[GangKey, tuple[object, ...]] = {}
        #: Grows with every new reservation: gangs that outrank it may try again.
        self.kept = 0
        #: Number of a gang's losses that are not settled.
        self._lost: dict[GangKey, int] = {}
        #: Holds that ended since the last cycle's notes, with the reason.
        self._ended: list[tuple[Hold, str]] = []
        #: Sequence of CLUSTER up to which the newest logged cycle had read.
        self._cycle_seq = 0
        #: Sequence of CLUSTER up to which the writer of the newest epoch saw no losses: it had
        #: started from the snapshot there.
        self.unseen_seq = 0

    def of(self, gang: Gang) -> tuple[Hold, ...]:
        """The holds of a gang, by deadline."""
        holds = self._of.get(gang.key) if self._of else None
        if not holds:
            return ()
        return tuple(sorted(holds.values(), key=_by_deadline))

    def owners(self) -> list[GangKey]:
        return list(self._of)

    def owes(self, key: GangKey) -> bool:
        return key in self._of or key in self._lost

    def knows(self, uid: str) -> bool:
        """Whether this pod has or had a hold, or a pending loss."""
        return uid in self.by_uid or uid in self._known or uid in self.pending

    def is_known(self, loss: Loss) -> bool:
        """Whether the lost pod has or had a hold, or the writer of the epoch did not see its loss
        and opens another hold for the missing member.
        """
        unseen = loss.cluster_seq <= self.unseen_seq and loss.reason != MISSING
        return unseen or self.knows(loss.uid)

    @property
    def next_ms(self) -> int | None:
        """When the next hold expires; None: there are no holds."""
        return min((hold.until_ms for hold in self.by_uid.values()), default=None)

    def forget(self, uid: str) -> None:
        """Forget that the pod had a hold: it is gone, or is placed again and may be lost again."""
        self._known.pop(uid, None)

    def come_back(self, uid: str) -> None:
        """Drop the losses of a pod whose node is back: the pod is placed, and may be lost again."""
        self.forget(uid)
        self.settle(uid)
        for loss in [loss for loss in self.losses if loss.uid == uid]:
            self.losses.remove(loss)
            self._uncount(loss.key)

    # ------------------------------------------------------------------ changes

    def lose(self, loss: Loss) -> None:
        """Add a loss; it is judged when its record of CLUSTER has been applied completely."""
        self.losses.append(loss)
        self._lost[loss.key] = self._lost.get(loss.key, 0) + 1

    def take_losses(self) -> list[Loss]:
        """Remove and return the losses to judge; each becomes pending or gets no hold."""
        losses, self.losses = self.losses, []
        for loss in losses:
            self._uncount(loss.key)
        return losses

    def await_cycle(self, loss: Loss) -> None:
        """Make the loss pending: it becomes a hold in the leader's next cycle."""
        self.pending[loss.uid] = loss
        self._lost[loss.key] = self._lost.get(loss.key, 0) + 1

    def settle(self, uid: str) -> None:
        """Remove a pending loss, which got its hold or gets none."""
        loss = self.pending.pop(uid, None)
        if loss is not None:
            self._uncount(loss.key)

    def add(self, tables: "Tables", hold: Hold, gang: Gang) -> None:
        """Add a new hold to a gang; its note is written at the end of the cycle."""
        hold.cluster_seq = tables.view.cluster_seq
        self.by_uid[hold.uid] = hold
        if hold.uid in tables.members:
            self._known[hold.uid] = None
        self.attach(hold, gang)

    def attach(self, hold: Hold, gang: Gang) -> None:
        """Attach a hold to its gang, and charge the gang for the hold's reservation."""
        hold.gang = gang
        hold.gang_key = gang.key
        hold.queue, hold.priority = gang.queue.name, gang.priority
        gang.hold_ended = ""
        self._of.setdefault(gang.key, {})[hold.uid] = hold
        if hold.reservation is not None:
            gang.hold(hold.shape, 1)

    def attach_known(self, gangs: Mapping[str, Gang]) -> None:
        """Attach holds from the log to their gangs, by id, which are in the cluster state by now,
        and charge these. The next cycle would do it; a standby runs none.
        """
        for hold in self.by_uid.values():
            gang = gangs.get(hold.gang_id) if hold.gang is None else None
            if gang is not None:
                self.attach(hold, gang)

    def reserve(self, tables: "Tables", hold: Hold, slot: int, *, adopted: bool) -> None:
        """Reserve the hold's capacity on a node and charge its gang; `adopted`: it is taken."""
        reservation = Reservation(owner=hold.gang_id, uid=hold.uid, shape=hold.shape, slot=slot)
        reservation.reason = hold.reservation_reason
        reservation.until_ms = hold.until_ms
        tables.reservations.keep_apart(reservation, adopted=adopted)
        self.kept += 1
        hold.reservation = reservation
        hold.node = tables.nodes.names[slot]
        if hold.gang is not None:
            hold.gang.hold(hold.shape, 1)

    def pass_on(self, hold: Hold, successor: Gang) -> None:
        """Move the hold and its reservation to another gang."""
        self._detach(hold)
        if hold.gang is not None and hold.reservation is not None:
            hold.gang.hold(hold.shape, -1)
        hold.gang_id, hold.dirty, hold.tried = successor.gang_id, True, ()
        if hold.reservation is not None:
            hold.reservation.owner = successor.gang_id
        self.attach(hold, successor)

    def close(self, tables: "Tables", hold: Hold, reason: str) -> None:
        """End a hold and its reservation; its closing note is written at the end of the cycle."""
        if hold.gang is not None:
            hold.gang.hold_ended = reason
        if reason == EXPIRED:
            _forgo(tables, hold)
        drop_reservation(tables, hold)
        self._remove(hold)
        if hold.announced:
            # Its member is not lost: if it is lost later, it gets another hold.
            self.forget(hold.uid)
        if hold.logged:
            self._ended.append((hold, reason))

    def notes(self, epoch: int, cycle: Cycle) -> list[Note]:
        """The notes of this cycle's changes, oldest holds first."""
        notes: list[Note] = []
        for hold in self.by_uid.values():
            if hold.dirty:
                hold.dirty = False
                hold.logged = True
                notes.append(_opened(hold, epoch, cycle))
        for hold, reason in self._ended:
            notes.append(
                NoteClosed(
                    gang_id=hold.gang_id,
                    epoch=epoch,
                    kind="hold",
                    at_ms=cycle.now_ms,
                    reason=reason,
                    pod_uids=(hold.uid,),
                    cycle=cycle,
                )
            )
        self._ended.clear()
        return notes

    def relabel(self, tables: "Tables") -> None:
        """Update the shape entries of lost pods after the terms of other pods changed."""
        for hold in self.by_uid.values():
            before = hold.shape
            entry = profiles.entry_of_lost(tables, before.encoded, hold.namespace, hold.labels)
            if entry is before:
                continue
            hold.shape, hold.tried = entry, ()
            if hold.reservation is None:
                continue
            tables.node_capacity.exchange(hold.reservation.slot, before, entry)
            hold.reservation.shape = entry
            if hold.gang is not None:
                hold.gang.hold(before, -1)
                hold.gang.hold(entry, 1)

    # ---------------------------------------------------------------- from the log

    def recall(self, tables: "Tables", note: NoteOpened) -> None:
        """Restore a hold and its reservation from the log. It replaces a hold of the same pod."""
        for uid in note.pod_uids:
            self.settle(uid)
            self._drop_ended(uid)
            if uid in tables.members:
                self._known[uid] = None
            before = self.by_uid.get(uid)
            if before is not None:
                drop_reservation(tables, before)
                self._remove(before)
            elif note.reason == FAILED_POD:
                tables.gangs.history(note.gang_id).failed_on[note.lost_on] = None
            hold = Hold(
                uid=uid,
                gang_id=note.gang_id,
                role=note.role,
                shape=profiles.entry_of_lost(tables, note.shape, note.namespace, note.labels),
                reason=note.reason,
                message=note.message,
                lost_on=note.lost_on,
                namespace=note.namespace,
                labels=note.labels,
                workload=note.workload,
                part=note.part,
                gang_key=_key_in(note.namespace, note.gang_key),
                queue=note.queue,
                priority=note.priority,
                at_ms=note.at_ms,
                until_ms=note.until_ms,
                dirty=False,
                logged=True,
                cluster_seq=note.cycle.cluster_seq if note.cycle is not None else 0,
            )
            self.by_uid[uid] = hold
            if note.node:
                self.reserve(tables, hold, tables.nodes.slot(note.node), adopted=False)
            gang = tables.gangs.find(note.gang_id)
            if gang is not None:
                self.attach(hold, gang)

    def recall_end(self, tables: "Tables", gang_id: str, uids: Iterable[str], reason: str) -> None:
        """Remove holds of a gang that ended in the log: of these pods; if none are given, all."""
        named = tuple(uids)
        if not named:
            known = [*self.by_uid.values(), *(hold for hold, _ in self._ended)]
            named = tuple(hold.uid for hold in known if hold.gang_id == gang_id)
        for uid in named:
            self.settle(uid)
            self._drop_ended(uid)
            hold = self.by_uid.get(uid)
            if hold is not None:
                if reason == EXPIRED:
                    _forgo(tables, hold)
                drop_reservation(tables, hold)
                self._remove(hold)
                if hold.announced:
                    self.forget(uid)
                if hold.gang is not None:
                    tables.gangs.drop_if_empty(hold.gang)

    def recall_filled(self, tables: "Tables", uids: Iterable[str]) -> None:
        """Remove the holds of these lost pods, which a decision in the log fills. Their closing
        notes follow in the log; the next leader writes missing ones.
        """
        for uid in uids:
            self.settle(uid)
            hold = self.by_uid.get(uid)
            if hold is not None:
                drop_reservation(tables, hold)
                self._remove(hold)
                self._ended.append((hold, "Filled"))

    def recall_epoch(self, tables: "Tables", snapshot_seq: int) -> None:
        """Settle pending losses that the writer of a new epoch did not see, because it started
        from a newer snapshot: it opens other holds for the missing members.
        """
        self.unseen_seq = snapshot_seq
        self._settle_up_to(tables, snapshot_seq)

    def recall_cycle(self, tables: "Tables", cluster_seq: int) -> None:
        """Settle pending losses after a record of a newer cycle: the cycle before it had evaluated
        all losses up to its position in CLUSTER, and had opened all holds for them.
        """
        if cluster_seq <= self._cycle_seq:
            return
        before, self._cycle_seq = self._cycle_seq, cluster_seq
        self._settle_up_to(tables, before)

    def notes_of(self) -> dict[str, list[NoteOpened]]:
        """Open notes by gang id, for a checkpoint."""
        notes: dict[str, list[NoteOpened]] = {}
        for hold in self.by_uid.values():
            notes.setdefault(hold.gang_id, []).append(_opened(hold, 0, None))
        return notes

    # ---------------------------------------------------------------- internal

    def _settle_up_to(self, tables: "Tables", cluster_seq: int) -> None:
        for uid, loss in list(self.pending.items()):
            if loss.cluster_seq <= cluster_seq:
                self.settle(uid)
                gang = tables.gangs.gangs.get(loss.key)
                if gang is not None:
                    tables.gangs.drop_if_empty(gang)

    def _drop_ended(self, uid: str) -> None:
        """Drop the unwritten closing note of this pod's hold: the log has a newer note of it."""
        if self._ended:
            self._ended = [(hold, why) for hold, why in self._ended if hold.uid != uid]

    def _remove(self, hold: Hold) -> None:
        del self.by_uid[hold.uid]
        self._detach(hold)

    def _detach(self, hold: Hold) -> None:
        if hold.gang is None:
            return
        replacements = self._of[hold.gang.key]
        del replacements[hold.uid]
        if not replacements:
            del self._of[hold.gang.key]
            self.tried.pop(hold.gang.key, None)

    def _uncount(self, key: GangKey) -> None:
        self._lost[key] -= 1
        if not self._lost[key]:
            del self._lost[key]


def drop_reservation(tables: "Tables", hold: Hold) -> None:
    """End a hold's reservation, if it has one; the hold stays."""
    reservation = hold.reservation
    if reservation is None:
        return
    hold.reservation, hold.node = None, ""
    tables.reservations.end_apart(reservation)
    if hold.gang is not None:
        hold.gang.hold(hold.shape, -1)
    hold.tried = ()
    tables.drop_phantom(reservation.slot)


def _forgo(tables: "Tables", hold: Hold) -> None:
    """Note in the history of its gang that a lost member's hold has expired."""
    if not hold.reserving and not hold.repairing:
        tables.gangs.history(hold.gang_id).holds_forgone += 1


def _opened(hold: Hold, epoch: int, cycle: Cycle | None) -> NoteOpened:
    return NoteOpened(
        gang_id=hold.gang_id,
        epoch=epoch,
        kind="hold",
        at_ms=hold.at_ms,
        until_ms=hold.until_ms,
        reason=hold.reason,
        pod_uids=(hold.uid,),
        role=hold.role,
        shape=hold.shape.encoded,
        namespace=hold.namespace,
        labels=hold.labels,
        node=hold.node,
        lost_on=hold.lost_on,
        message=hold.message,
        cycle=cycle,
        workload=hold.workload,
        part=hold.part,
        gang_key=hold.gang_key if hold.workload else None,
        queue=hold.queue if hold.workload else "",
        priority=hold.priority if hold.workload else 0,
    )


def _key_in(namespace: str, key: GangKey | None) -> GangKey | None:
    """The key of a gang in a note; older versions left the namespace of an owner out."""
    return (key[0], namespace, key[2]) if key is not None and key[0] == "owner" else key


def _by_deadline(hold: Hold) -> tuple[int, str]:
    return hold.until_ms, hold.uid
