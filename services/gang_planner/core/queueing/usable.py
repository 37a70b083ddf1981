"""What the gangs of all queues can use: the amounts that queues share.

The sum of what nodes have is more than that: pods of other schedulers take a part of it, and no
gang's pod may enter some nodes. Shares of the sum would be larger than what queues can ever hold,
and no queue would hold more than it deserves.
"""

from typing import TYPE_CHECKING, Final

import numpy as np

from services.gang_planner.core.tables.taints import first_untolerated

if TYPE_CHECKING:
    from services.gang_planner.core.placement.session import Session
    from services.gang_planner.core.tables.columns import Bools, Ints
    from services.gang_planner.core.tables.demand import Demand
    from services.gang_planner.core.tables.ground import Ground
    from services.gang_planner.state import State

#: Changed nodes up to which sums are repaired; more, and they are worked out again.
_CHANGED_MAX: Final = 1_024


def usable_amounts(state: "State", session: "Session", demand: "Demand") -> list[int]:
    """What the gangs of all queues can use, by resource row; worked out once per cycle.

    That is what gangs hold, on whatever node, and what is free on usable nodes. A node is usable if
    it is Ready and not cordoned, and a pod of any gang that holds or waits for something tolerates
    its taints.
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


class FreeOnUsable:
    """Free amounts on usable nodes, by resource row, repaired where nodes changed."""

    def __init__(self, ground: "Ground") -> None:
        self._ground = ground
        #: What the sums were worked out of: nodes, sets of taints, resources.
        self._of: tuple[object, ...] = ()
        self._usable: Bools = np.zeros(0, dtype=np.bool_)
        self._free: Ints = np.zeros((0, 0), dtype=np.int64)
        self._sums: Ints = np.zeros(0, dtype=np.int64)
        self._position = 0

    def sums(self, tolerated: "Bools") -> list[int]:
        """The amounts; `tolerated` says by set of taints whether a gang's pod tolerates it."""
        ground, nodes = self._ground, self._ground.nodes
        ground.fit_cells()
        rows = len(nodes.resources.names)
        of = nodes.changes.position, nodes.size, rows, tolerated.tobytes()
        changed = ground.changes.since(self._position, _CHANGED_MAX) if of == self._of else None
        self._position = ground.changes.position
        if changed is None:
            self._of = of
            self._usable = self._judge(tolerated)
            free = np.maximum(ground.free.cells[:rows, : nodes.size], 0)
            self._free = free * self._usable
            self._sums = self._free.sum(axis=1)
        elif len(slots := changed):
            free = np.maximum(ground.free.cells[:rows, slots], 0) * self._usable[slots]
            self._sums = self._sums + (free - self._free[:, slots]).sum(axis=1)
            self._free[:, slots] = free
        found: list[int] = self._sums.tolist()
        return found

    def _judge(self, tolerated: "Bools") -> "Bools":
        nodes = self._ground.nodes
        size = nodes.size
        usable: Bools = nodes.exists[:size] & nodes.ready[:size] & ~nodes.unschedulable[:size]
        return usable & tolerated[nodes.taint_set[:size]]


def _tolerated(state: "State", session: "Session", demand: "Demand") -> "Bools":
    """By set of taints, whether any pod of a gang tolerates it."""
    sets = session.ground.nodes.taints.sets
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
