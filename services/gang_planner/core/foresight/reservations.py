"""The reservations of waiting gangs in one cycle, and what they hide from other gangs.

A reservation keeps capacity on nodes for its gang, from an instant on until the gang would end. A
gang that runs beyond that instant must leave it; one that ends before may use it. So a gang sees
on each node the least of what is free now and of what no reservation needs while it would run.

Reservations of gangs with higher priority precede those with lower ones, then the oldest. A gang
leaves room for all but those of lower priority, also if it starts before the instant of its own.
When that has come, it may use what it has reserved, whatever those behind it need.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np

from services.gang_planner.core.foresight.curtain import Curtain
from services.gang_planner.core.foresight.plan import Future, Plan
from services.gang_planner.core.foresight.profile import Pods, Profile, add
from services.gang_planner.core.placement.attempt import PlacementRequest
from services.gang_planner.core.placement.session import ACTION_WORK, Session
from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.needs import Need, ProvisioningStage
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import ShapeTable
from services.gang_planner.core.state.run_limits import NEVER, ReserveRules, end_ms, limit_ms
from shared.contracts.decisions import NoteOpened, Rooms
from shared.contracts.subjects import PAGE_BYTES_MAX
from shared.model.gang_keys import GangKey

#: Reasons of the note: the gang starts at `until_ms` at the latest; capacity is kept until then,
#: and may suffice; none is kept until then, because it was kept before.
RESERVED: Final = "Reserved"
HELD: Final = "Held"
PAUSED: Final = "Paused"
_PROVISIONED: Final = ProvisioningStage.PROVISIONED
#: Of the nodes of a reservation in its note, and of one of them without its name.
_ROOMS_BYTES_MAX: Final = PAGE_BYTES_MAX // 2
_PLACE_BYTES: Final = 12
#: A gang whose instant moves by less than this does not move those behind it by more.
_LATE_MS: Final = 60_000

_Seen: TypeAlias = tuple[tuple[GangKey, ...], GangKey | None, bool]
"""Whose reservations are hidden, whose own one is not, and whether it is for a preemptor."""
_NOTHING: Final[_Seen] = ((), None, False)


class KeptCapacity(NamedTuple):
    """The capacity of one reservation."""

    gang: Gang
    #: From when on, and until when; a hold has neither.
    from_ms: int
    until_ms: int
    #: By resource row and slot.
    amounts: Ints

    @property
    def held(self) -> bool:
        """Whether it is a hold, from now on."""
        return not self.from_ms


class _Known(NamedTuple):
    """What was made of a note, and of what else that depends on."""

    note: NoteOpened
    as_of: tuple[object, ...]
    kept: KeptCapacity


class Reservations:
    """What is kept for waiting gangs, as their notes say. The caller writes these notes."""

    def __init__(self, state: State, session: Session, rules: ReserveRules) -> None:
        self._state = state
        self._session = session
        self.rules = rules
        self._now_ms = 0
        self.curtain = Curtain(session.node_capacity)
        self.profile = Profile(state)
        #: In the order of precedence; see `precedence`.
        self.kept: list[KeptCapacity] = []
        self._known: dict[GangKey, _Known] = {}
        self._seen = _NOTHING
        #: What is kept is up to date in this cycle.
        self._current = False
        #: When it becomes free is up to date in this cycle.
        self._foreseen = False
        #: For plans until the next gang is placed, and the budget of bindings until then.
        self._future: Future | None = None
        self._future_at = 0
        #: Node columns that plans may still examine in this cycle, beside those of all actions.
        self.work_left = ACTION_WORK
        #: What is hidden beside these reservations, as of what is kept and foreseen now.
        self._hidden_beside: dict[_Seen, Ints | None] = {}

    @property
    def hides(self) -> bool:
        """Whether anything is hidden now."""
        return self.curtain.hides

    def end(self) -> None:
        """End a cycle: hide nothing, and keep nothing in memory that no reservation needs."""
        self.lift()
        self._current = self._foreseen = False
        self._future = None
        self.work_left = ACTION_WORK
        self._hidden_beside.clear()
        if not self._state.reserved:
            self.profile.forget()
            self._known.clear()

    def read(self, now_ms: int) -> None:
        """Read notes again, unless nothing has changed since, in this cycle."""
        self._now_ms = now_ms
        if self._current:
            return
        self._current = True
        self.kept = []
        for gang in self.in_turn():
            note = gang.history.notes.reservation
            if note is not None and note.reason != PAUSED:
                self.kept.append(self._of_note(gang, note))
        self._known = {each.gang.key: self._known[each.gang.key] for each in self.kept}

    def in_turn(self) -> list[Gang]:
        """The gangs with a note, in the order in which their reservations have precedence. Where
        past use counts, that of their queues goes before the age of the reservation.
        """
        gangs, policies = self._state.reserved.values(), self._session.policies
        if policies.use_rules is None:
            return sorted(gangs, key=precedence)
        totals = self._session.totals

        def turn(gang: Gang) -> tuple[object, ...]:
            first, *others = precedence(gang)
            return first, policies.queue_order_start(gang.queue, totals), *others

        return sorted(gangs, key=turn)

    def foresee(self, now_ms: int) -> None:
        """Read the profile again, once in a cycle. Gangs that are placed later in it do not end, as
        far as the profile knows, until there is another plan: more is hidden than need be.
        """
        if not self._foreseen:
            self._foreseen = True
            self.profile.refresh(now_ms)

    def changed(self) -> None:
        """Read notes again: one was opened or closed."""
        self.lift()
        self._current = False
        self._hidden_beside.clear()

    def _of_note(self, gang: Gang, note: NoteOpened) -> KeptCapacity:
        nodes, lasts_ms = self._state.nodes, limit_ms(gang)
        as_of = nodes.changes.position, len(nodes.resources.names), lasts_ms
        known = self._known.get(gang.key)
        if known is not None and known.note is note and known.as_of == as_of:
            return known.kept
        # Shapes may name resources that were not known.
        rooms = list(rooms_of(nodes, self._state.shapes, note))
        amounts = self.profile.nothing()
        for pods in rooms:
            add(amounts, pods)
        held = note.reason == HELD
        # Every note has a deadline, also one whose instant has come.
        from_ms = note.at_ms if note.until_ms == note.at_ms + 1 else note.until_ms
        if held:
            from_ms = 0
        until_ms = from_ms + lasts_ms if lasts_ms and not held else NEVER
        kept = KeptCapacity(gang, from_ms, until_ms, amounts)
        self._known[gang.key] = _Known(note, as_of, kept)
        return kept

    def show(self, gang: Gang, now_ms: int, *, evicts: bool = False) -> None:
        """Hide from now on what this gang must leave; `evicts`: also of what other gangs hold, as
        it takes their place for longer than they would have run.
        """
        binding, own = self.binding(gang, now_ms), self._due(gang, now_ms)
        seen = _seen_of(binding, own, evicts=evicts)
        if seen != self._seen:
            self.curtain.lift()
            self._seen = seen
            hidden = self._beside(seen, binding, own, now_ms)
            if hidden is not None:
                self.curtain.draw(hidden)

    def _beside(
        self,
        seen: _Seen,
        binding: Sequence[KeptCapacity],
        own: KeptCapacity | None,
        now_ms: int,
    ) -> Ints | None:
        """What is hidden beside these reservations."""
        if seen not in self._hidden_beside:
            self._hidden_beside[seen] = self._hidden(binding, now_ms, ends_count=not seen[-1])
        hidden = self._hidden_beside[seen]
        return hidden if hidden is None or own is None else self._without(own, hidden, now_ms)

    def would_see(self, gang: Gang, now_ms: int) -> bool:
        """Whether `show` would hide something else than is hidden now."""
        return self._seen != _seen_of(self.binding(gang, now_ms), self._due(gang, now_ms))

    def lift(self) -> None:
        """Hide nothing."""
        self.curtain.lift()
        self._seen = _NOTHING

    def binding(self, gang: Gang, now_ms: int) -> Sequence[KeptCapacity]:
        """The reservations that the gang might delay if it were placed now."""
        bucket = gang.bucket
        provisioned = bucket is not None and bucket.need.provisioning is _PROVISIONED
        if not self._state.reserved or provisioned:
            # Nodes that were added for it are its own.
            return ()
        self.read(now_ms)
        return list(self._binding(gang, now_ms, self._end_of(gang), behind=True))

    def plan(self, future: Future, gang: Gang, need: Need, *, beyond: bool) -> Plan | None:
        """The earliest instant at which a gang with this need fits, beside the other reservations;
        with `beyond`, after gangs without a limit have ended as well. Only a gang whose own instant
        cannot be kept moves those behind it.
        """
        spent = future.spent
        try:
            return self._plan(future, gang, need, beyond=beyond)
        finally:
            self.work_left -= future.spent - spent

    def _plan(self, future: Future, gang: Gang, need: Need, *, beyond: bool) -> Plan | None:
        if need.avoid:
            # A gang avoids nodes that refused its pods for a minute only.
            need = msgspec.structs.replace(need, avoid=())
        request = PlacementRequest(queue=gang.queue, need=need, members_max=need.quorum)
        lasts_ms, now_ms = limit_ms(gang), self._now_ms
        # Another gang's reservation may have been made since.
        self.read(now_ms)
        own = self._own(gang)
        beside = _Beside(self, gang, behind=True)
        if own is None or own.held:
            return future.plan(request, lasts_ms, beside, near_ms=NEVER, beyond=beyond)
        for late_ms in (0, _LATE_MS):
            beside = _Beside(self, gang, behind=True, late_ms=late_ms)
            until_ms = max(own.from_ms, now_ms) + late_ms
            plan = future.plan(request, lasts_ms, beside, near_ms=until_ms, until_ms=until_ms)
            if plan is not None:
                return plan
        beside = _Beside(self, gang, behind=False)
        return future.plan(request, lasts_ms, beside, near_ms=own.from_ms)

    def future(self, now_ms: int) -> Future:
        """The nodes as they are now, to plan on. The caller hides nothing while it plans."""
        self.lift()
        self.read(now_ms)
        if self._future is None or self._future_at != self._session.bindings_left:
            self._foreseen = True
            self._hidden_beside.clear()
            self.profile.refresh(now_ms)
            self._future = Future(self._session, self.profile, now_ms)
            self._future_at = self._session.bindings_left
        return self._future

    def _end_of(self, gang: Gang) -> int:
        if gang.history.started:
            return end_ms(gang, self._now_ms)
        lasts_ms = limit_ms(gang)
        return self._now_ms + lasts_ms if lasts_ms else NEVER

    def _own(self, gang: Gang) -> KeptCapacity | None:
        return next((kept for kept in self.kept if kept.gang is gang), None)

    def _due(self, gang: Gang, now_ms: int) -> KeptCapacity | None:
        """The reservation of this gang, if its instant has come."""
        own = self._own(gang)
        return own if own is not None and own.from_ms <= now_ms else None

    def _binding(
        self, gang: Gang, at_ms: int, until_ms: int, *, behind: bool, late_ms: int = 0
    ) -> Iterator[KeptCapacity]:
        """Reservations that the gang must leave room for if it runs from one instant to another;
        `behind`: also those that its own precedes, which may start so much later.
        """
        start_ms = until_ms
        for kept in self.kept:
            if kept.gang is gang:
                if not behind:
                    return
                start_ms -= late_ms
                continue
            # A gang that was placed in this cycle has a note until its next assessment.
            waits = kept.gang.bucket is not None
            meets = kept.from_ms < start_ms and at_ms < kept.until_ms
            if waits and meets and kept.gang.priority >= gang.priority:
                yield kept

    def _without(self, own: KeptCapacity, hidden: Ints, at_ms: int) -> Ints:
        """Less of what is hidden from a gang whose instant has come: it may use what it reserved,
        unless those ahead of it need that.
        """
        node_capacity = self._session.node_capacity
        node_capacity.fit_cells()
        spare = node_capacity.free.cells[: len(hidden), : hidden.shape[1]] - own.amounts
        hidden = np.minimum(hidden, spare.clip(0))
        ahead = self._binding(own.gang, at_ms, own.until_ms, behind=False)
        needed = self._hidden(list(ahead), at_ms)
        return hidden if needed is None else np.maximum(hidden, needed)

    def _hidden(
        self, binding: Sequence[KeptCapacity], at_ms: int, *, ends_count: bool = True
    ) -> Ints | None:
        if not binding:
            return None
        hidden = self.profile.nothing()
        for instant_ms in sorted({max(kept.from_ms, at_ms) for kept in binding}):
            wanted = self.profile.nothing()
            for kept in binding:
                if kept.from_ms <= instant_ms < kept.until_ms:
                    # Resources may have become known since.
                    wanted[: len(kept.amounts)] += kept.amounts
            if instant_ms > at_ms and ends_count:
                self.foresee(self._now_ms)
                wanted -= self.profile.freed(at_ms, instant_ms)
            np.maximum(hidden, wanted, out=hidden)
        return hidden

    def ends(self, beside: "_Beside") -> Iterator[int]:
        """The ends of the gangs whose reservations this gang leaves room for."""
        for kept in self._binding(beside.gang, self._now_ms, NEVER, behind=beside.behind):
            if self._now_ms < kept.until_ms < NEVER:
                yield kept.until_ms

    def hidden_from(self, beside: "_Beside", at_ms: int, until_ms: int) -> Ints | None:
        """See `plan.Hides`."""
        behind, late_ms = beside.behind, beside.late_ms
        binding = self._binding(beside.gang, at_ms, until_ms, behind=behind, late_ms=late_ms)
        return self._hidden(list(binding), at_ms)


class _Beside(NamedTuple):
    """What the other reservations hide from a gang."""

    reservations: Reservations
    gang: Gang
    #: Also reservations behind its own, and by how much they may start later.
    behind: bool
    late_ms: int = 0

    def ends(self) -> Iterable[int]:
        return self.reservations.ends(self)

    def hidden(self, at_ms: int, until_ms: int) -> Ints | None:
        return self.reservations.hidden_from(self, at_ms, until_ms)


def rooms_of(nodes: NodeTable, shapes: ShapeTable, note: NoteOpened) -> Iterator[Pods]:
    """What a note keeps, on the nodes that exist."""
    for encoded, places in note.rooms:
        counts = {slot: count for name, count in places if (slot := nodes.find(name)) is not None}
        if counts:
            shape = shapes.intern(encoded)
            slots = np.fromiter(counts, dtype=np.int64, count=len(counts))
            yield Pods(shape, slots, np.fromiter(counts.values(), np.int64, count=len(counts)))


def rooms_in_log(nodes: NodeTable, rooms: Iterable[Pods]) -> Rooms:
    """What a plan keeps, as a note has it: on as many nodes as fit into a page of a checkpoint.
    These are all, unless there are thousands with long names.
    """
    names = nodes.names
    merged: dict[bytes, dict[str, int]] = {}
    for pods in rooms:
        places = merged.setdefault(pods.shape.encoded, {})
        slots: list[int] = pods.slots.tolist()
        counts: list[int] = pods.counts.tolist()
        for slot, count in zip(slots, counts, strict=True):
            places[names[slot]] = places.get(names[slot], 0) + count
    left, kept = _ROOMS_BYTES_MAX, list[tuple[bytes, tuple[tuple[str, int], ...]]]()
    for encoded, places in sorted(merged.items()):
        left -= len(encoded)
        fitting: list[tuple[str, int]] = []
        for name, count in sorted(places.items()):
            left -= len(name) + _PLACE_BYTES
            if left >= 0:
                fitting.append((name, count))
        if fitting:
            kept.append((encoded, tuple(fitting)))
    return tuple(kept)


def _seen_of(
    binding: Iterable[KeptCapacity], own: KeptCapacity | None, *, evicts: bool = False
) -> _Seen:
    keys = tuple(each.gang.key for each in binding)
    return (keys, own.gang.key if own is not None else None, evicts) if keys else _NOTHING


def precedence(gang: Gang) -> tuple[int, int, bool, GangKey]:
    """The order in which reservations have precedence: by priority, then the oldest first. A hold
    does not precede reservations that were made before it.
    """
    note = gang.history.notes.reservation
    if note is None:
        return -gang.priority, NEVER, False, gang.key
    held = note.reason == HELD
    return -gang.priority, note.at_ms if held else note.since_ms, held, gang.key
