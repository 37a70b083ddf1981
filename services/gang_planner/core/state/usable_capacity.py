"""Free amounts on the nodes that gangs can use, cached across cycles."""

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from services.gang_planner.core.state.columns import Bools, Ints
    from services.gang_planner.core.state.node_capacity import NodeCapacity

#: Up to this number of changed nodes, sums are updated; beyond it, they are computed again.
_CHANGED_MAX: Final = 1_024


class FreeOnUsable:
    """Free amounts on usable nodes, by resource row, updated where nodes changed."""

    def __init__(self, node_capacity: "NodeCapacity") -> None:
        self._node_capacity = node_capacity
        #: Versions of the sums' input: nodes, number of slots and resources, tolerated taints.
        self._of: tuple[object, ...] = ()
        self._usable: Bools = np.zeros(0, dtype=np.bool_)
        self._free: Ints = np.zeros((0, 0), dtype=np.int64)
        self._sums: Ints = np.zeros(0, dtype=np.int64)
        self._position = 0

    def sums(self, tolerated: "Bools") -> list[int]:
        """The sums by resource row. `tolerated`: one flag per set of taints, whether a pod of a
        gang tolerates it.
        """
        node_capacity, nodes = self._node_capacity, self._node_capacity.nodes
        node_capacity.fit_cells()
        rows = len(nodes.resources.names)
        of = nodes.changes.position, nodes.size, rows, tolerated.tobytes()
        changed = (
            node_capacity.changes.since(self._position, _CHANGED_MAX) if of == self._of else None
        )
        self._position = node_capacity.changes.position
        if changed is None:
            self._of = of
            self._usable = self._judge(tolerated)
            free = np.maximum(node_capacity.free.cells[:rows, : nodes.size], 0)
            self._free = free * self._usable
            self._sums = self._free.sum(axis=1)
        elif len(slots := changed):
            free = np.maximum(node_capacity.free.cells[:rows, slots], 0) * self._usable[slots]
            self._sums = self._sums + (free - self._free[:, slots]).sum(axis=1)
            self._free[:, slots] = free
        found: list[int] = self._sums.tolist()
        return found

    def _judge(self, tolerated: "Bools") -> "Bools":
        nodes = self._node_capacity.nodes
        size = nodes.size
        usable: Bools = nodes.exists[:size] & nodes.ready[:size] & ~nodes.unschedulable[:size]
        return usable & tolerated[nodes.taint_set[:size]]
