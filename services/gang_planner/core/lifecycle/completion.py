"""Members that started gangs lack are placed before other gangs of the same or lower priority.

Room is held for what a planner saw get lost (`holds`). What was lost while no planner lived left
no hold, and a hold is filled only once, also where the successor's binding came to nothing. The
rest of such a gang holds room and does no work, so its members go first, no more than it lacks.
"""

from services.gang_planner.core.allocation import gang_allocation
from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.queueing.fair_share import Limit
from services.gang_planner.core.state.gangs import Gang, OrderKey
from shared.model.gang_keys import GangKey
from shared.model.invariants import required


def run(work: CycleContext) -> None:
    """Place what started gangs lack, in the order of gangs, until the cycle's budget is spent. A
    gang that a waiting gang outranks has its turn in line, like all others.
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
        bucket = required(gang.bucket, gang.full_name, "lacks members and does not wait")
        outranked = highest is not None and gang.priority < highest
        if outranked or bucket.need.best_effort:
            continue
        if bucket.refused_at == work.state.node_capacity.freed:
            continue
        if work.session.exhausted:
            return
        # A gang that does not fit is refused in its turn, in which it may place more than it lacks.
        gang_allocation.place_gang(work, gang, Limit(bucket.need.lacking))
