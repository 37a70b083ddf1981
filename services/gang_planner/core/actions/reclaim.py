"""Evicts pods of queues that hold more than they deserve for gangs of queues that hold less.

`reclaim` does not evict below a gang's quorum if the policy `gang` protects it (its flag
`enableReclaimable`); `gangreclaim` may evict whole gangs. Both use the same search.
"""

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.preemption import requests


def run(work: CycleContext, *, gangs: bool) -> None:
    """Evict pods of other queues; `gangs`: whole gangs may be evicted."""
    requests.evict_for_refused(work, "reclaim", whole=gangs)
