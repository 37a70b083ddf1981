"""A Statement: reversible allocations on one node capacity and one queue, kept whole or undone
whole.

All-or-nothing is this object. Until `commit` everything it did can be undone exactly: free amounts,
ports and the queue's charge are then what they were, to the last unit.
"""

from dataclasses import dataclass

import numpy as np

from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.queues import QueueEntry
from shared.model.invariants import InvariantViolation


@dataclass(frozen=True, slots=True)
class Allocation:
    """`counts[i]` members of one role and shape on node `slots[i]`."""

    role: str
    shape: ShapeEntry
    slots: Ints
    counts: Ints
    #: The sub-gang that they belong to; "": to none.
    part: str = ""

    @property
    def total(self) -> int:
        """Members placed by it."""
        return int(self.counts.sum())


class Statement:
    """A list of allocations, each applied at once."""

    def __init__(self, node_capacity: NodeCapacity, queue: QueueEntry | None) -> None:
        """`queue` is charged; None: gangs of several queues are, by the caller."""
        self._node_capacity = node_capacity
        self._queue = queue
        self._allocations: list[Allocation] = []
        self._open = True

    def allocate(self, allocation: Allocation) -> None:
        """Take capacity for members on nodes. The caller knows that they fit.

        Raises:
            InvariantViolation: The statement has ended, or a node is overcommitted.
        """
        if not self._open:
            raise InvariantViolation("a statement", "was committed or discarded and takes nothing")
        shape = allocation.shape
        self._node_capacity.take_many(allocation.slots, allocation.counts, shape)
        self._charge(shape, allocation.total)
        self._allocations.append(allocation)
        left = self._node_capacity.free.cells[np.ix_(shape.rows, allocation.slots)]
        if left.size and int(left.min()) < 0:
            raise InvariantViolation("a statement", "has overcommitted a node", shape=shape.id)

    @property
    def allocations(self) -> tuple[Allocation, ...]:
        """What it holds now."""
        return tuple(self._allocations)

    def checkpoint(self) -> int:
        """A mark to roll back to."""
        return len(self._allocations)

    def rollback(self, mark: int) -> None:
        """Undo everything since the mark, newest first."""
        while len(self._allocations) > mark:
            allocation = self._allocations.pop()
            self._node_capacity.give_many(allocation.slots, allocation.counts, allocation.shape)
            self._charge(allocation.shape, -allocation.total)

    def discard(self) -> None:
        """Undo everything."""
        self.rollback(0)
        self._open = False

    def commit(self) -> tuple[Allocation, ...]:
        """Keep everything. The capacity stays taken: the caller adopts it.

        The queue's charge is given back, because members are charged one by one as they take their
        state.
        """
        self._open = False
        for allocation in self._allocations:
            self._charge(allocation.shape, -allocation.total)
            # Gangs that must be near it, or wait for spread, are tried again.
            self._node_capacity.freed += self._node_capacity.pairs.attracts(
                allocation.shape.profile
            )
        return tuple(self._allocations)

    def _charge(self, shape: ShapeEntry, count: int) -> None:
        if self._queue is not None:
            self._queue.charge(shape, count)
