"""Keeps capacity for gangs that wait for it, so that small gangs do not keep a large one waiting.

The first gangs that capacity refuses get a reservation: the earliest instant at which they fit, as
run limits say, and the nodes. Other gangs start only if they leave these (`foresight`). Where gangs
without a run limit hold what a gang needs, it gets no instant. After a time capacity is kept for it
as it becomes free, up to a part of the cluster and a time, and then not for as long.

A reservation is a note in the log. It is planned again after capacity was freed, a node changed, or
its instant has passed, and ends with the gang's placement, or when the gang no longer waits for
capacity. Plans are made once a second at most where cycles decide something: in the first cycle of
each second, by the clock of the log, which a replay has, too; and when a reserved gang is placed.
"""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import Final

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.foresight.plan import Future, Plan
from services.gang_planner.core.foresight.profile import Pods
from services.gang_planner.core.foresight.reservations import (
    HELD,
    PAUSED,
    RESERVED,
    rooms_in_log,
)
from services.gang_planner.core.placement import gang_placement
from services.gang_planner.core.placement.attempt import PlacementRequest
from services.gang_planner.core.placement.refusals import shortfall_of
from services.gang_planner.core.queueing.fair_share import Limit
from services.gang_planner.core.state.gangs import Bucket, Gang
from services.gang_planner.core.state.instants import in_words
from services.gang_planner.core.state.needs import Delay
from services.gang_planner.core.state.run_limits import NEVER, overdue_ms
from services.gang_planner.core.state.titles import title_of
from shared.contracts.decisions import NoteOpened, Rooms
from shared.contracts.pending_reasons import PendingReason

#: Refusals that a reservation may end.
_FOR_CAPACITY: Final = frozenset({PendingReason.NOT_ENOUGH_RESOURCES, PendingReason.WOULD_DELAY})
#: Plans are made once in this time at most.
_PACE_MS: Final = 1_000
#: Gangs named in the message of a reservation; others are counted.
_NAMED_MAX: Final = 2


