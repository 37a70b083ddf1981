"""A Statement: reversible allocations on one node capacity and one queue, committed or discarded as
a whole.

It implements all-or-nothing placement. Until `commit`, every allocation can be undone: free
amounts, ports and the queue's charge are then exactly what they were.
"""

from dataclasses import dataclass

import numpy as np

from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.needs import NO_SUB_GANG
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.queues import QueueEntry
from shared.model.invariants import InvariantViolation


@dataclass(frozen=True, slots=True)
class Allocation:
    """`counts[i]` members of one role and shape on node `slots[i]`.

    A shape that stands for others (`ShapeEntry.alike`) has one for each member, by node.
    """

    role: str
    shape: ShapeEntry
    slots: Ints
    counts: Ints
    #: The sub-gang of the members.
    part: str = NO_SUB_GANG

    @classmethod
    def of(cls, role: str, shape: ShapeEntry, counts: dict[int, int]) -> "Allocation":
        """An allocation of `counts[slot]` members on each slot."""
        slots = np.fromiter(counts, dtype=np.int64)
        return cls(role, shape, slots, np.fromiter(counts.values(), dtype=np.int64))

    @property
    def total(self) -> int:
        return int(self.counts.sum())


class Statement:
    """A list of allocations, each applied immediately."""

    def __init__(self, node_capacity: NodeCapacity, queue: QueueEntry | None) -> None:
        """Charge allocations to `queue`; None: the caller charges several queues."""
        self._node_capacity = node_capacity
        self.queue = queue
        self._allocations: list[Allocation] = []
        self._open = True

    def allocate(self, allocation: Allocation) -> None:
        """Take capacity for members on nodes. The caller ensures that they fit.

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
        return tuple(self._allocations)

    def checkpoint(self) -> int:
        """A mark for `rollback`."""
        return len(self._allocations)

    def rollback(self, mark: int) -> None:
        """Undo all allocations since the mark, newest first."""
        while len(self._allocations) > mark:
            allocation = self._allocations.pop()
            self._node_capacity.give_many(allocation.slots, allocation.counts, allocation.shape)
            self._charge(allocation.shape, -allocation.total)

    def discard(self) -> None:
        """Undo all allocations and end the statement."""
        self.rollback(0)
        self._open = False

    def commit(self) -> tuple[Allocation, ...]:
        """End the statement and return its allocations. Their capacity stays taken; the caller
        assigns it to members.

        The queue's charge is reverted, because the queue is charged per member when the member
        changes its state.
        """
        self._open = False
        for allocation in self._allocations:
            self._charge(allocation.shape, -allocation.total)
            # Gangs with affinity to these pods, or that wait for spread, are tried again.
            self._node_capacity.freed += self._node_capacity.pairs.attracts(
                allocation.shape.profile
            )
        return tuple(self._allocations)

    def _charge(self, shape: ShapeEntry, count: int) -> None:
        if self.queue is not None:
            self.queue.charge(shape, count)
