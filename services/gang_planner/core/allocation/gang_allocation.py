"""Places one gang of the backlog, or refuses it.

A gang of higher priority may take capacity that is reserved for lost members of other gangs: these
reservations then move to other nodes.
"""

from collections.abc import Iterable, Iterator

from services.gang_planner.core.allocation import min_resources
from services.gang_planner.core.allocation.decision import FoundPlacement, decide
from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.placement import refusals
from services.gang_planner.core.placement.gang_placement import GangPlacement
from services.gang_planner.core.placement.released_reservation import ReleasedReservations
from services.gang_planner.core.queueing import fair_share
from services.gang_planner.core.queueing.fair_share import UNLIMITED, Limit
from services.gang_planner.core.queueing.need import members_max
from services.gang_planner.core.state.gangs import Bucket, Gang
from services.gang_planner.core.state.holds import Hold
from services.gang_planner.core.state.needs import Need
from services.gang_planner.core.state.planner_state import State
from shared.model.invariants import required


def place_gang(work: CycleContext, gang: Gang, limit: Limit = UNLIMITED) -> bool:
    """Place a gang of the backlog within its fair share, and decide it; False: it does not fit, and
    nothing has changed.
    """
    found = find_placement(work, gang, limit)
    if found is not None:
        decide(work, gang, found)
    return found is not None


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
    need = bucket.need
    holds = () if is_plain(state, gang) else state.holds.of(gang)
    for number, releasable in enumerate(_releasable(state, gang, holds)):
        if number:
            bucket.outranking_mark = _outranking_mark(state, gang)
        released = ReleasedReservations(state, releasable)
        most = members_max(state, gang, need) if need.may_exceed_message else need.members
        if limit.members_max is not None:
            most = min(most, limit.members_max)
        # What was found with released reservations, or beside withheld nodes, is true only now.
        usual = not releasable and limit is UNLIMITED
        placement = GangPlacement(
            work.session,
            gang.queue,
            need,
            members_max=most,
            withheld=limit.withheld,
            failed_spaces=bucket.spaces_to_skip(state.node_capacity) if usual else None,
        )
        fits = placement.run()
        bucket.budget_exceeded = placement.budget_exceeded
        if not fits:
            bucket.shortfall = refusals.shortfall_of(work.session, need, placement.missing)
            released.restore()
            continue
        # Units of `minResources` stand for all that is still to come of the gang.
        filled = list(holds) if need.reserved else _filled(holds, placement)
        units = [hold for hold in holds if hold.reserving and hold not in filled]
        if units:
            members = placement.statement.allocations
            filled += min_resources.consumed(state, gang, units, members, released=True)
        for hold in released.restore_if_fits(work.session, filled):
            hold.dirty = True
            if hold.gang is not None:
                state.gangs.touch(hold.gang)
        return FoundPlacement(placement.statement, filled, placement.domain)
    return None


def would_fit(work: CycleContext, gang: Gang, limit: Limit) -> bool:
    """Whether a gang of the backlog fits within its fair share; nothing has changed."""
    need, state = _need(gang), work.state
    holds = () if is_plain(state, gang) else state.holds.of(gang)
    for releasable in _releasable(state, gang, holds):
        released = ReleasedReservations(state, releasable)
        placement = GangPlacement(
            work.session, gang.queue, need, members_max=need.least, withheld=limit.withheld
        )
        fits = placement.run()
        placement.statement.discard()
        released.restore()
        if fits:
            return True
    return False


def is_plain(state: State, gang: Gang) -> bool:
    """Whether replacements of the gang's lost members are placed one by one: it has started, its
    members need not be close together, and no capacity is reserved for pods still to come.
    """
    started = gang.history.started and _need(gang).structure is None
    return started and not min_resources.units_of(state, gang)


def _releasable(state: State, gang: Gang, holds: Iterable[Hold]) -> Iterator[list[Hold]]:
    """Reservations to release for the first attempt to place the gang, and for the second."""
    own = [hold for hold in holds if hold.reservation is not None]
    yield own
    lower = [hold for hold in _held(state) if _priority(hold) < gang.priority]
    if lower:
        yield own + lower


def _filled(holds: Iterable[Hold], placement: GangPlacement) -> list[Hold]:
    """Holds for which a member of their role was placed."""
    left: dict[str, int] = {}
    for group in placement.groups:
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
    held = _held(state)
    if not held:
        return []
    lowest = min(_priority(hold) for hold in held)
    return [
        bucket
        for bucket in state.backlog.buckets.values()
        if (first := bucket.entries[0][2]).priority > lowest
        and bucket.outranking_mark != _outranking_mark(state, first)
    ]


def _held(state: State) -> list[Hold]:
    """Holds whose reservation a gang of higher priority may take."""
    return [
        hold
        for hold in state.holds.by_uid.values()
        if hold.reservation is not None and hold.gang is not None and not hold.repairing
    ]


def _priority(hold: Hold) -> int:
    return required(hold.gang, f"hold for {hold.uid}", "has a reservation and no gang").priority


def _outranking_mark(state: State, gang: Gang) -> tuple[object, ...]:
    return state.node_capacity.freed, state.holds.kept, gang.key


def refuse(
    work: CycleContext, bucket: Bucket, limit: Limit = UNLIMITED, *, short: bool | None = None
) -> None:
    """Refuse all gangs of a bucket, whose first one does not fit within `limit`, until something is
    freed, or until no queue claims the capacity that it would take.

    `short`: whether its queue's ceiling excludes it; None: not known yet.
    """
    state = work.state
    before = bucket.reason
    if short is None:
        queue = state.queues.entry(bucket.need.queue)
        short = queue.exceeded_by(bucket.need.amounts(state.shapes))
    held = not short and limit.withheld is not None and fair_share.fits_otherwise(work, bucket)
    state.backlog.refuse(
        bucket,
        state.node_capacity.freed,
        short_of_quota=short or held,
        claimants=limit.claimants if held else (),
    )
    if before != bucket.reason:
        state.gangs.to_republish.update((key, gang) for _, key, gang in bucket.entries)


def _need(gang: Gang) -> Need:
    return required(gang.bucket, gang.full_name, "does not wait").need
