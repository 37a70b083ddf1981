"""Places one gang: its quorum whole or nothing, then as many of the rest as fit.

A gang is placed in *parts*: its sub-gangs, each whole or not at all, and all other members. A part
has a few *groups*, each a role and a shape. Its quorum is placed greedily: every group gets a
target (its role's minimum first, the rest for the groups that fit most easily), targets are placed
scarcest group first, and shortfalls are made up by other groups. If that fails, nodes are filled up
one after the other, which leaves more nodes to the next shape; then an exact search with a budget
is made (`exact_search`). One group is placed exactly whenever it fits.

Sub-gangs may be in sets (`SetNeed`), and sets in sets, each whole or not at all too. All parts are
tried, from the largest to the smallest. If too few of them fit, only as many as are needed are
tried, the smallest ones, and then the rest.

With a topology all of this happens inside one domain, the closest that holds it
(`placement.domains`); sub-gangs have domains of their own inside the gang's. An attempt ends after
`_FAILURES_MAX` failed domains: whether the gang fits is then not known (`budget_exceeded`).
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

import numpy as np

from services.gang_planner.core.framework.statement import Allocation, Statement
from services.gang_planner.core.placement.domains import Space, wider
from services.gang_planner.core.placement.exact_search import GroupRequest, search, searchable
from services.gang_planner.core.placement.parts import Group, Part
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.needs import (
    NOTHING_SAID,
    Need,
    SetNeed,
    Structure,
    Wanted,
)
from services.gang_planner.core.state.queues import QueueEntry

#: Failed domains after which an attempt ends: each costs as much as a gang that does not fit.
_FAILURES_MAX: Final = 64
#: A domain in which the exact search ended by its budget counts as this many: four at most.
_EXCEEDED_COST: Final = 16
#: Cells of the exact search that cost as much as a node column.
_CELLS_PER_COLUMN: Final = 10
_AnyPart = TypeVar("_AnyPart", Part, Part | SetNeed)


class GangPlacement:
    """One attempt to place what a gang needs."""

    def __init__(
        self,
        session: Session,
        queue: QueueEntry,
        need: Need,
        *,
        members_max: int,
        withheld: Ints | None = None,
        failed_spaces: dict[tuple[int, int], bool] | None = None,
    ) -> None:
        """Args:
        withheld: Slots of nodes that are left to other queues.
        failed_spaces: Spaces that are known not to hold the need; those that turn out not to are
            added. None: every space is tried, and nothing is remembered.
        """
        self._session = session
        self._queue = queue
        self._need = need
        self._members_max = members_max
        self._avoid = session.slots(need.avoid)
        if withheld is not None:
            self._avoid = np.concatenate([self._avoid, withheld])
        #: Nodes that its queue may use; None: all.
        self._base = session.policies.within(queue, None)
        self._failures_left = _FAILURES_MAX
        self._failed_spaces = failed_spaces
        self.statement = Statement(session.node_capacity, queue)
        #: A search ended by its budget: if nothing was placed, whether it fits is not known.
        self.budget_exceeded = False
        #: How many members of the quorum do not fit even if each shape had all nodes for itself.
        self.missing = 0
        #: The domain that all of it was placed in; None: it has no topology.
        self.domain: str | None = None
        #: Where each set is placed in this attempt, by name.
        self._set_spaces: dict[str, Bools | None] = {}
        self._parts = _parts_of(session, need)
        self.groups = [group for part in self._parts for group in part.groups]

    def run(self) -> bool:
        """Place quorum and extras. False: nothing is placed, the statement is discarded."""
        self.missing = max(self._need.quorum, 1) - sum(group.fit for group in self.groups)
        if self.missing > 0:
            # The usual case in a full cluster.
            pass
        elif self._need.structure is None:
            (part,) = self._parts
            if self._place_whole(part, self._base):
                self._place_extras(part, None)
                if self.placed:
                    return True
        elif self._place_in_domains(self._need.structure):
            return True
        self._undo(0, self.groups)
        self.statement.discard()
        return False

    def run_partly(self) -> None:
        """Place as much of the quorum as fits anywhere, to find out what is missing. Members of a
        role do not take the place of another role's minimum. The caller discards the statement.
        """
        need = self._need.quorum or 1
        for part in _largest_first(self.sub_gangs):
            part.whole = self._place_each([part], self._base)
        rest = self._parts[-1]
        ordered = _scarcest_first(rest.groups)
        minima = self._need.minima
        for role, count in minima:
            for group in (group for group in ordered if group.role == role):
                self._place(rest, group, min(group.left, count - _of_role(self.groups, role)), None)
        owed = sum(max(count - _of_role(self.groups, role), 0) for role, count in minima)
        for group in ordered:
            self._place(rest, group, min(group.left, need - owed - self.placed), None)

    @property
    def placed(self) -> int:
        return sum(group.placed for group in self.groups)

    @property
    def sub_gangs(self) -> list[Part]:
        """Its sub-gangs; `whole` says which are placed."""
        return self._parts[:-1]

    # ------------------------------------------------------------------ domains

    def _place_in_domains(self, structure: Structure) -> bool:
        """Place the gang in the first space that holds it."""
        whole = Part(
            self.groups, self._need.quorum, self._need.minima, structure.topology, structure.near
        )
        for space in self._spaces(whole, structure.home, self._base):
            place = space.level, space.domain
            if self._failed_spaces is not None and place in self._failed_spaces:
                self.budget_exceeded |= self._failed_spaces[place]
                continue
            before, self.budget_exceeded = self.budget_exceeded, False
            if self._fill(space, structure):
                self._grow(whole, space)
                if self.placed:
                    self.domain = space.name
                    return True
            self._undo(0, self.groups)
            if self._failed_spaces is not None:
                self._failed_spaces[place] = self.budget_exceeded
            self.budget_exceeded |= before
            if self._gives_up():
                break
        return False

    def _fill(self, space: Space, structure: Structure) -> bool:
        """Place all minima inside a space."""
        need = self._need
        *sub_gangs, rest = self._parts
        if not sub_gangs:
            return self._place_whole(rest, space.mask)
        if structure.sets:
            return self._place_tree(structure, space.mask)
        ordered = _largest_first(sub_gangs)
        for part in ordered:
            if self.placed + part.quorum <= self._members_max:
                part.whole = self._place_each([part], space.mask)
        if not all(part.whole for part in ordered) and _all_needed(ordered, need):
            # One that was placed first may be in the way of another of a different size.
            self._undo(0, self.groups)
            self._place_each(ordered, space.mask)
        rest.minima = tuple(
            (role, count - placed)
            for role, count in need.minima
            if (placed := _of_role(self.groups, role)) < count
        )
        least = sum(count for _, count in rest.minima)
        self._enlarge(sub_gangs, need.quorum - self.placed - rest.wanted)
        rest.quorum = max(least, need.quorum - self.placed)
        if not self._place_whole(rest, space.mask):
            return False
        return all(
            sum(part.whole for part in sub_gangs if part.policy == policy) >= count
            for policy, count in structure.sub_minima
        )

    def _place_tree(self, structure: Structure, base: Bools | None) -> bool:
        """Place the outermost set inside a mask; False: nothing of it is placed."""
        outermost = structure.sets[0]
        for least in (False, True):
            mark = self.statement.checkpoint()
            if self._place_parts(structure, outermost, base, least=least) >= outermost.missing:
                self._add_parts(structure, outermost, base)
                return True
            self._undo_set(mark, outermost)
            if self._failures_left <= 0:
                break
        return False

    def _place_set(
        self, structure: Structure, one: SetNeed, base: Bools | None, *, least: bool
    ) -> bool:
        """Place a set in the first space that holds enough of it; False: nothing of it is placed.
        Arguments as for `_place_parts`.
        """
        groups = [group for part in self._parts_in(one) for group in part.groups]
        whole = Part(groups, one.quorum, topology=one.topology, near=one.near)
        for space in self._spaces(whole, None, base):
            mark = self.statement.checkpoint()
            if self._place_parts(structure, one, space.mask, least=least) >= one.missing:
                self._set_spaces[one.name] = space.mask
                return True
            self._undo_set(mark, one)
            if self._gives_up():
                break
        return False

    def _place_parts(
        self, structure: Structure, one: SetNeed, base: Bools | None, *, least: bool
    ) -> int:
        """Place parts of a set inside a mask, each whole or not at all.

        Args:
            structure: The gang's.
            one: The set.
            base: The mask; None: all nodes.
            least: Whether to place as few parts as the set needs, the smallest ones, instead of
                all that fit, the largest ones first.

        Returns:
            How many parts are complete now that were not before.
        """
        found = 0
        parts = self._of_set(structure, one)
        for part in _smallest_first(parts) if least else _largest_first(parts):
            if least and found >= one.missing:
                break
            found += self._place_one(structure, part, base, least=least)
        return found

    def _place_one(
        self, structure: Structure, one: Part | SetNeed, base: Bools | None, *, least: bool
    ) -> bool:
        """Place a sub-gang or a set, if the message has room for it; whether it is complete now and
        was not before.
        """
        if self.placed + one.quorum > self._members_max:
            return False
        if isinstance(one, Part):
            one.whole = self._place_each([one], base)
            return one.whole and one.quorum > 0
        return self._place_set(structure, one, base, least=least) and one.missing > 0

    def _add_parts(self, structure: Structure, one: SetNeed, base: Bools | None) -> None:
        """Place the parts of a complete set that are not placed yet, as far as they fit."""
        for part in _largest_first(self._of_set(structure, one)):
            if self._failures_left <= 0:
                return
            if isinstance(part, Part):
                if not part.whole:
                    self._place_one(structure, part, base, least=True)
                continue
            if part.name not in self._set_spaces:
                self._place_one(structure, part, base, least=True)
            if part.name in self._set_spaces:
                self._add_parts(structure, part, self._set_spaces[part.name])

    def _of_set(self, structure: Structure, one: SetNeed) -> list[Part | SetNeed]:
        """The sub-gangs and the sets that are directly in a set."""
        inside = [each for each in structure.sets if each.set_name == one.name]
        of_sets = {name for each in inside for name in each.policies}
        return [part for part in self._parts_in(one) if part.policy not in of_sets] + inside

    def _parts_in(self, one: SetNeed) -> list[Part]:
        """All sub-gangs of a set and of the sets in it."""
        return [part for part in self.sub_gangs if part.policy in one.policies]

    def _undo_set(self, mark: int, one: SetNeed) -> None:
        """Undo all placements since the mark: those of a set."""
        self._set_spaces.pop(one.name, None)
        for part in self._parts_in(one):
            self._undo(mark, part.groups)
            part.whole = False
        structure = self._need.structure or NOTHING_SAID
        for each in structure.sets:
            if each.set_name == one.name:
                self._undo_set(mark, each)

    def _enlarge(self, sub_gangs: list[Part], lacking: int) -> None:
        """Place members of sub-gangs above their quorums: the gang's quorum needs them, because it
        has too few members outside its sub-gangs.
        """
        for part in sub_gangs:
            for group in _scarcest_first(part.groups) if part.whole else ():
                before = group.placed
                self._place(part, group, min(group.left, lacking), part.space.mask)
                lacking -= group.placed - before

    def _place_each(self, parts: list[Part], base: Bools | None) -> bool:
        """Place all of these sub-gangs, each in the first space that leaves enough to the rest."""
        if not parts:
            return True
        part, *others = parts
        for space in self._spaces(part, None, base):
            mark = self.statement.checkpoint()
            if self._place_whole(part, space.mask):
                part.space, part.around, part.whole = space, base, True
                if self._place_each(others, base):
                    return True
            part.whole = False
            self._undo(mark, part.groups)
            if self._gives_up():
                break
        return False

    def _spaces(self, part: Part, home: str | None, base: Bools | None) -> Iterable[Space]:
        """Where a part may be placed; without a topology one space, all nodes."""
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

    def _grow(self, whole: Part, space: Space) -> None:
        """Place extras: those of a sub-gang in its own domain and the wider ones inside the gang's,
        those of the gang in ever wider domains.
        """
        topology = self._session.node_capacity.topology
        *sub_gangs, rest = self._parts
        masks: list[Bools | None] = [space.mask]
        if whole.topology is not None:
            masks += wider(topology.levels(whole.topology), space, self._base)
        for part in sub_gangs:
            if not part.whole:
                continue
            self._place_extras(part, part.space.mask)
            if part.topology is not None:
                found = topology.levels(part.topology)
                for mask in wider(found, part.space, part.around):
                    self._place_extras(part, mask)
        for mask in masks:
            if not rest.groups or self.placed >= self._members_max:
                return
            self._place_extras(rest, mask)

    def _gives_up(self) -> bool:
        self._failures_left -= 1
        self.budget_exceeded = self.budget_exceeded or self._failures_left <= 0
        return self._failures_left <= 0

    # ------------------------------------------------------------------- a part

    def _place_whole(self, part: Part, within: Bools | None) -> bool:
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
        mark = self.statement.checkpoint()
        for part.packed in (False, True):
            if self._place_quorum(part, within):
                return True
            self._undo(mark, part.groups)
            if len(part.groups) == 1:
                return False
        part.packed = False
        return self._search(part, within)

    def _search(self, part: Part, within: Bools | None) -> bool:
        """Place a part's quorum by the exact search, where the greedy one found nothing."""
        session = self._session
        # The table has an axis for each group but the last, which may be as large as it likes.
        groups = sorted(part.groups, key=lambda group: group.wanted)
        shapes = [group.shape for group in groups]
        if not searchable(shapes):
            return False
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
        found = search(session.node_capacity, request, [one[slots] for one in counts], slots)
        session.work_left -= found.work // _CELLS_PER_COLUMN
        if found.budget_exceeded:
            self.budget_exceeded = True
            self._failures_left -= _EXCEEDED_COST
        mark = self.statement.checkpoint()
        for group, (where, taken) in zip(groups, found.places, strict=False):
            total = int(taken.sum())
            if self._queue.headroom(group.shape, total) < total:
                self._undo(mark, part.groups)
                return False
            if total:
                self.statement.allocate(
                    Allocation(group.role, group.shape, where, taken, part.name)
                )
                group.placed = total
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

    def _place_quorum(self, part: Part, within: Bools | None) -> bool:
        groups = part.groups
        for role, count in part.minima:
            _aim([group for group in groups if group.role == role], count)
        _aim(groups, part.quorum - sum(group.target for group in groups))
        for group in _scarcest_first(groups):
            self._place(part, group, group.target, within)
        for role, count in part.minima:
            of_role = [group for group in groups if group.role == role]
            self._make_up(part, of_role, count, within)
        self._make_up(part, groups, part.quorum, within)
        return part.placed >= part.quorum and all(
            _of_role(groups, role) >= count for role, count in part.minima
        )

    def _make_up(self, part: Part, groups: list[Group], wanted: int, within: Bools | None) -> None:
        for group in groups:
            missing = wanted - sum(one.placed for one in groups)
            if missing <= 0:
                return
            self._place(part, group, min(missing, group.left), within)

    def _place_extras(self, part: Part, within: Bools | None) -> None:
        growing = [group for group in part.groups if group.left]
        for group in sorted(_scarcest_first(growing), key=lambda one: -one.rank):
            wanted = min(group.left, self._members_max - self.placed)
            self._place(part, group, wanted, within)

    def _place(self, part: Part, group: Group, wanted: int, within: Bools | None) -> None:
        if wanted > 0:
            group.placed += self._session.spread(
                self.statement,
                self._queue,
                group.role,
                group.shape,
                wanted,
                self._avoid,
                packed=part.packed,
                within=within,
                part=part.name,
                structure=self._need.structure,
            )

    def _undo(self, mark: int, groups: Iterable[Group]) -> None:
        self.statement.rollback(mark)
        for group in groups:
            group.placed = group.target = 0


