"""Preemptions: evictions decided for a gang, and its reservations until it is placed.

The `EvictionDecision` opens a preemption; the `GangDecision` that names it, or a note, ends it. It
stays in the table while pods that it names are on their nodes: they are still its victims, and no
gang gets a replacement reservation for them.

The reservations are derived from the record and the cluster state (`sync`), so a planner that reads
the log has them in its first cycle.
"""

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from services.gang_planner.core.state import preempted_claims
from services.gang_planner.core.state.gang_history import Evicted, History
from services.gang_planner.core.state.gangs import Gang, Member
from services.gang_planner.core.state.member_states import PLACED, RUNNING
from services.gang_planner.core.state.reservations import Reservation
from shared.contracts.decisions import Binding, EvictionDecision, Victim
from shared.contracts.outcomes import Outcome
from shared.contracts.verdicts import PodRef
from shared.model.invariants import InvariantViolation

if TYPE_CHECKING:
    from services.gang_planner.core.state.tables import Tables
    from shared.model.devices import ResourceClaim
    from shared.model.gang_keys import GangKey

#: Maximum duration of the reservations. The grace period of a victim may be an hour, but then the
#: gang is placed elsewhere instead of waiting.
LEAVING_MS: Final = 600_000
#: How long after its decision an eviction may still be carried out: binders start none later than a
#: minute after it, and no request lasts longer than two minutes.
_CARRIED_OUT_MS: Final = 180_000

#: Maximum number of evicted pods that are listed for one gang.
_PODS_MAX: Final = 100


class Preemption(msgspec.Struct, eq=False):
    """One eviction decision for a gang."""

    act: EvictionDecision
    #: Sequence of its decision; 0 until it is in the log.
    seq: int = 0
    #: When it was decided; the clock may have been set back since.
    at_ms: int = 0
    #: The preemptor; None while the gang is not in the cluster state.
    gang: Gang | None = None
    #: Reservations for its bindings and the gangs charged for them, by pod UID.
    reservations: dict[str, tuple[Reservation, Gang]] = {}
    outcome: Outcome | None = None
    outcome_seq: int = 0
    #: Whether it has ended and has no reservations.
    ended: bool = False
    #: Gangs of its victims and their number of victims, by gang id; empty until known.
    hit: dict[str, tuple[Gang, int]] = {}
    #: `NodeCapacity.freed` when its gang last did not fit elsewhere; None: not tried.
    tried: int | None = None
    #: UIDs of victims whose loss this planner saw.
    seen_left: set[str] = set()

    def __post_init__(self) -> None:
        self.at_ms = self.act.cycle.now_ms

    def victim_left(self, uid: str, history: History) -> None:
        """Note in the history of its gang that a victim, which gets no hold, has left."""
        if uid not in self.seen_left:
            self.seen_left.add(uid)
            history.holds_forgone += 1

    @property
    def until_ms(self) -> int:
        """When its reservations end at the latest."""
        return self.at_ms + LEAVING_MS