class Reserve:
    """The action in one cycle."""

    def __init__(self, work: CycleContext) -> None:
        self._work = work
        self._state = work.state
        self._reservations = work.reservations
        #: Reservations for each root.
        self._seats = work.reservations.rules.per_root

    def review(self) -> None:
        """Plan all reservations again, in their order, before gangs are tried."""
        state, now_ms = self._state, self._work.now_ms
        if not state.reserved:
            return
        due = False
        for gang in state.reserved.values():
            note = gang.history.notes.reservation
            if note is not None:
                due |= note.until_ms <= now_ms
                at_ms = overdue_ms(note.until_ms, now_ms)
                self._work.timers.set(max(at_ms, self._next_ms()), gang)
        if not self._may_plan():
            return
        self._reservations.foresee(now_ms)
        if not due and state.reserved_mark == self._mark():
            return
        ordered = self._reservations.in_turn()
        seats = Counter[str]()
        with self._reservations.future(now_ms) as future:
            for gang in ordered:
                if self._reservations.work_left <= 0:
                    break
                self._review(gang, seats, future)
        state.reserved_mark = self._mark()

    def candidates(self, active: Container[Bucket]) -> list[Bucket]:
        """Refused buckets that are tried again in this cycle, because their first gangs may get a
        reservation then: when and in which order they are refused must not depend on cycles that a
        replay leaves out.

        Args:
            active: The buckets that are tried in any case. A reserved gang among these may leave
                its place to another one.
        """
        state = self._state
        if not self._seats or not self._may_plan():
            return []
        kept, mark = Counter[str](), self._mark()
        for gang in state.reserved.values():
            if _is_reserved(gang) and gang.bucket is not None and gang.bucket not in active:
                kept[_root(gang)] += 1
        return [
            bucket
            for bucket in state.backlog.buckets.values()
            if kept[_root(bucket.entries[0][2])] < self._seats and _may_reserve(bucket, mark)
        ]

    def wants(self, bucket: Bucket) -> bool:
        """Whether gangs of a bucket that was just refused get a reservation now, if there is an
        instant for them.
        """
        gang = bucket.entries[0][2]
        if not self._seats or not _may_reserve(bucket, self._mark()) or not self._free_seats(gang):
            return False
        may_plan = self._may_plan() or self._has_placed(_root(gang))
        if not may_plan or self._reservations.work_left <= 0:
            self._work.timers.set(self._next_ms(), gang)
            return False
        return not self._work.session.exhausted

    def reserve(self, bucket: Bucket) -> None:
        """Make reservations for the first gangs of a bucket that was just refused."""
        with self._reservations.future(self._work.now_ms) as future:
            self._reserve(bucket, self._free_seats(bucket.entries[0][2]), future)

    def _free_seats(self, gang: Gang) -> int:
        """How many more gangs of the gang's root may have reservations. Those that were placed in
        this cycle have theirs until their next assessment.
        """
        root = _root(gang)
        taken = sum(
            _is_reserved(other) and not other.have() and _root(other) == root
            for other in self._state.reserved.values()
        )
        return self._seats - taken

    def judge(self, refused: Iterable[tuple[Bucket, Limit]]) -> None:
        """Find out which of the buckets that were refused beside what is hidden only leave room for
        a reservation. It is asked after all gangs were tried, when nothing is hidden any more: what
        does not fit then is known not to fit until some of the capacity changes.
        """
        state, session = self._state, self._work.session
        for bucket, limit in refused:
            gang, delay = bucket.entries[0][2], None
            if bucket.reason in _FOR_CAPACITY:
                request = PlacementRequest(
                    queue=gang.queue,
                    need=bucket.need,
                    members_max=bucket.need.least,
                    withheld=limit.withheld,
                )
                missing = gang_placement.missing(session, request)
                if missing is None:
                    delay = self._delay(gang)
                else:
                    bucket.shortfall = shortfall_of(session, bucket.need, missing)
            before = bucket.reason
            bucket.would_delay = delay
            if before != bucket.reason:
                state.gangs.to_republish.update((key, gang) for _, key, gang in bucket.entries)

    def _delay(self, gang: Gang) -> Delay | None:
        """The first reservation that the gang leaves room for; None: it may start by now."""
        now_ms = self._work.now_ms
        binding = self._reservations.binding(gang, now_ms)
        if not binding:
            return None
        first = min(binding, key=lambda kept: kept.from_ms)
        title = title_of(self._state, first.gang)
        return Delay(first.gang.key, title, first.from_ms, max(first.from_ms - now_ms, 0))

    def follow(self, gang: Gang) -> None:
        """Close the reservation of a gang that no longer waits for capacity."""
        if gang.history.notes.reservation is None:
            self._state.reserved.pop(gang.key, None)
        elif gang.bucket is None or gang.history.started:
            self._close(gang, "Placed" if gang.have() else "NotWaiting")
        else:
            self._state.reserved[gang.key] = gang

    def close_unusable(self) -> None:
        """Close reservations whose gangs would not start now even with what they reserved: other
        queues deserve it, or a gang ahead in their strict queue does not fit.
        """
        if self._work.throttled or self._work.session.exhausted:
            return
        for gang in list(self._state.reserved.values()):
            note, bucket = gang.history.notes.reservation, gang.bucket
            if note is None or bucket is None:
                continue
            has_come = note.reason == HELD or note.until_ms <= self._work.now_ms
            withheld = bucket.reason is PendingReason.NOT_ENOUGH_QUOTA and has_come
            if withheld or bucket.reason is PendingReason.BEHIND_IN_QUEUE:
                self._close(gang, "NotEntitled" if withheld else "NotFirst")
                self._work.timers.set(self._work.now_ms, gang)

    def _may_plan(self) -> bool:
        """Whether this is the first cycle of a second, as far as cycles are in the log."""
        return self._work.now_ms // _PACE_MS != self._state.recorded_ms // _PACE_MS

    def _has_placed(self, root: str) -> bool:
        """Whether a reserved gang of this root was placed in this cycle. The next one gets its
        reservation at once: gangs behind it would take what it needs.
        """
        return any(gang.have() and _root(gang) == root for gang in self._state.reserved.values())

    def _next_ms(self) -> int:
        return (self._work.now_ms // _PACE_MS + 1) * _PACE_MS

    def _mark(self) -> tuple[object, ...]:
        """Versions of all that plans depend on, except the time."""
        state = self._state
        placed, nodes = state.preemptions.stirred, state.nodes.changes.position
        version = self._reservations.profile.version
        return version, state.node_capacity.freed, placed, nodes, tuple(state.reserved)

    def _review(self, gang: Gang, seats: Counter[str], future: Future) -> None:
        note, bucket = gang.history.notes.reservation, gang.bucket
        if note is None or bucket is None:
            return
        if note.reason == RESERVED:
            seats[_root(gang)] += 1
        # A gang that waited for a hold may have got an instant beside those with a reservation.
        if seats[_root(gang)] > self._seats + 1 or not self._seats:
            self._close(gang, "Off")
        elif note.reason == RESERVED:
            plan = self._reservations.plan(future, gang, bucket.need, beyond=False)
            later = plan is None or plan.from_ms > note.until_ms
            if later and self._state.preemptions.opened:
                # What leaves for a preemptor is counted for both until it has left.
                return
            if plan is not None:
                self._keep(gang, plan)
            elif gang.queue.run_rules.hold_after_ms and not self._one_waits(_root(gang)):
                # Capacity may have been held for it before it had an instant.
                self._pause(gang, self._work.now_ms + self._reservations.rules.held_ms)
            else:
                self._close(gang, "NoInstant")
        else:
            self._hold(gang, note, bucket, future)

    def _reserve(self, bucket: Bucket, seats: int, future: Future) -> None:
        """Make at most so many reservations for gangs of this bucket."""
        for _, _, gang in bucket.entries[:seats]:
            if gang.history.started or gang.have() or _is_reserved(gang):
                continue
            plan = self._reservations.plan(future, gang, bucket.need, beyond=False)
            if plan is None or plan.from_ms <= self._work.now_ms:
                if plan is None:
                    self._wait_for_hold(gang, bucket, future)
                # Else it waits for something else, such as nodes that refused its members.
                bucket.unplanned_at = self._mark()
                break
            self._keep(gang, plan)

    def _wait_for_hold(self, gang: Gang, bucket: Bucket, future: Future) -> None:
        """Let capacity be kept, some time after it came, for a gang whose instant is not known, if
        that would ever help it, and no other gang of its root waits like this.
        """
        wait_ms = gang.queue.run_rules.hold_after_ms
        if not wait_ms or self._one_waits(_root(gang)):
            return
        if self._reservations.plan(future, gang, bucket.need, beyond=True) is not None:
            self._pause(gang, max(gang.history.first_seen_ms + wait_ms, self._work.now_ms))

    def _one_waits(self, root: str) -> bool:
        """Whether a gang of this root waits for a hold, or has one."""
        reserved = self._state.reserved.values()
        return any(_root(gang) == root and not _is_reserved(gang) for gang in reserved)

    def _keep(self, gang: Gang, plan: Plan) -> None:
        """Reserve what a plan says, unless it is reserved already."""
        rooms = rooms_in_log(self._state.nodes, plan.rooms)
        note = gang.history.notes.reservation
        if note is not None and note.reason == RESERVED and note.rooms == rooms:
            # An instant that has come is not written again every second.
            has_come = note.until_ms <= self._work.now_ms and plan.from_ms <= self._work.now_ms
            if has_come or note.until_ms == plan.from_ms:
                return
        message = self._reserved_words(gang, plan)
        until_ms = max(plan.from_ms, self._work.now_ms + 1)
        self._open(gang, RESERVED, until_ms, message, rooms)

    def _hold(self, gang: Gang, note: NoteOpened, bucket: Bucket, future: Future) -> None:
        """Follow a gang whose instant is not known: reserve if it is known by now, or hold
        capacity, or pause.
        """
        held_ms, now_ms = self._reservations.rules.held_ms, self._work.now_ms
        due = note.until_ms <= now_ms
        plan = self._reservations.plan(future, gang, bucket.need, beyond=due)
        if plan is not None and now_ms < plan.from_ms < NEVER:
            self._keep(gang, plan)
        elif not due or (plan is not None and plan.from_ms <= now_ms):
            # If it fits now, it waits for something else, such as its queue's share.
            return
        elif plan is None and note.reason == PAUSED:
            self._close(gang, "NoInstant")
        elif plan is None or note.reason == HELD:
            self._pause(gang, now_ms + held_ms)
        else:
            plan = plan._replace(rooms=self._first_part(plan.rooms))
            message = (
                f"Tutti keeps free capacity on {_nodes(plan)} for it until "
                f"{in_words(now_ms + held_ms)}: gangs without a run limit hold what it needs, so "
                "Tutti does not know when it starts"
            )
            rooms = rooms_in_log(self._state.nodes, plan.rooms)
            self._open(gang, HELD, now_ms + held_ms, message, rooms)

    def _pause(self, gang: Gang, until_ms: int) -> None:
        message = (
            "gangs without a run limit hold what it needs, so Tutti does not know when it starts; "
            f"it keeps capacity for it from {in_words(until_ms)} on"
        )
        self._open(gang, PAUSED, until_ms, message, ())

    def _open(self, gang: Gang, reason: str, until_ms: int, message: str, rooms: Rooms) -> None:
        before = gang.history.notes.reservation
        self._work.open_note(
            gang,
            "reservation",
            until_ms=until_ms,
            reason=reason,
            message=message,
            since_ms=before.since_ms if before is not None else self._work.now_ms,
            rooms=rooms,
        )
        self._state.reserved[gang.key] = gang
        self._changed(before)

    def _close(self, gang: Gang, reason: str) -> None:
        before = gang.history.notes.reservation
        self._work.close_note(gang, "reservation", reason)
        self._state.reserved.pop(gang.key, None)
        self._changed(before)

    def _changed(self, before: NoteOpened | None) -> None:
        """Hide what is kept now. Gangs that were refused beside what was kept are tried again."""
        self._reservations.changed()
        if before is not None and before.rooms:
            self._state.node_capacity.freed += 1

    def _first_part(self, rooms: Sequence[Pods]) -> tuple[Pods, ...]:
        """As many of these rooms, in their order, as the part of the cluster that may be held, for
        all gangs together.
        """
        percent = self._reservations.rules.held_percent
        left = [total * percent // 100 for total in self._work.session.totals]
        for other in self._reservations.kept:
            if other.held:
                held: list[int] = other.amounts.sum(axis=1).tolist()
                left = [max(amount - row, 0) for amount, row in zip(left, held, strict=False)]
        kept: list[Pods] = []
        for pods in rooms:
            known = [(row, amount) for row, amount in pods.shape.pairs if row < len(left)]
            fitting = min((left[row] // amount for row, amount in known), default=0)
            before = pods.counts.cumsum() - pods.counts
            counts = (fitting - before).clip(0, pods.counts)
            for row, amount in known:
                left[row] -= amount * int(counts.sum())
            some = counts > 0
            if some.any():
                kept.append(Pods(pods.shape, pods.slots[some], counts[some]))
        return tuple(kept)

    def _reserved_words(self, gang: Gang, plan: Plan) -> str:
        """When it starts, where, and which gangs must end before, by name if of its namespace."""
        slots = {slot for pods in plan.rooms for slot in pods.slots.tolist()}
        ending = [
            span
            for span in self._reservations.profile.spans
            if span.end_ms <= plan.from_ms
            and span.gang is not None
            and any(not slots.isdisjoint(pods.slots.tolist()) for pods in span.pods)
        ]
        own = [
            f"{title_of(self._state, span.gang)} (limit {in_words(span.end_ms)})"
            for span in ending
            if span.gang is not None and span.gang.namespace == gang.namespace
        ]
        names = own[-_NAMED_MAX:]
        more = len(ending) - len(names)
        if more:
            names.append(_gangs(more, " other" if names else ""))
        verb = "ends" if len(ending) == 1 else "end"
        when = f", when {' and '.join(names)} {verb}" if names else ""
        return f"reserved for {in_words(plan.from_ms)} on {_nodes(plan)}{when}"


def _nodes(plan: Plan) -> str:
    nodes = len({slot for pods in plan.rooms for slot in pods.slots.tolist()})
    return f"{nodes} node{'' if nodes == 1 else 's'}"


def _gangs(count: int, kind: str) -> str:
    return f"{count}{kind} gang{'' if count == 1 else 's'}"


def _root(gang: Gang) -> str:
    return gang.queue.chain[-1].name


def _is_reserved(gang: Gang) -> bool:
    note = gang.history.notes.reservation
    return note is not None and note.reason == RESERVED


def _may_reserve(bucket: Bucket, mark: tuple[object, ...]) -> bool:
    """Whether a reservation may help a bucket's gangs, and was not refused in this state."""
    return (
        bucket.reason in _FOR_CAPACITY
        and bucket.need.quorum > 0
        and bucket.need.provisioning is None
        and not bucket.unsatisfiable
        and bucket.unplanned_at != mark
    )