def _smallest_first(parts: Iterable[Part | SetNeed]) -> list[Part | SetNeed]:
    return sorted(parts, key=lambda part: (part.quorum, part.name))


def _all_needed(parts: Sequence[Part], need: Need) -> bool:
    """Whether the gang needs every one of its sub-gangs, and these differ: then they may fit in
    another order of domains.
    """
    kinds = {
        (part.quorum, *((group.role, group.shape.id) for group in part.groups)) for part in parts
    }
    others = sum(count for _, _, count in need.wanted) - min(part.quorum for part in parts)
    return len(kinds) > 1 and others < need.quorum


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


def _of_role(groups: Iterable[Group], role: str) -> int:
    return sum(group.placed for group in groups if group.role == role)


def _largest_first(parts: Iterable[_AnyPart]) -> list[_AnyPart]:
    """Large sub-gangs first: small ones fit between them."""
    return sorted(parts, key=lambda part: (-part.quorum, part.name))


def _scarcest_first(groups: Iterable[Group]) -> list[Group]:
    return sorted(groups, key=lambda one: (one.turn, *one.plenty))


def _aim(groups: list[Group], amount: int) -> None:
    """Raise targets by `amount` in all, for the groups that fit most easily first."""
    for group in sorted(groups, key=lambda one: (one.rank, *one.plenty), reverse=True):
        if amount <= 0:
            return
        more = max(0, min(group.fit - group.target, amount))
        group.target += more
        amount -= more


