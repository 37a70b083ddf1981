"""Places gangs: queue after queue by turns, gang after gang in order, each whole or not at all.

A gang that does not fit does not block those behind it. Gangs of nothing but best-effort pods are
left to backfill.
"""

from services.gang_planner.core import deciding
from services.gang_planner.core.backlog import Bucket, Line
from services.gang_planner.core.cycle import CycleWork
from services.gang_planner.core.gangs import Gang, OrderKey
from services.gang_planner.core.placing import Attempt


def run(work: CycleWork) -> None:
    """Try every gang that something changed for, until the cycle's budget is spent."""
    place_line(work, best_effort=False)


def place_line(work: CycleWork, *, best_effort: bool) -> None:
    """Place the gangs of one kind in line."""
    state, session = work.state, work.session
    active = state.backlog.active(state.ground.freed)
    line = Line([one for one in active if one.need.best_effort == best_effort])
    while queues := line.queues():
        if session.exhausted:
            return
        queue = queues[0]
        if len(queues) > 1:
            queue = min(queues, key=lambda name: _turn(work, name))
        index, bucket, gang = line.head(queue)
        if _place(work, gang):
            line.put_back(index)
        else:
            _refuse(work, bucket)


def _turn(work: CycleWork, queue: str) -> OrderKey:
    entry = work.state.queues.entry(queue)
    return work.session.policies.queue_order(entry, work.session.totals)


def _place(work: CycleWork, gang: Gang) -> bool:
    state, session = work.state, work.session
    assert gang.bucket is not None
    need = gang.bucket.need
    attempt = Attempt(
        session, gang.queue, need, members_max=deciding.members_max(state, gang, need)
    )
    if not attempt.run():
        return False
    state.backlog.take(gang)
    gang.queue.promise(gang.gang_id, {})
    decision = deciding.decide(
        state,
        gang,
        need,
        attempt.statement.commit(),
        work.cycle,
        always_preflight=work.always_preflight,
    )
    session.bindings_left -= len(decision.bindings)
    work.decisions.append(decision)
    state.gangs.touch(gang)
    return True


def _refuse(work: CycleWork, bucket: Bucket) -> None:
    state = work.state
    queue = state.queues.entry(bucket.need.queue)
    before = bucket.reason
    short = bool(queue.excess(bucket.need.amounts(state.shapes), promised=False))
    state.backlog.refuse(bucket, state.ground.freed, short_of_quota=short)
    if before != bucket.reason:
        for _, _, gang in bucket.entries:
            state.gangs.touch(gang)
