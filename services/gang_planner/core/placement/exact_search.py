"""An exact search for several shapes that compete for the same nodes, after the greedy one failed.

Node after node it computes, for every count of the first shapes, how many members of the last shape
can be placed beside them: `best[a, b] = c`. A node adds its *patterns*, the combinations of members
that it can hold; one step is a maximum over patterns of shifted arrays. The result is exact,
because fewer members always fit where more do. The work is patterns times cells; beyond `WORK_MAX`
the search ends without an answer (`budget_exceeded`).

Only amounts of resources and numbers of devices are searched (`plain_devices`). Shapes with host
ports, other claims or terms about other pods are left to the greedy search.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.devices.plain_devices import JointLimit
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from shared.model.invariants import InvariantViolation

#: Cells examined in one search: some 30 ms of numpy on a small core.
WORK_MAX: Final = 8_000_000
#: Patterns of one node: shapes that fit hundreds of times on a node are left to the greedy search.
_PATTERNS_MAX: Final = 4_096
#: What a pattern costs beside its cells.
_PATTERN_WORK: Final = 500
_IMPOSSIBLE: Final = -(2**30)


class GroupRequest(NamedTuple):
    """The members to place: one item per role and shape in each list."""

    roles: Sequence[str]
    shapes: Sequence[ShapeEntry]
    #: Members at most.
    wanted: Sequence[int]
    #: Members at least, in all.
    quorum: int
    #: Members at least, by role.
    minima: tuple[tuple[str, int], ...]


Table: TypeAlias = npt.NDArray[np.int32]


@dataclass(slots=True)
class FoundCounts:
    """How a search ended."""

    #: Per role and shape: (slots, counts); empty: nothing was found.
    places: list[tuple[Ints, Ints]]
    #: The search ended by its budget.
    budget_exceeded: bool = False
    #: Cells examined.
    work: int = 0


def search(
    node_capacity: NodeCapacity,
    request: GroupRequest,
    counts: Sequence[Ints],
    slots: Ints,
    devices: Sequence[JointLimit] = (),
) -> FoundCounts:
    """Find counts per node that hold the quorum and all minima.

    Args:
        node_capacity: The free amounts; not changed.
        request: The members to place.
        counts: How many of each shape the nodes in `slots` can hold alone.
        slots: The nodes that may be used.
        devices: What limits members of several shapes on one node, beside amounts.
    """
    caps = [min(most, request.quorum) for most in request.wanted]
    size = tuple(cap + 1 for cap in caps[:-1])
    enough = _Enough(request, size)
    best = np.full(size, _IMPOSSIBLE, dtype=np.int32)
    best[(0,) * len(size)] = 0
    result = FoundCounts([])
    steps: list[tuple[int, Ints, Table]] = []
    useful = sum(np.minimum(fitting, cap) for fitting, cap in zip(counts, caps, strict=True))
    order = np.argsort(-np.asarray(useful), kind="stable")
    limits = [*_amounts(node_capacity, request.shapes, slots), *devices]
    free = np.array([limit.free for limit in limits]).reshape(len(limits), len(slots))
    patterns_of: dict[tuple[int, ...], Ints | None] = {}
    for at in order.tolist():
        here = [min(int(fitting[at]), cap) for fitting, cap in zip(counts, caps, strict=True)]
        if not any(here):
            break
        amounts: list[int] = free[:, at].tolist()
        # Nodes with equal keys are alike for the search.
        key = (*here, *amounts)
        if key not in patterns_of:
            patterns_of[key] = _patterns(limits, amounts, here)
        patterns = patterns_of[key]
        if patterns is not None:
            result.work += (best.size + _PATTERN_WORK) * len(patterns)
        if patterns is None or result.work > WORK_MAX:
            result.budget_exceeded = True
            return result
        steps.append((int(slots[at]), patterns, best))
        best = _step(best, patterns, caps[-1])
        cell = enough.cell(best)
        if cell is not None:
            result.places = _trace(request, steps, cell, int(best[cell]))
            return result
    return result


class _Enough:
    """The cells of a table that hold the quorum and all minima."""

    def __init__(self, request: GroupRequest, size: tuple[int, ...]) -> None:
        axes = np.indices(size).astype(np.int32)
        last = request.roles[-1]
        #: Members of the first shapes, and how many of the last one must come to them.
        self._needed = request.quorum - axes.sum(axis=0)
        self._possible = np.ones(size, dtype=np.bool_)
        for role, least in request.minima:
            have = np.zeros(size, dtype=np.int32)
            for axis, group_role in enumerate(request.roles[:-1]):
                if group_role == role:
                    have += axes[axis]
            if role == last:
                self._needed = np.maximum(self._needed, least - have)
            else:
                self._possible &= have >= least

    def cell(self, best: Table) -> tuple[int, ...] | None:
        """The first cell that has enough; None: there is none."""
        holds = (best >= np.maximum(self._needed, 0)) & self._possible
        if not bool(holds.any()):
            return None
        return tuple(int(index) for index in np.unravel_index(int(np.argmax(holds)), best.shape))


def _step(best: Table, patterns: Ints, cap: int) -> Table:
    """The table after one more node."""
    after = best.copy()
    for *first, last in patterns.tolist():
        target = tuple(slice(count, None) for count in first)
        source = tuple(
            slice(0, size - count) for size, count in zip(best.shape, first, strict=True)
        )
        np.maximum(after[target], best[source] + last, out=after[target])
    np.minimum(after, cap, out=after)
    after[after < 0] = _IMPOSSIBLE
    return after


def _trace(
    request: GroupRequest,
    steps: list[tuple[int, Ints, Table]],
    cell: tuple[int, ...],
    last: int,
) -> list[tuple[Ints, Ints]]:
    """Which node took what, from the last node back to the first."""
    taken: list[dict[int, int]] = [{} for _ in request.shapes]
    for slot, patterns, before in reversed(steps):
        for *first, more in patterns.tolist():
            source = tuple(have - count for have, count in zip(cell, first, strict=True))
            if min(source) >= 0 and int(before[source]) + more >= last:
                for group, count in enumerate([*first, min(more, last)]):
                    if count:
                        taken[group][slot] = count
                cell, last = source, max(last - more, 0)
                break
        else:
            raise InvariantViolation(f"slot {slot}", "no step of the search leads to this cell")
    return [
        (
            np.fromiter(counts.keys(), dtype=np.int64, count=len(counts)),
            np.fromiter(counts.values(), dtype=np.int64, count=len(counts)),
        )
        for counts in taken
    ]


def _amounts(
    node_capacity: NodeCapacity, shapes: Sequence[ShapeEntry], slots: Ints
) -> list[JointLimit]:
    """The amounts of resources that the shapes request, and those that are free on these nodes."""
    rows = sorted({row for shape in shapes for row in shape.by_row})
    cells = node_capacity.free.cells
    return [
        JointLimit([shape.by_row.get(row, 0) for shape in shapes], cells[row, slots])
        for row in rows
    ]


def _patterns(limits: Sequence[JointLimit], amounts: Sequence[int], here: list[int]) -> Ints | None:
    """All combinations of the first shapes that a node with these free amounts of each limit holds,
    each with the most of the last one; None: too many.
    """
    if math.prod(count + 1 for count in here[:-1]) > _PATTERNS_MAX:
        return None
    grid = np.indices([count + 1 for count in here[:-1]]).reshape(len(here) - 1, -1)
    most = np.full(grid.shape[1], here[-1], dtype=np.int64)
    fits = np.ones(grid.shape[1], dtype=np.bool_)
    for limit, amount_free in zip(limits, amounts, strict=True):
        free = np.full(grid.shape[1], amount_free, dtype=np.int64)
        *first, last = limit.taken
        for axis, amount in enumerate(first):
            free -= amount * grid[axis]
        fits &= free >= 0
        if last:
            most = np.minimum(most, free // last)
    combined: Ints = np.vstack([grid, most]).T[fits]
    return combined
