"""Places missing members of started gangs before other gangs of the same or lower priority.

Members that a planner saw get lost have holds (`holds`). Members lost while no planner ran have
none if their shape is unknown (`unseen_losses`), and a hold is filled only once, even if the
replacement's binding fails. The other members of such a gang occupy capacity without making
progress, so its missing members are placed first.
"""

from services.gang_planner.core.allocation import gang_allocation
from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.queueing.fair_share import Limit
from shared.model.invariants import required


def run(work: CycleContext) -> None:
    """Place missing members of started gangs, in the order of gangs, until the cycle's budget is
    spent. A gang with lower priority than a waiting gang is left to the allocate action.
    """
    backlog = work.state.backlog
    if not backlog.lacking:
        return
    gangs = [gang for one in backlog.lacking.values() for _, _, gang in one.entries]
    fresh = (one for one in backlog.buckets.values() if not one.need.lacking)
    highest = max((one.entries[0][2].priority for one in fresh), default=None)
    for gang in sorted(gangs, key=work.session.policies.order):
        bucket = required(gang.bucket, gang.full_name, "lacks members and does not wait")
        outranked = highest is not None and gang.priority < highest
        if outranked or bucket.need.best_effort:
            continue
        if bucket.refused_at == work.state.node_capacity.freed:
            continue
        if work.session.exhausted:
            return
        # A gang that does not fit is refused by allocate, which may also place extra members.
        gang_allocation.place_gang(work, gang, Limit(bucket.need.lacking))
