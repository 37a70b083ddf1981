"""Hides free capacity that is kept for other gangs, for as long as a gang is tried.

What is hidden is taken off the free amounts of nodes, so that every placement leaves it, however it
is found.
"""

import numpy as np

from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.node_capacity import NodeCapacity


class Curtain:
    """Amounts that are hidden on the nodes of one node capacity; at first none."""

    def __init__(self, node_capacity: NodeCapacity) -> None:
        self._node_capacity = node_capacity
        self._slots: Ints = np.zeros(0, dtype=np.int64)
        self._amounts: Ints = np.zeros((0, 0), dtype=np.int64)

    @property
    def hides(self) -> bool:
        """Whether it hides anything."""
        return bool(len(self._slots))

    def draw(self, hidden: Ints) -> None:
        """Hide these amounts, by resource row and slot, instead of what was hidden before."""
        self.lift()
        self._slots = np.flatnonzero(hidden.any(axis=0))
        self._amounts = hidden[:, self._slots]
        self._change(-1)

    def lift(self) -> None:
        """Hide nothing."""
        self._change(1)
        self._slots = self._slots[:0]

    def _change(self, sign: int) -> None:
        if self.hides:
            self._node_capacity.fit_cells()
            free = self._node_capacity.free.cells
            free[: len(self._amounts), self._slots] += sign * self._amounts
            self._node_capacity.changes.extend(self._slots.tolist())
