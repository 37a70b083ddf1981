"""Shares the work of a cycle among namespaces: gangs that do not fit cost work in every cycle in
which capacity is freed, and those of one tenant must not use up that of other tenants.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state.gangs import Gang


def in_turns(session: Session, gangs: Iterable[Gang]) -> Iterator[Gang]:
    """The gangs in order, except that those of a namespace that has spent more than is left for all
    others come last. What is spent between two gangs is charged to the first one's namespace.
    """
    spent: Counter[str] = Counter()
    last: list[Gang] = []
    for gang in gangs:
        if spent[gang.namespace] > session.work_left:
            last.append(gang)
            continue
        work_left = session.work_left
        yield gang
        spent[gang.namespace] += work_left - session.work_left
    yield from last
