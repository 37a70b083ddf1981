"""Where problems have a solution, by slot, computed again only on nodes whose devices changed."""

from collections.abc import Callable, Container
from typing import Final

import numpy as np

from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.devices.allocation_search import (
    STEPS_MAX,
    Found,
    Problem,
    preference_of,
)
from services.gang_planner.core.state.devices.inventory import Inventory
from services.gang_planner.core.state.devices.node_devices import ChosenDevices

#: Number of cached masks.
_MASKS_MAX: Final = 256
#: Steps of the searches for one mask: per node, and to begin with. Nodes beyond them count as not
#: searched.
_STEPS_PER_NODE: Final = 64
_STEPS_AT_FIRST: Final = 40_000


class SolutionMask:
    """Where a problem has a solution: one flag per slot."""

    def __init__(self) -> None:
        self.flags: Bools = np.zeros(0, dtype=np.bool_)
        #: How often the free devices of each node serve the problem; not counted unless it is
        #: plain.
        self.times: Ints = np.zeros(0, dtype=np.int64)
        #: How early the alternatives are that serve the problem; 0 without alternatives.
        self.points: Ints = np.zeros(0, dtype=np.int64)
        #: Slots of nodes whose search ended before everything was tried.
        self.exhausted: set[int] = set()
        #: Versions of the input.
        self.position = 0
        self.allocated_position = 0
        self.wide: tuple[int, int] = (-1, -1)

    def search_on(self, problem: Problem, slots: Ints, search: Callable[[int, int], Found]) -> None:
        """Search on each of these slots; `search` gets the slot and the limit of its steps."""
        left = _STEPS_AT_FIRST + _STEPS_PER_NODE * len(slots)
        for slot in slots.tolist():
            found = search(slot, min(left, STEPS_MAX))
            left -= found.steps
            self.flags[slot] = found.picks is not None
            self.points[slot] = preference_of(problem, found)
            self.exhausted.discard(slot)
            if found.exhausted:
                self.exhausted.add(slot)

    def count_on(
        self,
        slots: Ints,
        times_on: Callable[[int], int],
        movable: Container[int],
        search: Callable[[int, int], Found],
    ) -> None:
        """Count by numbers, and search only on the slots where other claims may change their
        devices.
        """
        for slot in slots.tolist():
            times = self.times[slot] = times_on(slot)
            self.flags[slot] = times > 0 or (
                slot in movable and search(slot, STEPS_MAX).picks is not None
            )


class SolutionMasks:
    """The masks of the latest problems."""

    def __init__(self) -> None:
        self._masks: dict[Problem, SolutionMask] = {}

    def find(
        self, problem: Problem, inventory: Inventory, chosen: ChosenDevices, size: int
    ) -> tuple[SolutionMask, Ints]:
        """The mask of a problem for `size` slots, and the slots that the caller must compute. The
        inventory must be refreshed.
        """
        mask = self._masks.get(problem)
        if mask is None:
            if len(self._masks) >= _MASKS_MAX:
                self._masks.clear()
            mask = self._masks[problem] = SolutionMask()
        wide = inventory.wide_changes, chosen.wide_changes
        limit = max(16, size // 4)
        changed: Ints | None = None
        if mask.wide == wide:
            allocated = inventory.changes.since(mask.allocated_position, limit)
            taken = chosen.changes.since(mask.position, limit)
            if allocated is not None and taken is not None:
                changed = np.union1d(allocated, taken)
        if changed is None:
            changed = np.arange(size)
            mask.flags = np.zeros(size, dtype=np.bool_)
            mask.times = np.zeros(size, dtype=np.int64)
            mask.points = np.zeros(size, dtype=np.int64)
            mask.exhausted.clear()
        mask.wide = wide
        mask.position, mask.allocated_position = chosen.changes.position, inventory.changes.position
        return mask, changed
