"""Evicts pods of gangs with lower priority in the same queue for gangs that do not fit.

`preempt` leaves gangs their quorum where the policy `gang` protects it (its flag
`enablePreemptable`); `gangpreempt` may evict whole gangs. Both use the same search.
"""

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.preemption import requests


def run(work: CycleContext, *, gangs: bool) -> None:
    """Evict within queues; `gangs`: whole gangs, too."""
    requests.evict_for_refused(work, "preempt", whole=gangs)
