"""Searches for devices, and where problems have a solution, by slot: computed again only on nodes
whose devices changed.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np

from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.devices.allocation_search import (
    STEPS_MAX,
    DevicesOfNode,
    Found,
    Problem,
    preference_of,
    search,
)
from services.gang_planner.core.state.devices.grants import DeviceGrants
from services.gang_planner.core.state.devices.plain_devices import (
    JointLimit,
    PlainProblem,
    PlainProblems,
    SelectedDevices,
    Taken,
    free_of,
    joint_limits,
)
from services.gang_planner.core.state.devices.selection import (
    Device,
)
from services.gang_planner.core.state.devices.vacated import AllocatedDevices

#: Number of cached masks.
_MASKS_MAX: Final = 256
#: Steps of the searches for one mask: per node, and to begin with. Nodes beyond them count as not
#: searched.
_STEPS_PER_NODE: Final = 64
_STEPS_AT_FIRST: Final = 40_000


class SolutionMask:
    """Where a problem has a solution: one flag per slot."""

    def __init__(self, size: int) -> None:
        self.flags: Bools = np.zeros(size, dtype=np.bool_)
        #: How often the free devices of each node serve the problem; not counted unless it is
        #: plain.
        self.times: Ints = np.zeros(size, dtype=np.int64)
        #: How early the alternatives are that serve the problem; 0 without alternatives.
        self.points: Ints = np.zeros(size, dtype=np.int64)
        #: Versions of the input, and positions in its logs.
        self.wide: tuple[int, int] = 0, 0
        self.positions: tuple[int, int] = 0, 0


class DeviceSearches:
    """Searches on one node capacity."""

    def __init__(
        self, plain: PlainProblems, grants: DeviceGrants, allocated: AllocatedDevices
    ) -> None:
        self._nodes = grants.nodes
        self._plain = plain
        self._grants = grants
        self._allocated = allocated
        #: The masks of the latest problems.
        self._masks: dict[Problem, SolutionMask] = {}

    @property
    def taken(self) -> Taken:
        # Without vacated claims the table itself, which is asked faster.
        allocated = self._allocated if self._allocated.vacated else self._grants.inventory.allocated
        return allocated, self._grants.holders

    def selections(self, problem: Problem) -> Sequence[SelectedDevices]:
        """The devices that the requests of a problem select; (): it is not plain."""
        self._grants.refresh()
        plain = self._plain.find(problem)
        return plain.selections if plain is not None else ()

    def by_slot(self, selected: SelectedDevices) -> Iterator[tuple[int, Sequence[Device]]]:
        """Selected devices on each node, whether free or not."""
        for node, devices in selected.devices.items():
            slot = self._nodes.find(node)
            if slot is not None:
                yield slot, devices

    def free_of(self, selected: SelectedDevices) -> Ints:
        """How many of selected devices are free, by slot."""
        self._grants.refresh()
        taken = self.taken
        free: Ints = np.zeros(self._nodes.size, dtype=np.int64)
        for slot, devices in self.by_slot(selected):
            free[slot] = len(free_of(devices, taken))
        return free

    def joint_limits(self, problems: Sequence[Problem], slots: Ints) -> Sequence[JointLimit] | None:
        """What decides how many pods with these needs each of these slots serves together, in the
        order of the slots; None: more than a few limits would. Without needs a pod has no claims.
        """
        self._grants.refresh()
        plain = [
            self._plain.find(problem) if problem else PlainProblem((), ()) for problem in problems
        ]
        names: list[str] = [self._nodes.names[slot] for slot in slots.tolist()]
        known = [problem for problem in plain if problem is not None]
        return joint_limits(known, names, self.taken)

    def on_node(self, slot: int) -> DevicesOfNode:
        """The devices of a node, and their use."""
        self._grants.refresh()
        return DevicesOfNode(self._grants, self._allocated, slot)

    def needed_on(self, slot: int, problem: Problem) -> Problem:
        """The needs on one node: without the extended resources that its device plugin has."""
        has_plugin = partial(self._nodes.has_plugin_of, slot=slot)
        return tuple([need.without(has_plugin) for need in problem])

    def mask(self, problem: Problem) -> SolutionMask:
        """Where the problem has a solution now."""
        self._grants.refresh()
        mask, slots = self._changed(problem)
        listed: list[int] = slots.tolist()
        plain = self._plain.find(problem)
        if plain is not None:
            # By numbers, and by a search only where other claims may change their devices.
            names, taken = self._nodes.names, self.taken
            movable = {slot for slot, need in self._grants.movable.values() if need not in problem}
            for slot in listed:
                times = mask.times[slot] = plain.times(names[slot], taken)
                mask.flags[slot] = times > 0 or (
                    slot in movable and self.search(problem, slot).picks is not None
                )
            return mask
        left = _STEPS_AT_FIRST + _STEPS_PER_NODE * len(listed)
        for slot in listed:
            result = self.search(problem, slot, min(left, STEPS_MAX))
            left -= result.steps
            mask.flags[slot] = result.picks is not None
            mask.points[slot] = preference_of(problem, result)
        return mask

    def _changed(self, problem: Problem) -> tuple[SolutionMask, Ints]:
        """The mask of a problem, and the slots that must be computed again."""
        sources, size = (self._grants.inventory, self._grants), self._nodes.size
        wide = sources[0].wide_changes, sources[1].wide_changes
        limit = max(16, size // 4)
        mask = self._masks.get(problem)
        slots: Ints | None = None
        if mask is not None and mask.wide == wide:
            allocated = sources[0].changes.since(mask.positions[0], limit)
            chosen = sources[1].changes.since(mask.positions[1], limit)
            if allocated is not None and chosen is not None:
                slots = np.union1d(allocated, chosen)
        if mask is None or slots is None:
            if mask is None and len(self._masks) >= _MASKS_MAX:
                self._masks.clear()
            mask, slots = SolutionMask(size), np.arange(size)
            self._masks[problem] = mask
        mask.wide = wide
        mask.positions = sources[0].changes.position, sources[1].changes.position
        return mask, slots

    def search(self, problem: Problem, slot: int, steps_max: int = STEPS_MAX) -> Found:
        """Devices of a node for a problem. The first picks are for the claims of `movable_on(slot)`
        if the result has more than the problem.
        """
        problem = self.needed_on(slot, problem)
        result = search(problem, DevicesOfNode(self._grants, self._allocated, slot), steps_max)
        if result.picks is not None or not self._grants.movable:
            return result
        if not (movable := self._grants.movable_on(slot)):
            return result
        needs = tuple(self._grants.movable[key][1] for key in movable)
        node = DevicesOfNode(self._grants, self._allocated, slot, movable)
        together = (*self.needed_on(slot, needs), *problem)
        both = search(together, node, max(steps_max - result.steps, 1))
        return both._replace(steps=result.steps + both.steps)
