"""Evicts pods of gangs with lower priority in the same queue for gangs that do not fit.

`preempt` does not evict below a gang's quorum if the policy `gang` protects it (its flag
`enablePreemptable`); `gangpreempt` may evict whole gangs. Both use the same search.
"""

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.preemption import requests


def run(work: CycleContext, *, gangs: bool) -> None:
    """Evict pods within queues; `gangs`: whole gangs may be evicted."""
    requests.evict_for_refused(work, "preempt", whole=gangs)
