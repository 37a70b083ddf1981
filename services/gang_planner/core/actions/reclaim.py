"""Evicts pods of queues that hold more than they deserve for gangs of queues that hold less.

`reclaim` leaves gangs their quorum where the policy `gang` protects it (its flag
`enableReclaimable`); `gangreclaim` takes whole gangs all the same. Both search alike.
"""

from services.gang_planner.core.cycle import CycleWork
from services.gang_planner.core.preempting import asking


def run(work: CycleWork, *, gangs: bool) -> None:
    """Ask between queues; `gangs`: whole gangs, too."""
    asking.ask(work, "reclaim", whole=gangs)
