"""Evicts pods of gangs with lower priority in the same queue for gangs that do not fit.

`preempt` leaves gangs their quorum where the policy `gang` protects it (its flag
`enablePreemptable`); `gangpreempt` takes whole gangs all the same. Both search alike.
"""

from services.gang_planner.core.cycle import CycleWork
from services.gang_planner.core.preempting import asking


def run(work: CycleWork, *, gangs: bool) -> None:
    """Ask within queues; `gangs`: whole gangs, too."""
    asking.ask(work, "preempt", whole=gangs)
