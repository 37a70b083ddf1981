"""The capacity that gangs can use: the amounts that queues share.

It is less than the sum of all nodes: pods of other schedulers use a part, and some nodes exclude
the pods of all gangs. Shares of that sum would exceed what queues can ever hold, and no queue would
hold more than it deserves.
"""

import numpy as np

from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state.columns import Bools
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.queued_demand import QueuedDemand
from services.gang_planner.core.state.taints import first_untolerated


def usable_amounts(state: State, session: Session, demand: QueuedDemand) -> list[int]:
    """The capacity that gangs of all queues can use, by resource row; computed once per cycle.

    It is the sum of the amounts that gangs hold on any node and the free amounts on usable nodes. A
    node is usable if it is Ready and not cordoned, and if a held or waiting pod of any gang
    tolerates its taints.
    """
    if session.usable is None:
        tolerated = _tolerated(state, session, demand)
        usable = session.free_on_usable.sums(tolerated)
        for entry in state.queues.entries.values():
            if entry.parent is None:
                for row, amount in entry.used.items():
                    usable[row] += amount
        session.usable = usable
    return session.usable


def _tolerated(state: State, session: Session, demand: QueuedDemand) -> Bools:
    """One flag per set of taints: whether a pod of any gang tolerates it."""
    sets = session.node_capacity.nodes.taints.sets
    found: Bools = np.ones(len(sets), dtype=np.bool_)
    tainted = [at for at, taints in enumerate(sets) if first_untolerated((), taints) is not None]
    if not tainted:
        return found
    counts = [*demand.by_queue.values(), *(one.shapes for one in state.queues.entries.values())]
    shapes = state.shapes.entries
    tolerations = {shapes[one].shape.tolerations for each in counts for one in each} - {()}
    for at in tainted:
        found[at] = any(first_untolerated(one, sets[at]) is None for one in tolerations)
    return found
