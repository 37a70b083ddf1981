"""A Statement: reversible allocations on one ground and one queue, kept whole or undone whole.

All-or-nothing is this object. Until `commit` everything it did can be undone exactly: free amounts,
ports and the queue's charge are then what they were, to the last unit.
"""

from dataclasses import dataclass

import numpy as np

from services.gang_planner.core.tables.columns import Ints
from services.gang_planner.core.tables.ground import Ground
from services.gang_planner.core.tables.queues import QueueEntry
from services.gang_planner.core.tables.shapes import ShapeEntry


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

    def __init__(self, ground: Ground, queue: QueueEntry | None) -> None:
        """`queue` is charged; None: gangs of several queues are, by whoever places them."""
        self._ground = ground
        self._queue = queue
        self._allocations: list[Allocation] = []
        self._open = True

    def allocate(self, allocation: Allocation) -> None:
        """Take room for members on nodes. Whoever calls knows that they fit: a node over-filled is
        a bug.
        """
        assert self._open, "a statement that was committed or discarded takes nothing more"
        shape = allocation.shape
        self._ground.take_many(allocation.slots, allocation.counts, shape)
        self._charge(shape, allocation.total)
        self._allocations.append(allocation)
        left = self._ground.free.cells[np.ix_(shape.rows, allocation.slots)]
        assert not left.size or int(left.min()) >= 0, "a statement over-committed a node"

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
            self._ground.give_many(allocation.slots, allocation.counts, allocation.shape)
            self._charge(allocation.shape, -allocation.total)

    def discard(self) -> None:
        """Undo everything."""
        self.rollback(0)
        self._open = False

    def commit(self) -> tuple[Allocation, ...]:
        """Keep everything. The room stays taken on the ground: whoever commits adopts it.

        The queue's charge is given back, because members are charged one by one as they take their
        state.
        """
        self._open = False
        for allocation in self._allocations:
            self._charge(allocation.shape, -allocation.total)
            # Who must be near it, or waits for the others to catch up, may look again.
            self._ground.freed += self._ground.pairs.attracts(allocation.shape.profile)
        return tuple(self._allocations)

    def _charge(self, shape: ShapeEntry, count: int) -> None:
        if self._queue is not None:
            self._queue.charge(shape, count)
