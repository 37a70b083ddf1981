"""Places gangs: queue after queue by turns, gang after gang in order, each whole or not at all.

A gang that does not fit does not block those behind it, unless its queue is strict. Gangs of
nothing but best-effort pods are left to backfill.
"""

from services.gang_planner.core import restoring, sharing
from services.gang_planner.core.backlog import Bucket, Line
from services.gang_planner.core.cycle import CycleWork
from services.gang_planner.core.gangs import Gang, OrderKey
from services.gang_planner.core.sharing import UNLIMITED, Claims, Limit


def run(work: CycleWork) -> None:
    """Try every gang that something changed for, until the cycle's budget is spent."""
    place_line(work, best_effort=False)


def place_line(work: CycleWork, *, best_effort: bool) -> None:
    """Place the gangs of one kind in line."""
    state, session = work.state, work.session
    active = state.backlog.active(state.ground.freed)
    active += [one for one in restoring.outranking(state) if one not in active]
    if not active and not state.backlog.held:
        return
    claims = Claims(work)
    active += [one for one in claims.released() if one not in active]
    line = Line([one for one in active if one.need.best_effort == best_effort])
    while queues := line.queues():
        if session.exhausted:
            return
        queue = queues[0]
        if len(queues) > 1:
            queue = min(queues, key=lambda name: _turn(work, name))
        index, bucket, gang = line.head(queue)
        limit = claims.limit(gang.queue, bucket.need)
        if place(work, gang, limit):
            line.put_back(index)
        else:
            refuse(work, bucket, limit)
            claims.judge(bucket)


def _turn(work: CycleWork, queue: str) -> OrderKey:
    entry = work.state.queues.entry(queue)
    return work.session.policies.queue_order(entry, work.session.totals)


def place(work: CycleWork, gang: Gang, limit: Limit = UNLIMITED) -> bool:
    """Place one gang of the backlog within what fairness allows it; False: it does not fit."""
    placed = restoring.attempt(work, gang, limit)
    if placed is None:
        return False
    restoring.decide(work, gang, placed)
    return True


def refuse(work: CycleWork, bucket: Bucket, limit: Limit = UNLIMITED) -> None:
    """Nothing of the bucket fits until something is freed, or nobody claims what it would take."""
    state = work.state
    queue = state.queues.entry(bucket.need.queue)
    before = bucket.reason
    short = bool(queue.excess(bucket.need.amounts(state.shapes), promised=False))
    held = not short and limit.withheld is not None and sharing.fits_otherwise(work, bucket)
    state.backlog.refuse(
        bucket,
        state.ground.freed,
        short_of_quota=short or held,
        held_by=limit.claimants if held else (),
    )
    if before != bucket.reason:
        for _, _, gang in bucket.entries:
            state.gangs.touch(gang)
