"""Keeps free capacity for gangs whose ProvisioningRequest is provisioned and whose nodes are still
joining: gangs that are tried after them do not get it (ADR 0087).

The capacity is kept during one pass over the other gangs, and searched again in each: no
reservation outlives a cycle.
"""

from typing import Final

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.framework.statement import Statement
from services.gang_planner.core.placement.attempt import PlacementRequest
from services.gang_planner.core.placement.gang_placement import place_partly
from services.gang_planner.core.state.planner_state import State

#: Gangs for which capacity is kept, the first ones in order: each costs a search.
_GANGS_MAX: Final = 100


def keep(work: CycleContext) -> list[Statement]:
    """Take the capacity for as many members of each provisioned gang as fit. The caller discards
    the statements after the pass.
    """
    backlog, session = work.state.backlog, work.session
    waiting = [
        (order, key, bucket.need)
        for bucket in backlog.provisioned.values()
        for order, key, _ in bucket.entries
    ]
    first = sorted(waiting, key=lambda entry: entry[:2])[:_GANGS_MAX]
    statements: list[Statement] = []
    backlog.kept_for = {key for _, key, _ in first}
    for _, _, need in first:
        queue = work.state.queues.entry(need.queue)
        request = PlacementRequest(queue=queue, need=need, members_max=need.quorum or 1)
        statements.append(place_partly(session, request).statement)
    return statements


def retry_others(state: State) -> None:
    """If a gang for which capacity was kept no longer waits, gangs that were refused beside it are
    tried again.
    """
    backlog = state.backlog
    waiting = {key for bucket in backlog.provisioned.values() for _, key, _ in bucket.entries}
    if not backlog.kept_for <= waiting:
        backlog.kept_for &= waiting
        state.node_capacity.freed += 1
