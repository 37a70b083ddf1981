"""Places one gang of the backlog, or refuses it.

A gang of higher priority may take capacity that is reserved for lost members of other gangs: these
reservations then move to other nodes.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np

from services.gang_planner.core.allocation import min_resources
from services.gang_planner.core.allocation.decision import FoundPlacement, decide
from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.framework.statement import Statement
from services.gang_planner.core.placement import gang_placement, refusals
from services.gang_planner.core.placement.attempt import Group, PlacementRequest
from services.gang_planner.core.placement.gang_placement import Refusal
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.queueing import fair_share
from services.gang_planner.core.queueing.fair_share import UNLIMITED, Limit
from services.gang_planner.core.queueing.need import members_max
from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.gangs import Bucket, Gang
from services.gang_planner.core.state.holds import Hold, HoldTable
from services.gang_planner.core.state.needs import Need
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.reservations import Reservation
from shared.model.invariants import required

_ONE: Final[Ints] = np.array([1], dtype=np.int64)
#: Gangs for which capacity is kept, the first ones in order: each costs a search.
_KEPT_FOR_MAX: Final = 100


def place_gang(work: CycleContext, gang: Gang, limit: Limit = UNLIMITED) -> bool:
    """Place a gang of the backlog within its fair share, and decide it; False: it does not fit, and
    nothing has changed.
    """
    placement = find_placement(work, gang, limit)
    if placement is not None:
        decide(work, gang, placement)
    return placement is not None


def find_placement(
    work: CycleContext, gang: Gang, limit: Limit = UNLIMITED
) -> FoundPlacement | None:
    """Find nodes for a gang of the backlog within its fair share; None: it does not fit, and
    nothing has changed.

    A gang that has not started, or whose members have to be close together, may use the
    reservations of all its holds. If that does not help, those of gangs with lower priority are
    released as well. What it does not need stays reserved; a hold that loses its reservation looks
    for another one.
    """
    state = work.state
    bucket = required(gang.bucket, gang.full_name, "is placed and does not wait")
    holds = () if is_plain(state.holds, gang) else state.holds.of(gang)
    own = [hold for hold in holds if hold.reservation is not None]
    placement = _attempt(work, gang, bucket, limit, holds, own)
    if placement is None and (lower := _outranked(state.holds, gang)):
        bucket.outranking_mark = _outranking_mark(state.node_capacity.freed, state.holds, gang)
        placement = _attempt(work, gang, bucket, limit, holds, own + lower)
    return placement


def _attempt(
    work: CycleContext,
    gang: Gang,
    bucket: Bucket,
    limit: Limit,
    holds: Sequence[Hold],
    releasable: list[Hold],
) -> FoundPlacement | None:
    """Attempt to place the gang, which has these holds, while some reservations are released."""
    state, need = work.state, bucket.need
    released = ReleasedReservations(state, releasable)
    most = need.members
    if need.may_exceed_message:
        most = members_max(state.holds, state.node_capacity, gang, need)
    if limit.members_max is not None:
        most = min(most, limit.members_max)
    # What was found with released reservations, or beside withheld nodes, is true only now.
    usual = not releasable and limit is UNLIMITED
    request = PlacementRequest(
        queue=gang.queue,
        need=need,
        members_max=most,
        withheld=limit.withheld,
        failed_spaces=bucket.spaces_to_skip(state.node_capacity) if usual else None,
    )
    placement = gang_placement.place(work.session, request)
    bucket.budget_exceeded = placement.budget_exceeded
    if isinstance(placement, Refusal):
        bucket.shortfall = refusals.shortfall_of(work.session, need, placement.missing)
        released.restore()
        return None
    filled: list[Hold] = []
    if holds or releasable:
        # Units of `minResources` stand for all that is still to come of the gang.
        filled = list(holds) if need.reserved else _filled(holds, placement.groups)
        units = [hold for hold in holds if hold.reserving and hold not in filled]
        if units:
            members = placement.statement.allocations
            filled += min_resources.consumed(state, gang, units, members, released=True)
        for hold in released.restore_if_fits(work.session, filled):
            hold.dirty = True
            if hold.gang is not None:
                state.gangs.touch(hold.gang)
    return FoundPlacement(placement.statement, filled, placement.domain)


def would_fit(work: CycleContext, gang: Gang, limit: Limit) -> bool:
    """Whether a gang of the backlog fits within its fair share; nothing has changed."""
    need, state = _need(gang), work.state
    request = PlacementRequest(
        queue=gang.queue, need=need, members_max=need.least, withheld=limit.withheld
    )
    holds = () if is_plain(state.holds, gang) else state.holds.of(gang)
    own = [hold for hold in holds if hold.reservation is not None]
    lower = _outranked(state.holds, gang)
    for releasable in (own, own + lower) if lower else (own,):
        released = ReleasedReservations(state, releasable)
        fits = gang_placement.fits(work.session, request)
        released.restore()
        if fits:
            return True
    return False


def is_plain(holds: HoldTable, gang: Gang) -> bool:
    """Whether replacements of the gang's lost members are placed one by one: it has started, its
    members need not be close together, and no capacity is reserved for pods still to come.
    """
    started = gang.history.started and _need(gang).structure is None
    return started and not min_resources.units_of(holds, gang)


def _outranked(holds: HoldTable, gang: Gang) -> list[Hold]:
    """Holds whose reservation the gang may take, because their gangs have lower priority."""
    return [hold for hold in _held(holds) if _priority(hold) < gang.priority]


def _filled(holds: Iterable[Hold], groups: Iterable[Group]) -> list[Hold]:
    """Holds for which a member of their role was placed."""
    left: dict[str, int] = {}
    for group in groups:
        left[group.role] = left.get(group.role, 0) + group.placed
    filled: list[Hold] = []
    for hold in holds:
        if left.get(hold.role, 0):
            left[hold.role] -= 1
            filled.append(hold)
    return filled


def outranking(state: State) -> list[Bucket]:
    """Buckets whose first gang may take capacity that is reserved for gangs of lower priority, and
    has not tried since anything changed.
    """
    held = _held(state.holds)
    if not held:
        return []
    lowest, freed = min(_priority(hold) for hold in held), state.node_capacity.freed
    return [
        bucket
        for bucket in state.backlog.buckets.values()
        if (first := bucket.entries[0][2]).priority > lowest
        and bucket.outranking_mark != _outranking_mark(freed, state.holds, first)
    ]


def _held(holds: HoldTable) -> list[Hold]:
    """Holds whose reservation a gang of higher priority may take."""
    return [
        hold
        for hold in holds.by_uid.values()
        if hold.reservation is not None and hold.gang is not None and not hold.repairing
    ]


def _priority(hold: Hold) -> int:
    return required(hold.gang, f"hold for {hold.uid}", "has a reservation and no gang").priority


def _outranking_mark(freed: int, holds: HoldTable, gang: Gang) -> tuple[object, ...]:
    return freed, holds.kept, gang.key


def refuse(
    work: CycleContext,
    bucket: Bucket,
    limit: Limit = UNLIMITED,
    *,
    short: bool | None = None,
    beside: bool = False,
) -> None:
    """Refuse all gangs of a bucket, whose first one does not fit within `limit`, until something is
    freed, or until no queue claims the capacity that it would take.

    `short`: whether its queue's ceiling excludes it; None: not known yet. `beside`: capacity was
    hidden from it, so it may only leave room for a reservation, which `reserve` finds out.
    """
    state = work.state
    before = bucket.reason
    queue = state.queues.entry(bucket.need.queue)
    if short is None:
        short = queue.exceeded_by(bucket.need.amounts(state.shapes))
    kept = not short and limit.withheld is not None
    held = kept and fair_share.fits_otherwise(work.session, queue, bucket.need)
    state.backlog.refuse(
        bucket,
        state.node_capacity.freed,
        short_of_quota=short or held,
        claimants=limit.claimants if held else (),
        beside=beside,
    )
    if before != bucket.reason:
        state.gangs.to_republish.update((key, gang) for _, key, gang in bucket.entries)


def _need(gang: Gang) -> Need:
    return required(gang.bucket, gang.full_name, "does not wait").need


def keep_capacity(work: CycleContext) -> list[Statement]:
    """Take the capacity for as many members as fit of each gang whose ProvisioningRequest is
    provisioned and whose nodes are still joining: gangs that are tried after them do not get it
    (ADR 0087). The caller discards the statements after the pass; no reservation outlives a cycle.
    """
    backlog, session = work.state.backlog, work.session
    waiting = [
        (order, key, bucket.need)
        for bucket in backlog.provisioned.values()
        for order, key, _ in bucket.entries
    ]
    first = sorted(waiting, key=lambda entry: entry[:2])[:_KEPT_FOR_MAX]
    statements: list[Statement] = []
    backlog.kept_for = {key for _, key, _ in first}
    for _, _, need in first:
        queue = work.state.queues.entry(need.queue)
        request = PlacementRequest(queue=queue, need=need, members_max=need.quorum or 1)
        statements.append(gang_placement.place_partly(session, request).statement)
    return statements


class ReleasedReservations:
    """The reservations of some holds, released for the duration of one attempt.

    Their rows stay in the table, while their capacity is free and not charged. An attempt that
    places nothing restores all of them; one that has placed its gang restores those that still fit.
    """

    def __init__(self, state: State, holds: Iterable[Hold]) -> None:
        """Release the reservations of these holds; each has one."""
        self._state = state
        self._released: dict[str, Hold] = {}
        for hold in holds:
            slot = _reservation(hold).slot
            self._released[hold.uid] = hold
            state.node_capacity.give_many(_at(slot), _ONE, hold.shape)
            if hold.gang is not None:
                hold.gang.hold(hold.shape, -1)

    def restore(self) -> None:
        """Reserve everything again, after an attempt that placed nothing."""
        for hold in self._released.values():
            self._retake(hold)
        self._released.clear()

    def restore_if_fits(self, session: Session, filled: Collection[Hold]) -> list[Hold]:
        """Settle the reservations after an attempt that placed its gang: end the rows of the holds
        that it fills, restore the rest as far as they fit.

        Returns:
            Holds that have lost their reservation.
        """
        displaced: list[Hold] = []
        for hold in list(self._released.values()):
            if hold in filled:
                self.give_up(hold)
            elif self._fits(session, hold):
                self._retake(hold)
            else:
                self.give_up(hold)
                displaced.append(hold)
        self._released.clear()
        return displaced

    def give_up(self, hold: Hold) -> None:
        """End a released row permanently: its capacity is used, or free."""
        if self._released.pop(hold.uid, None) is None:
            return
        self._state.reservations.end_apart(_reservation(hold), handed_over=True)
        # A part of it may be left, and enough for a waiting gang.
        self._state.node_capacity.freed += 1
        hold.reservation, hold.node, hold.tried = None, "", ()

    def _retake(self, hold: Hold) -> None:
        self._state.node_capacity.take_many(_at(_reservation(hold).slot), _ONE, hold.shape)
        if hold.gang is not None:
            hold.gang.hold(hold.shape, 1)

    def _fits(self, session: Session, hold: Hold) -> bool:
        if hold.gang is not None and not hold.gang.queue.headroom(hold.shape, 1):
            return False
        return session.fits.takes(hold.shape, _reservation(hold).slot)


def _reservation(hold: Hold) -> Reservation:
    return required(hold.reservation, f"hold for {hold.uid}", "has no reservation")


def _at(slot: int) -> Ints:
    return np.array([slot], dtype=np.int64)
