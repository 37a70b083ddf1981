"""Members that started gangs lack are placed before other gangs of the same or lower priority.

Room is held for what a planner saw get lost (`holding`). What was lost while no planner lived left
no debt, and a debt is filled only once, also where the successor's binding came to nothing. The
rest of such a gang holds room and does no work, so its members go first, no more than it lacks.
"""

from services.gang_planner.core.actions import allocate
from services.gang_planner.core.cycle import CycleWork
from services.gang_planner.core.queueing.sharing import Limit
from services.gang_planner.core.tables.gangs import Gang, OrderKey
from shared.model.gang_keys import GangKey


def run(work: CycleWork) -> None:
    """Place what started gangs lack, in the order of gangs, until the cycle's budget is spent. Who
    is outranked by a gang that waits has its turn in the line, like others.
    """
    backlog, order = work.state.backlog, work.session.policies.order
    if not backlog.lacking:
        return
    gangs = [gang for one in backlog.lacking.values() for _, _, gang in one.entries]
    fresh = (one for one in backlog.buckets.values() if not one.need.lacking)
    highest = max((one.entries[0][2].priority for one in fresh), default=None)

    def place(gang: Gang) -> tuple[OrderKey, GangKey]:
        return order(gang), gang.key

    for gang in sorted(gangs, key=place):
        bucket = gang.bucket
        assert bucket is not None, f"{gang.full_name} lacks members and does not wait"
        outranked = highest is not None and gang.priority < highest
        if outranked or bucket.need.best_effort:
            continue
        if 0 <= bucket.refused_at == work.state.ground.freed:
            continue
        if work.session.exhausted:
            return
        # Who does not fit is refused in its turn, in which it may place more than it lacks.
        allocate.place(work, gang, Limit(bucket.need.lacking))
