"""Attempts to place one gang of the backlog, and turns one that came off into a decision.

A gang of higher priority may take capacity that is reserved for lost members of others (`attempt`):
these then look for another place.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from services.gang_planner.core.allocation import commit, min_resources
from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.framework.statement import Statement
from services.gang_planner.core.placement import refusals
from services.gang_planner.core.placement.gang_placement import Attempt
from services.gang_planner.core.placement.released_reservation import ReleasedReservations
from services.gang_planner.core.queueing import fair_share
from services.gang_planner.core.queueing.fair_share import UNLIMITED, Limit
from services.gang_planner.core.state.gangs import Bucket, Gang
from services.gang_planner.core.state.holds import Hold
from services.gang_planner.core.state.needs import RESERVED
from services.gang_planner.core.state.planner_state import State


class Placed(NamedTuple):
    """An attempt that came off, not yet decided."""

    statement: Statement
    #: Holds that end with it.
    filled: list[Hold]
    #: The topology domain that all of it is in; "": none.
    domain: str = ""
    #: Sequence of the eviction that made room for it; 0: none did.
    preemption: int = 0


def attempt(work: CycleContext, gang: Gang, limit: Limit = UNLIMITED) -> Placed | None:
    """Try to place a gang of the backlog within what fairness allows it; None: it does not fit,
    and nothing has changed.

    A gang that has not started, or whose members have to be close together, may use all its holds'
    reservations. If that does not help, those of gangs with lower priority are released as well:
    what it does not need stays reserved, and holds that lose theirs look for another place.
    """
    state = work.state
    assert gang.bucket is not None
    need = gang.bucket.need
    holds = () if is_plain(state, gang) else state.holds.of(gang)
    for number, releasable in enumerate(_releasable(state, gang, holds)):
        if number:
            gang.bucket.outranking_mark = _outranking_mark(state, gang)
        released = ReleasedReservations(state, releasable)
        most = commit.members_max(state, gang, need)
        if limit.members_max is not None:
            most = min(most, limit.members_max)
        # What was found with released reservations, or beside withheld nodes, is true only now.
        usual = not releasable and limit is UNLIMITED
        tried = Attempt(
            work.session,
            gang.queue,
            need,
            members_max=most,
            withheld=limit.withheld,
            failed_spaces=gang.bucket.spaces_to_skip(state.node_capacity) if usual else None,
        )
        fits = tried.run()
        gang.bucket.budget_exceeded = tried.exceeded
        if not fits:
            gang.bucket.shortfall = refusals.shortfall_of(work.session, need, tried.missing)
            released.restore()
            continue
        # Units of `minResources` stand for all that is still to come of the gang.
        filled = list(holds) if need.reserved else _filled(holds, tried)
        units = [hold for hold in holds if hold.reserving and hold not in filled]
        members = tried.statement.allocations
        filled += min_resources.consumed(state, gang, units, members, released=True)
        for hold in released.restore_if_fits(work.session, filled):
            hold.dirty = True
            if hold.gang is not None:
                state.gangs.touch(hold.gang)
        return Placed(tried.statement, filled, tried.domain)
    return None


def would_fit(work: CycleContext, gang: Gang, limit: Limit) -> bool:
    """Whether `attempt` would succeed; nothing has changed."""
    assert gang.bucket is not None
    need, state = gang.bucket.need, work.state
    holds = () if is_plain(state, gang) else state.holds.of(gang)
    for releasable in _releasable(state, gang, holds):
        released = ReleasedReservations(state, releasable)
        tried = Attempt(
            work.session,
            gang.queue,
            need,
            members_max=need.least,
            withheld=limit.withheld,
        )
        fits = tried.run()
        if fits:
            tried.statement.discard()
        released.restore()
        if fits:
            return True
    return False


def decide(work: CycleContext, gang: Gang, placed: Placed) -> None:
    """Decide what was placed; the holds that it fills end with the same record."""
    state = work.state
    assert gang.bucket is not None
    need = gang.bucket.need
    state.backlog.take(gang)
    gang.queue.promise(gang.gang_id, {})
    allocations = placed.statement.commit()
    reserves = min_resources.open_units(work, gang, allocations) if need.reserved else ()
    decision = commit.decide(
        state,
        gang,
        need,
        commit.assign(state, gang, [one for one in allocations if one.role != RESERVED]),
        work.cycle,
        fills=placed.filled,
        domain=placed.domain,
        preemption=placed.preemption,
        reserves=reserves,
    )
    work.session.spend(len(decision.bindings))
    work.decisions.append(decision)
    for hold in placed.filled:
        state.holds.close(state, hold, "Filled")
        state.gangs.touch(gang)


def is_plain(state: State, gang: Gang) -> bool:
    """Whether members that come in for lost ones are placed one by one: of a started gang that
    neither asks to be close together nor has capacity reserved for pods still to come.
    """
    assert gang.bucket is not None
    started = gang.history.started and gang.bucket.need.structure is None
    return started and not min_resources.units_of(state, gang)


def _releasable(state: State, gang: Gang, holds: Iterable[Hold]) -> Iterator[list[Hold]]:
    """Reservations to release for the first attempt, and for the second."""
    own = [hold for hold in holds if hold.reservation is not None]
    yield own
    lower = [hold for hold in _held(state) if _priority(hold) < gang.priority]
    if lower:
        yield own + lower


def _filled(holds: Iterable[Hold], tried: Attempt) -> list[Hold]:
    """Holds for which a member of their role was placed."""
    left: dict[str, int] = {}
    for group in tried.groups:
        left[group.role] = left.get(group.role, 0) + group.placed
    filled: list[Hold] = []
    for hold in holds:
        if left.get(hold.role, 0):
            left[hold.role] -= 1
            filled.append(hold)
    return filled


def outranking(state: State) -> list[Bucket]:
    """Buckets whose first gang may take held room, and has not tried since anything changed."""
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
    """Holds whose room a gang of higher priority may take."""
    return [
        hold
        for hold in state.holds.by_uid.values()
        if hold.reservation is not None and hold.gang is not None and not hold.repairing
    ]


def _priority(hold: Hold) -> int:
    assert hold.gang is not None
    return hold.gang.priority


def _outranking_mark(state: State, gang: Gang) -> tuple[object, ...]:
    return state.node_capacity.freed, state.holds.kept, gang.key


def place(work: CycleContext, gang: Gang, limit: Limit = UNLIMITED) -> bool:
    """Place one gang of the backlog within what fairness allows it; False: it does not fit."""
    placed = attempt(work, gang, limit)
    if placed is None:
        return False
    decide(work, gang, placed)
    return True


def refuse(
    work: CycleContext, bucket: Bucket, limit: Limit = UNLIMITED, *, short: bool | None = None
) -> None:
    """No gang of the bucket fits until something is freed, or no queue claims what it would take.
    `short`: whether a ceiling keeps it out; None: that is not known yet.
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
