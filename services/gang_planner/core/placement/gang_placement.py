"""Places one gang: its quorum whole or nothing, then as many of the rest as fit.

A gang is placed in *parts*: its sub-gangs, each whole or not at all (`sub_gang_placement`), and all
other members. `part_placement` places one part.

With a topology all of this happens inside one domain, the closest that holds it
(`placement.domains`); sub-gangs and sets of them have domains of their own inside the gang's. An
attempt ends after too many failed domains (`AttemptBudget`): whether the gang fits is then not
known (`budget_exceeded`).
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from services.gang_planner.core.framework.statement import Statement
from services.gang_planner.core.placement.domains import Space, wider
from services.gang_planner.core.placement.part_placement import (
    AttemptBudget,
    Part,
    PartPlacement,
    parts_of,
    placed_of,
    scarcest_first,
)
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.placement.sub_gang_placement import SubGangPlacement, largest_first
from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.needs import NOTHING_SAID, Need, Structure
from services.gang_planner.core.state.queues import QueueEntry


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
        self._need = need
        self._members_max = members_max
        avoid = session.node_capacity.nodes.slots_of(need.avoid)
        if withheld is not None:
            avoid = np.concatenate([avoid, withheld])
        #: Nodes that its queue and its group may use; None: all.
        self._base = session.allowed_nodes(queue, need.structure)
        self._failed_spaces = failed_spaces
        self.statement = Statement(session.node_capacity, queue)
        self._budget = AttemptBudget()
        #: How many members of the quorum do not fit even if each shape had all nodes for itself.
        self.missing = 0
        #: The domain that all of it was placed in; None: it has no topology.
        self.domain: str | None = None
        self._parts = parts_of(session, need)
        self.groups = [group for part in self._parts for group in part.groups]
        self._placement = PartPlacement(
            session, queue, need.structure, avoid, self.statement, self._budget
        )

    @cached_property
    def _sub_gangs(self) -> SubGangPlacement:
        structure = self._need.structure or NOTHING_SAID
        return SubGangPlacement(
            self._placement,
            self.statement,
            self._budget,
            self.sub_gangs,
            structure.sets,
            self._members_max,
        )

    @property
    def budget_exceeded(self) -> bool:
        """A search ended by its budget: if nothing was placed, whether it fits is not known."""
        return self._budget.exceeded

    def run(self) -> bool:
        """Place quorum and extras. False: nothing is placed, the statement is discarded."""
        self.missing = max(self._need.quorum, 1) - sum(group.fit for group in self.groups)
        if self.missing > 0:
            # The usual case in a full cluster.
            pass
        elif self._need.structure is None:
            (part,) = self._parts
            if self._placement.place_quorum(part, self._base):
                self._place_extras(part, None)
                if self.placed:
                    return True
        elif self._place_in_domains(self._need.structure):
            return True
        self._undo()
        self.statement.discard()
        return False

    def run_partly(self) -> None:
        """Place as much of the quorum as fits anywhere, to find out what is missing. Members of a
        role do not take the place of another role's minimum. The caller discards the statement.
        """
        need = self._need.quorum or 1
        for part in largest_first(self.sub_gangs):
            self._sub_gangs.place_all([part], self._base)
        rest = self._parts[-1]
        ordered = scarcest_first(rest.groups)
        minima = self._need.minima
        for role, count in minima:
            for group in (group for group in ordered if group.role == role):
                self._placement.place(
                    rest, group, min(group.left, count - placed_of(self.groups, role)), self._base
                )
        owed = sum(max(count - placed_of(self.groups, role), 0) for role, count in minima)
        for group in ordered:
            wanted = min(group.left, need - owed - self.placed)
            self._placement.place(rest, group, wanted, self._base)

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
        budget = self._budget
        whole = Part(
            self.groups, self._need.quorum, self._need.minima, structure.topology, structure.near
        )
        for space in self._placement.spaces(whole, self._base, home=structure.home):
            place = space.level, space.domain
            if self._failed_spaces is not None and place in self._failed_spaces:
                budget.exceeded |= self._failed_spaces[place]
                continue
            before, budget.exceeded = budget.exceeded, False
            if self._fill(space, structure):
                self._grow(whole, space)
                if self.placed:
                    self.domain = space.name
                    return True
            self._undo()
            if self._failed_spaces is not None:
                self._failed_spaces[place] = budget.exceeded
            budget.exceeded |= before
            if budget.count_failure():
                break
        return False

    def _fill(self, space: Space, structure: Structure) -> bool:
        """Place all minima inside a space."""
        need = self._need
        *sub_gangs, rest = self._parts
        if not sub_gangs:
            return self._placement.place_quorum(rest, space.mask)
        if not structure.sets:
            self._place_sub_gangs(space)
        elif not self._sub_gangs.place_outermost(space.mask):
            return False
        rest.minima = tuple(
            (role, count - placed)
            for role, count in need.minima
            if (placed := placed_of(self.groups, role)) < count
        )
        least = sum(count for _, count in rest.minima)
        self._enlarge(sub_gangs, need.quorum - self.placed - rest.wanted)
        rest.quorum = max(least, need.quorum - self.placed)
        if not self._placement.place_quorum(rest, space.mask):
            return False
        return all(
            sum(part.whole for part in sub_gangs if part.policy == policy) >= count
            for policy, count in structure.sub_minima
        )

    def _place_sub_gangs(self, space: Space) -> None:
        """Place sub-gangs that are in no sets, as many as fit."""
        ordered = largest_first(self.sub_gangs)
        for part in ordered:
            if self.placed + part.quorum <= self._members_max:
                self._sub_gangs.place_all([part], space.mask)
        if all(part.whole for part in ordered) or not self._sub_gangs.is_searchable():
            return
        if _all_needed(ordered, self._need):
            # One that was placed first may be in the way of another of a different size.
            self._undo()
            self._sub_gangs.place_all(ordered, space.mask)

    def _enlarge(self, sub_gangs: list[Part], lacking: int) -> None:
        """Place members of sub-gangs above their quorums: the gang's quorum needs them, because it
        has too few members outside its sub-gangs.
        """
        for part in sub_gangs:
            for group in scarcest_first(part.groups) if part.whole else ():
                before = group.placed
                self._placement.place(part, group, min(group.left, lacking), part.space.mask)
                lacking -= group.placed - before

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

    def _place_extras(self, part: Part, within: Bools | None) -> None:
        self._placement.place_extras(part, within, self._members_max - self.placed)

    def _undo(self) -> None:
        self._placement.undo(0, self.groups)
        if self.sub_gangs:
            self._sub_gangs.forget()


def _all_needed(parts: Sequence[Part], need: Need) -> bool:
    """Whether the gang needs every one of its sub-gangs, and these differ: then they may fit in
    another order of domains.
    """
    kinds = {
        (part.quorum, *((group.role, group.shape.id) for group in part.groups)) for part in parts
    }
    others = sum(count for _, _, count in need.wanted) - min(part.quorum for part in parts)
    return len(kinds) > 1 and others < need.quorum