class Preemptions:
    """All preemptions that are open or whose victims still exist."""

    def __init__(self) -> None:
        #: Preemptions in the log, by sequence.
        self.logged: dict[int, Preemption] = {}
        #: Preemptions decided in the current cycle.
        self._fresh: list[Preemption] = []
        self._of: dict[GangKey, Preemption] = {}
        #: Preemptions by the UIDs of their victims.
        self.victims: dict[str, Preemption] = {}
        #: Grows whenever a pod may have become a victim, or a gang a preemptor.
        self.stirred = 0

    def of(self, gang: Gang) -> Preemption | None:
        """The gang's open preemption; None: it has none."""
        return self._of.get(gang.key)

    def evict_whole(self, gang: Gang) -> bool:
        """Whether evictions in flight leave the gang less than its quorum.

        Replacements for its evicted members are then placed together with its other members, after
        all victims have left.
        """
        leaving = going = 0
        for uid in self.victims.keys() & gang.members.keys():
            member = gang.members[uid]
            leaving += member.slot is not None
            going += member.state in {PLACED, RUNNING}
        return leaving > 0 and gang.have() - going < max(gang.min_member, 1)

    @property
    def opened(self) -> list[Preemption]:
        """All open preemptions, oldest first."""
        return [
            preemption
            for preemption in (*self.logged.values(), *self._fresh)
            if not preemption.ended
        ]

    def add(self, tables: "Tables", act: EvictionDecision, gang: Gang) -> None:
        """Add a preemption that was just decided, and make its reservations."""
        preemption = Preemption(act)
        self._fresh.append(preemption)
        self._enter(preemption)
        self._attach(tables, preemption, gang)
        self.sync_one(tables, preemption)
        preemption.hit = _hit_by(tables, preemption)

    def number(self, seq: int, act: EvictionDecision) -> None:
        """Record the sequence that the log gave to a decision of this planner."""
        for preemption in self._fresh:
            if preemption.act is act:
                preemption.seq = seq
                self.logged[seq] = preemption
                self._fresh.remove(preemption)
                return
        raise InvariantViolation(f"eviction {seq} for {act.gang}", "was not decided here")

    def recall(self, seq: int, act: EvictionDecision) -> Preemption:
        """Restore a preemption from the log; the next `sync` makes its reservations."""
        preemption = self.logged[seq] = Preemption(act, seq)
        self._enter(preemption)
        return preemption

    def find(self, gang_id: str) -> Preemption | None:
        """The open preemption with this gang id in the log; None: there is none."""
        preemptions = self.logged.values()
        named = (each for each in preemptions if not each.ended and each.act.gang_id == gang_id)
        return next(named, None)

    def end(self, tables: "Tables", preemption: Preemption) -> None:
        """End a preemption and its reservations. Victims that do not terminate, and that no binder
        may still evict, are no longer its victims.
        """
        preemption.ended = True
        self.release(tables, preemption)
        if preemption.gang is not None and self._of.get(preemption.gang.key) is preemption:
            del self._of[preemption.gang.key]
        self._let_go(tables, preemption, over=False)

    def _let_go(self, tables: "Tables", preemption: Preemption, *, over: bool) -> None:
        """Drop the victims of an ended preemption that are gone, and those that stay: its outcome
        reports them as not evicted, or its time is `over`. The gangs of the latter are assessed
        again, because they may have waited for their eviction.
        """
        refused = not_evicted(preemption)
        for victim in preemption.act.victims:
            if self.victims.get(victim.uid) is not preemption:
                continue
            member = tables.members.get(victim.uid)
            if member is None:
                if tables.view.cluster_seq >= preemption.act.cycle.cluster_seq:
                    del self.victims[victim.uid]
            elif not member.pod.deleting and (over or victim.uid in refused):
                del self.victims[victim.uid]
                self.stirred += 1
                if member.gang is not None:
                    tables.gangs.touch(member.gang)

    def sync(self, tables: "Tables", now_ms: int) -> int | None:
        """Update gangs and reservations from the cluster state, before a cycle places gangs.

        Returns:
            When the next ended preemption drops the victims that stay; None: there is none.
        """
        following: list[int] = []
        for seq, preemption in list(self.logged.items()):
            if preemption.ended:
                # The clock may have been set back since.
                preemption.at_ms = min(preemption.at_ms, now_ms)
                over_ms = preemption.at_ms + _CARRIED_OUT_MS
                self._let_go(tables, preemption, over=over_ms <= now_ms)
                if not any(
                    self.victims.get(each.uid) is preemption for each in preemption.act.victims
                ):
                    del self.logged[seq]
                elif over_ms > now_ms:
                    following.append(over_ms)
                continue
            gang = _gang_of(tables, preemption)
            if gang is not preemption.gang:
                if preemption.gang is not None and self._of.get(preemption.gang.key) is preemption:
                    del self._of[preemption.gang.key]
                preemption.gang = None
                if gang is not None:
                    self._attach(tables, preemption, gang)
                    tables.gangs.touch(gang)
            self.sync_one(tables, preemption)
            if not preemption.hit:
                preemption.hit = _hit_by(tables, preemption)
        return min(following, default=None)

    def release(self, tables: "Tables", preemption: Preemption) -> None:
        """End a preemption's reservations for an attempt; `sync_one` makes them again."""
        for uid in list(preemption.reservations):
            _drop(tables, preemption, uid)

    def sync_one(self, tables: "Tables", preemption: Preemption) -> None:
        """Keep one reservation for each binding whose pod still waits and whose node exists."""
        gang = preemption.gang
        vacated: list[ResourceClaim] | None = None
        allocated = tables.node_capacity.devices.allocated
        for binding in preemption.act.bindings:
            member = tables.members.get(binding.uid)
            slot = tables.nodes.find(binding.node)
            kept = preemption.reservations.get(binding.uid)
            if (
                gang is None
                or member is None
                or slot is None
                or not tables.nodes.exists[slot]
                or not _waits(member, gang)
            ):
                if kept is not None:
                    _drop(tables, preemption, binding.uid)
                continue
            if kept is not None:
                if kept[0].shape is member.shape:
                    continue
                _drop(tables, preemption, binding.uid)
            reservation = Reservation(
                owner=gang.gang_id,
                uid=binding.uid,
                shape=member.shape,
                slot=slot,
                reason="preemptor",
            )
            if vacated is None and member.shape.shape.device_claims:
                # It gets the devices of pods that are leaving, which still have them.
                own = _uids(preemption.act.bindings)
                vacated = preempted_claims.vacated_for(tables, own, self.victims)
                allocated.vacate(vacated)
            tables.reservations.keep_apart(reservation)
            gang.hold(reservation.shape, 1)
            preemption.reservations[binding.uid] = reservation, gang
        if vacated:
            allocated.vacate(())
        for reservation, _ in preemption.reservations.values():
            reservation.until_ms = preemption.until_ms

    def reservations(self) -> list[Reservation]:
        return [
            reservation
            for preemption in self.opened
            for reservation, _ in preemption.reservations.values()
        ]

    def held_of(self, gang: Gang) -> list[Reservation]:
        """The reservations for which a gang is charged."""
        return [
            reservation
            for preemption in self.opened
            for reservation, charged in preemption.reservations.values()
            if charged is gang
        ]

    def _enter(self, preemption: Preemption) -> None:
        for victim in preemption.act.victims:
            self.victims[victim.uid] = preemption

    def _attach(self, tables: "Tables", preemption: Preemption, gang: Gang) -> None:
        """Set the preemptor: it waits for its victims from its next assessment on. It was admitted
        before the decision, but its object may not show that to a new planner yet.
        """
        gang.admitted = True
        tables.gangs.unadmitted.pop(gang.key, None)
        preemption.gang = gang
        self._of[gang.key] = preemption


