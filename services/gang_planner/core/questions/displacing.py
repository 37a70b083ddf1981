"""Whom a gang that does not exist would displace: the search for victims, for a question.

It runs on the question's own ground and shapes; the queues' books, which everybody shares, are as
they were when it ends. What the actions of the configuration would do is asked in their order.
"""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from services.gang_planner.core.cycle import CycleWork
from services.gang_planner.core.preempting.asking import preempts
from services.gang_planner.core.preempting.candidates import Candidates
from services.gang_planner.core.preempting.rules import Asks, Kind
from services.gang_planner.core.preempting.search import Search
from services.gang_planner.core.queueing import sharing
from services.gang_planner.core.recovery.retrying import Timers
from services.gang_planner.core.tables.demand import Demand
from shared.contracts.decisions import Cycle

if TYPE_CHECKING:
    from services.gang_planner.core.placement.session import Session
    from services.gang_planner.core.queueing.backlog import Need
    from services.gang_planner.core.tables.gangs import Gang
    from services.gang_planner.core.tables.members import Member
    from services.gang_planner.state import State

#: What each action asks for: from whom, and whether it takes whole gangs whatever protects them.
_ACTIONS: Final[dict[str, tuple[Kind, bool]]] = {
    "preempt": ("preempt", False),
    "gangpreempt": ("preempt", True),
    "reclaim": ("reclaim", False),
    "gangreclaim": ("reclaim", True),
}


class Displaced(NamedTuple):
    """Who would go, and by which right."""

    kind: Kind
    victims: "list[Member]"


def displaced(
    state: "State",
    session: "Session",
    gang: "Gang",
    need: "Need",
    actions: Iterable[str],
    now_ms: int,
) -> Displaced | None:
    """The pods that would be evicted for the gang now; None: evictions would not help it, or none
    are allowed.

    Args:
        state: The picture, with the question's ground and shapes in the place of its own.
        session: On that ground.
        gang: Nobody's, with its members waiting, in a queue of the picture.
        need: What it asks for.
        actions: Those of the configuration.
        now_ms: The instant that protections are judged by.
    """
    cycle = Cycle(cluster_seq=0, outcomes_seq=0, now_ms=now_ms, configuration="")
    work = CycleWork(state, session, cycle, Timers())
    if not preempts(work, gang):
        return None
    for action in actions:
        if action not in _ACTIONS:
            continue
        kind, whole = _ACTIONS[action]
        rules = session.policies.victims(kind)
        rules = rules.for_gangs if whole else rules
        session.begin()
        with _waiting(state, session, need):
            asks = Asks(gang, kind, now_ms)
            found = Search(work, asks, need, rules, Candidates(work, rules)).run()
        if found is not None and found.victims:
            return Displaced(kind, found.victims)
    return None


@contextmanager
def _waiting(state: "State", session: "Session", need: "Need") -> Generator[None]:
    """Inside, queues deserve what they would if the gang waited, too."""
    entries = list(state.queues.entries.values())
    before = [(one.deserved, one.demand) for one in entries]
    for one in entries:
        one.deserved, one.demand = {}, {}
    demand = Demand()
    for queue, counts in state.backlog.demand.by_queue.items():
        demand.by_queue[queue] = dict(counts)
    demand.add(need.queue, need.wanted, 1)
    try:
        sharing.share_out(state, session, demand)
        yield
    finally:
        for one, (deserved, demanded) in zip(entries, before, strict=True):
            one.deserved, one.demand = deserved, demanded
