"""Places one part of a gang: its quorum whole or nothing, then as many of its other members as fit.

A part has a few *groups*, each a role and a shape. Its quorum is placed greedily: every group gets
a target (its role's minimum first, the rest for the groups that fit most easily), targets are
placed scarcest group first, and shortfalls are made up by other groups. If that fails, nodes are
filled up one after the other, which leaves more nodes to the next shape; then an exact search with
a budget is made (`exact_search`). One group is placed exactly whenever it fits.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from services.gang_planner.core.framework.statement import Allocation, Statement
from services.gang_planner.core.placement.domains import Space
from services.gang_planner.core.placement.exact_search import GroupRequest, search, searchable
from services.gang_planner.core.placement.parts import Group, Part, placed_of, scarcest_first
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.needs import Structure
from services.gang_planner.core.state.queues import QueueEntry

#: Failed domains after which an attempt ends: each costs as much as a gang that does not fit.
_FAILURES_MAX: Final = 64
#: A domain in which the exact search ended by its budget counts as this many: four at most.
_EXCEEDED_COST: Final = 16
#: Cells of the exact search that cost as much as a node column.
_CELLS_PER_COLUMN: Final = 10


@dataclass(slots=True)
class AttemptBudget:
    """How many more domains an attempt may try without success."""

    failures_left: int = _FAILURES_MAX
    #: A search ended by its budget: if nothing was placed, whether the gang fits is not known.
    exceeded: bool = False

    def count_failure(self) -> bool:
        """Count a failed domain; whether the attempt must end."""
        self.failures_left -= 1
        self.exceeded = self.exceeded or self.failures_left <= 0
        return self.failures_left <= 0


class PartPlacement:
    """Places parts of one gang into one statement."""

    def __init__(
        self,
        session: Session,
        queue: QueueEntry,
        structure: Structure | None,
        avoid: Ints,
        statement: Statement,
        budget: AttemptBudget,
    ) -> None:
        """`avoid`: slots of nodes that are not used; the other arguments are the gang's."""
        self._session = session
        self._queue = queue
        self._structure = structure
        self._avoid = avoid
        self._statement = statement
        self._budget = budget

    def spaces(self, part: Part, base: Bools | None, *, home: str | None = None) -> Iterable[Space]:
        """Where a part may be placed inside `base`, `home` first; without a topology one space, all
        of `base`.
        """
        if part.topology is None:
            return (Space(base),)
        return self._session.spaces(
            part.topology,
            [(group.role, group.shape, group.wanted) for group in part.groups],
            part.quorum,
            part.minima,
            near=part.near,
            home=home,
            base=base,
        )

    def place_quorum(self, part: Part, within: Bools | None) -> bool:
        """Place a part's quorum inside a mask; False: nothing of it is placed."""
        part.packed = False
        if part.quorum <= 0:
            return True
        if within is not None:
            for group in part.groups:
                here = int(self._session.fits.counts(group.shape)[within].sum())
                group.fit = min(group.wanted, here)
        if _cannot_fit(part) or self._exceeds_free(part, within):
            return False
        mark = self._statement.checkpoint()
        for part.packed in (False, True):
            if self._place_greedily(part, within):
                return True
            self.undo(mark, part.groups)
            if len(part.groups) == 1:
                return False
        part.packed = False
        return self._search(part, within) or self._place_by_nodes(part, within)

    def place_extras(self, part: Part, within: Bools | None, most: int) -> None:
        """Place up to `most` members above the quorum, those of higher rank first."""
        growing = [group for group in part.groups if group.left]
        for group in sorted(scarcest_first(growing), key=lambda one: -one.rank):
            before = group.placed
            self.place(part, group, min(group.left, most), within)
            most -= group.placed - before

    def place(self, part: Part, group: Group, wanted: int, within: Bools | None) -> None:
        """Place up to `wanted` members of a group of a part."""
        if wanted > 0:
            group.placed += self._session.spread(
                self._statement,
                self._queue,
                group.role,
                group.next_shape,
                wanted,
                self._avoid,
                packed=part.packed,
                within=within,
                part=part.name,
                structure=self._structure,
            )

    def undo(self, mark: int, groups: Iterable[Group]) -> None:
        """Undo all placements since the mark: those of these groups."""
        self._statement.rollback(mark)
        for group in groups:
            group.placed = group.target = 0

    def _place_by_nodes(self, part: Part, within: Bools | None) -> bool:
        """Place a part's quorum greedily, the groups that fit on the fewest nodes first, where
        claims are beyond the exact search.
        """
        if all(group.needs is not None for group in part.groups):
            return False
        mark = self._statement.checkpoint()
        counts = [self._session.fits.counts(group.shape) > 0 for group in part.groups]
        nodes = [int(np.count_nonzero(one if within is None else one & within)) for one in counts]
        pairs = zip(nodes, part.groups, strict=True)
        ordered = sorted(pairs, key=lambda one: (one[1].turn, one[0], *one[1].plenty))
        if self._place_greedily(part, within, [group for _, group in ordered]):
            return True
        self.undo(mark, part.groups)
        return False

    def _place_greedily(
        self, part: Part, within: Bools | None, ordered: Sequence[Group] = ()
    ) -> bool:
        """Place a part's quorum; `ordered`: its groups in the order in which they are placed; ():
        the scarcest first.
        """
        groups = part.groups
        for role, count in part.minima:
            _aim([group for group in groups if group.role == role], count)
        _aim(groups, part.quorum - sum(group.target for group in groups))
        for group in ordered or scarcest_first(groups):
            group.put_last_first(group.target)
            self.place(part, group, group.target, within)
        for role, count in part.minima:
            of_role = [group for group in groups if group.role == role]
            self._make_up(part, of_role, count, within)
        self._make_up(part, groups, part.quorum, within)
        return part.placed >= part.quorum and all(
            placed_of(groups, role) >= count for role, count in part.minima
        )

    def _make_up(self, part: Part, groups: list[Group], wanted: int, within: Bools | None) -> None:
        for group in groups:
            missing = wanted - sum(one.placed for one in groups)
            if missing <= 0:
                return
            self.place(part, group, min(missing, group.left), within)

    def _search(self, part: Part, within: Bools | None) -> bool:
        """Place a part's quorum by the exact search, where the greedy one found nothing."""
        session = self._session
        # The table has an axis for each group but the last, which may be as large as it likes.
        groups = sorted(part.groups, key=lambda group: group.wanted)
        if not searchable(groups):
            return False
        shapes = [group.shape for group in groups]
        counts = [session.fits.counts(shape) for shape in shapes]
        slots = np.flatnonzero(sum(counts) if within is None else sum(counts) * within)
        slots = slots[~np.isin(slots, self._avoid)]
        request = GroupRequest(
            [group.role for group in groups],
            shapes,
            [group.wanted for group in groups],
            part.quorum,
            part.minima,
        )
        devices = session.node_capacity.devices
        limits = devices.numbers().joint_limits([group.needs or () for group in groups], slots)
        if limits is None:
            return False
        found = search(
            session.node_capacity, request, [one[slots] for one in counts], slots, limits
        )
        session.work_left -= found.work // _CELLS_PER_COLUMN + len(limits) * len(slots)
        if found.budget_exceeded:
            self._budget.exceeded = True
            self._budget.failures_left -= _EXCEEDED_COST
        mark = self._statement.checkpoint()
        for group, (where, taken) in zip(groups, found.places, strict=False):
            total = int(taken.sum())
            if self._queue.headroom(group.shape, total) < total:
                self.undo(mark, part.groups)
                return False
            if total:
                shape = group.first(total)
                self._statement.allocate(Allocation(group.role, shape, where, taken, part.name))
                group.placed = total
                if group.needs and not all(map(devices.is_served, shape.alike or (shape,))):
                    # Claims of pods of other schedulers may have the devices.
                    self.undo(mark, part.groups)
                    return False
        return bool(found.places)

    def _exceeds_free(self, part: Part, within: Bools | None) -> bool:
        """Whether all of a part's members together request more than is free: cheaper to compute
        than a search. For one shape its counts show it.
        """
        if len(part.groups) < 2 or part.wanted != part.quorum:
            return False
        session = self._session
        usable: Bools = np.zeros(session.node_capacity.nodes.size, dtype=np.bool_)
        for group in part.groups:
            usable |= session.fits.counts(group.shape) > 0
        if within is not None:
            usable &= within
        free = session.node_capacity.free.cells[:, : len(usable)][:, usable]
        requested: dict[int, int] = {}
        for group in part.groups:
            for row, amount in group.shape.pairs:
                requested[row] = requested.get(row, 0) + amount * group.wanted
        return any(
            amount > int(np.maximum(free[row], 0).sum()) for row, amount in requested.items()
        )


def _cannot_fit(part: Part) -> bool:
    """Whether the quorum does not fit even if each shape had all nodes for itself: the usual case
    in a full cluster, so the check is cheap.
    """
    groups = part.groups
    if sum(group.fit for group in groups) < part.quorum:
        return True
    return any(
        sum(group.fit for group in groups if group.role == role) < count
        for role, count in part.minima
    )


def _aim(groups: list[Group], amount: int) -> None:
    """Raise targets by `amount` in all, for the groups that fit most easily first."""
    for group in sorted(groups, key=lambda one: (one.rank, *one.plenty), reverse=True):
        if amount <= 0:
            return
        more = max(0, min(group.fit - group.target, amount))
        group.target += more
        amount -= more
