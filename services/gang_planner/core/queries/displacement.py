"""Which gangs a hypothetical gang would displace: the search for victims, on copies.

The search uses the query's own node capacity and shapes. It restores the shared queue accounts when
it ends. The configured actions are tried in their order.
"""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Final, NamedTuple

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.foresight.reservations import Reservations
from services.gang_planner.core.framework.eviction_rules import Kind, Preemptor
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.preemption.candidates import VictimCandidates
from services.gang_planner.core.preemption.requests import preempts
from services.gang_planner.core.preemption.search import VictimSearch
from services.gang_planner.core.queueing import fair_share
from services.gang_planner.core.state.gangs import Gang, Member
from services.gang_planner.core.state.needs import Need
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.queued_demand import QueuedDemand
from services.gang_planner.core.state.run_limits import NO_RESERVATIONS
from services.gang_planner.core.state.timers import Timers
from shared.contracts.decisions import Cycle

#: By action: the kind of eviction, and whether it may evict whole gangs despite their protection.
_ACTIONS: Final[dict[str, tuple[Kind, bool]]] = {
    "preempt": ("preempt", False),
    "gangpreempt": ("preempt", True),
    "reclaim": ("reclaim", False),
    "gangreclaim": ("reclaim", True),
}


class Displaced(NamedTuple):
    """The pods that would be evicted, and by which kind of eviction."""

    kind: Kind
    victims: list[Member]


def displaced(
    state: State, session: Session, gang: Gang, need: Need, actions: Iterable[str], now_ms: int
) -> Displaced | None:
    """The pods that would be evicted for the gang now; None: evictions would not help it, or none
    are allowed.

    Args:
        state: A copy of the planner's state with the query's node capacity and shapes.
        session: A session on that node capacity.
        gang: A gang that is in no table, with waiting members and a known queue.
        need: The gang's need.
        actions: The configured actions, in order.
        now_ms: The time at which protections are evaluated.
    """
    cycle = Cycle(cluster_seq=0, outcomes_seq=0, now_ms=now_ms, configuration="")
    reservations = Reservations(state, session, NO_RESERVATIONS)
    work = CycleContext(state, session, cycle, now_ms, Timers(), reservations)
    if not preempts(work.state.gangs, gang):
        return None
    for action in actions:
        if action not in _ACTIONS:
            continue
        kind, whole = _ACTIONS[action]
        rules = session.policies.victims(kind)
        rules = rules.for_gangs if whole else rules
        session.begin()
        with _waiting(state, session, need):
            preemptor = Preemptor(gang, kind, now_ms)
            evictions = VictimSearch(
                work, preemptor, need, rules, VictimCandidates(work, rules)
            ).run()
        if evictions is not None and evictions.victims:
            return Displaced(kind, evictions.victims)
    return None


@contextmanager
def _waiting(state: State, session: Session, need: Need) -> Generator[None]:
    """Within the context, queues deserve what they would if the gang waited as well."""
    entries = list(state.queues.entries.values())
    before = [(entry.deserved, entry.fair_share, entry.demand) for entry in entries]
    # Else the next cycle, or this context, would take the other one's shares for its own.
    shared_at, state.queues.shared_at = state.queues.shared_at, ()
    for entry in entries:
        entry.deserved, entry.fair_share, entry.demand = {}, {}, {}
    demand = QueuedDemand()
    for queue, counts in state.backlog.demand.by_queue.items():
        demand.by_queue[queue] = dict(counts)
    demand.add(need.queue, need.wanted, 1)
    try:
        fair_share.share_out(state, session, demand)
        yield
    finally:
        for entry, (deserved, fair, demanded) in zip(entries, before, strict=True):
            entry.deserved, entry.fair_share, entry.demand = deserved, fair, demanded
        state.queues.shared_at = shared_at