def not_evicted(preemption: Preemption) -> frozenset[str]:
    """UIDs of victims that the outcome reports as not evicted; empty without an outcome."""
    outcome = preemption.outcome
    if outcome is None:
        return frozenset()
    if outcome.reason and outcome.reason != "BinderGaveUp" and not outcome.evicted:
        return frozenset(victim.uid for victim in preemption.act.victims)
    return frozenset(
        member.uid for member in outcome.members if member.result in {"refused", "skipped"}
    )


def refused_victims(preemption: Preemption) -> tuple[str, ...]:
    """Sorted UIDs of victims whose eviction the API server refused, according to the outcome."""
    if preemption.outcome is None:
        return ()
    victims = {victim.uid for victim in preemption.act.victims}
    refused = (member.uid for member in preemption.outcome.members if member.result == "refused")
    return tuple(sorted(victims.intersection(refused)))


def devices_held(tables: "Tables", preemption: Preemption) -> bool:
    """Whether the preemptor needs devices that claims in the cluster still have: those reserved for
    it, or those of its victims, which may have left already.
    """
    shapes = [
        row.shape for row, _ in preemption.reservations.values() if row.shape.shape.device_claims
    ]
    if not shapes:
        return False
    awaits_devices = tables.node_capacity.devices.awaits_devices
    if any(awaits_devices(shape) for shape in shapes):
        return True
    return preempted_claims.are_reserved_for(
        tables.reference_objects.resource_claims.values(), _uids(preemption.act.victims)
    )


def _uids(named: Iterable[Binding | Victim]) -> frozenset[str]:
    return frozenset(pod.uid for pod in named)


def _gang_of(tables: "Tables", preemption: Preemption) -> Gang | None:
    """The preemptor, by its id; if its object was recreated, by its pods."""
    gang = tables.gangs.find(preemption.act.gang_id)
    if gang is not None:
        return gang
    for binding in preemption.act.bindings:
        member = tables.members.get(binding.uid)
        if member is not None and member.gang is not None:
            return member.gang
    return None


def _waits(member: Member, gang: Gang) -> bool:
    pod = member.pod
    return member.gang is gang and member.reservation is None and not pod.node and not pod.deleting


def _drop(tables: "Tables", preemption: Preemption, uid: str) -> None:
    reservation, gang = preemption.reservations.pop(uid)
    tables.reservations.end_apart(reservation)
    gang.hold(reservation.shape, -1)
    tables.drop_phantom(reservation.slot)


def record_evicted(tables: "Tables", preemption: Preemption) -> None:
    """Record an eviction that was carried out in the victims' gangs."""
    members = [tables.members.get(victim.uid) for victim in preemption.act.victims]
    for gang, count in preemption.hit.values():
        pods = (
            PodRef(uid=member.pod.uid, name=member.pod.name, node=member.pod.node)
            for member in members
            if member is not None and member.gang is gang
        )
        gang.evicted = Evicted(
            reason=preemption.act.reason,
            preemptor=None if gang is preemption.gang else preemption.act.gang,
            preemptor_id=preemption.act.gang_id,
            members=count,
            attempt=gang.history.attempt,
            pods=tuple(islice(pods, _PODS_MAX)),
        )
        tables.gangs.touch(gang)


def _hit_by(tables: "Tables", preemption: Preemption) -> dict[str, tuple[Gang, int]]:
    """The gangs of the victims and their number of victims, by gang id."""
    victims: dict[str, tuple[Gang, int]] = {}
    for victim in preemption.act.victims:
        member = tables.members.get(victim.uid)
        if member is not None and member.gang is not None:
            gang = member.gang
            victims[gang.gang_id] = gang, victims.get(gang.gang_id, (gang, 0))[1] + 1
    return victims
