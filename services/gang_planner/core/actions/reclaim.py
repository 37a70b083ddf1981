"""Evicts pods of queues that hold more than they deserve for gangs of queues that hold less.

`reclaim` leaves gangs their quorum where the policy `gang` protects it (its flag
`enableReclaimable`); `gangreclaim` takes whole gangs all the same. Both search alike.
"""

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.preemption import requests


def run(work: CycleContext, *, gangs: bool) -> None:
    """Ask between queues; `gangs`: whole gangs, too."""
    requests.ask(work, "reclaim", whole=gangs)