def _parts_of(session: Session, need: Need) -> list[Part]:
    """The sub-gangs of a need, and last the part with all other members."""
    structure = need.structure or NOTHING_SAID
    left = {(role, shape_id): count for role, shape_id, count in need.wanted}
    parts: list[Part] = []
    for sub in structure.sub_gangs:
        for role, shape_id, count in sub.wanted:
            left[role, shape_id] -= count
        parts.append(
            Part(
                _groups(session, sub.wanted),
                sub.quorum,
                topology=sub.topology,
                near=sub.near,
                name=sub.part,
                policy=sub.policy,
            )
        )
    rest = [(role, shape_id, count) for (role, shape_id), count in left.items() if count]
    last = Part(_groups(session, rest), need.quorum, need.minima)
    if structure.tasks is not None:
        for group in last.groups:
            group.turn = structure.tasks.turn(group.role)
    if need.ranks and not parts:
        for group, rank in zip(last.groups, need.ranks, strict=True):
            group.rank = rank
    return [*parts, last]


def _groups(session: Session, wanted: Sequence[Wanted]) -> list[Group]:
    shapes = session.shapes.entries
    return [
        Group(role, shapes[shape_id], count, min(count, session.total(shapes[shape_id])))
        for role, shape_id, count in wanted
    ]
