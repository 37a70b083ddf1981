"""Places the sub-gangs of a gang, each whole or not at all, and sets of them.

Sets contain sub-gangs and other sets (`SetNeed`). A set is placed with enough of its parts, inside
one domain if it has a topology, or not at all. Three ways are tried in turn:

* all parts, from the largest to the smallest;
* only as many as each set needs, the smallest ones, and then the rest;
* the same, and where a domain of one part is in the way of another part, the next domain. This
  search is exact for sets that need all their parts, as far as the attempt's budget goes.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias, TypeVar

from services.gang_planner.core.framework.statement import Statement
from services.gang_planner.core.placement.domains import Space
from services.gang_planner.core.placement.part_placement import AttemptBudget, Part, PartPlacement
from services.gang_planner.core.state.columns import Bools
from services.gang_planner.core.state.needs import SetNeed

#: Parts up to which further domains are searched: each takes a few frames of Python's stack.
_SEARCHED_MAX: Final = 100
_Node: TypeAlias = Part | SetNeed
_AnyNode = TypeVar("_AnyNode", Part, _Node)


class SubGangPlacement:
    """Places sub-gangs and sets of one gang."""

    def __init__(
        self,
        placement: PartPlacement,
        statement: Statement,
        budget: AttemptBudget,
        parts: Sequence[Part],
        sets: Sequence[SetNeed],
        members_max: int,
    ) -> None:
        """Args:
        placement: Places each part into `statement`.
        statement: The gang's.
        budget: The attempt's.
        parts: The gang's sub-gangs; `whole` says which are placed.
        sets: Its sets, each before those in it.
        members_max: How many members may be placed.
        """
        self._placement = placement
        self._statement = statement
        self._budget = budget
        self._parts = parts
        self._sets = sets
        self._members_max = members_max
        #: Where each set is placed, by name.
        self._places: dict[str, Bools | None] = {}
        #: The sub-gangs, and the sets, that are directly in a set.
        self._nodes: dict[str, list[_Node]] = {}
        #: All sub-gangs in a set and in the sets in it.
        self._inside: dict[str, list[Part]] = {}
        for part in parts:
            self._nodes.setdefault(part.set_name, []).append(part)
            self._inside.setdefault(part.set_name, []).append(part)
        for one in reversed(sets):
            self._nodes.setdefault(one.set_name, []).append(one)
            self._inside.setdefault(one.set_name, []).extend(self._inside[one.name])

    def place_all(self, parts: Sequence[Part], base: Bools | None) -> bool:
        """Place all of these sub-gangs, each in a space that leaves enough to the rest; False:
        nothing of them is placed.
        """
        return any(True for _ in self._ways(parts, base))

    def forget(self) -> None:
        """Everything that was placed has been undone."""
        self._places.clear()
        for part in self._parts:
            part.whole = False

    def is_searchable(self) -> bool:
        """Whether there are few enough sub-gangs and sets to search for further domains."""
        return len(self._parts) + len(self._sets) <= _SEARCHED_MAX

    def place_outermost(self, base: Bools | None) -> bool:
        """Place the outermost set inside a mask; False: nothing of it is placed."""
        outermost = self._sets[0]
        for least in (False, True):
            mark = self._statement.checkpoint()
            if self._place_parts(outermost, base, least=least) >= outermost.missing:
                self._add_parts(outermost, base)
                return True
            self._undo(mark, outermost)
            if self._budget.failures_left <= 0:
                return False
        if not self._is_worth_a_search() or outermost.quorum > self._members_max:
            return False
        if not any(True for _ in self._ways(self._needed(outermost), base)):
            return False
        self._add_parts(outermost, base)
        return True

    def _is_worth_a_search(self) -> bool:
        """Whether the choice of domains could be why the sets do not fit."""
        has_domains = any(part.topology is not None for part in self._parts) or any(
            one.topology is not None for one in self._sets
        )
        return has_domains and self.is_searchable()

    def _needed(self, one: SetNeed) -> list[_Node]:
        """The smallest parts of a set with which it is complete, the largest of them first."""
        lacking = [each for each in self._nodes[one.name] if _is_incomplete(each)]
        return largest_first(_smallest_first(lacking)[: one.missing])

    def _ways(self, parts: Sequence[_Node], base: Bools | None) -> Iterator[None]:
        """Each way to place all of these parts inside a mask. They stay placed until the next way
        is asked for; at the end nothing of them is placed.
        """
        if not parts:
            yield
            return
        first, *others = parts
        for space in self._spaces(first, base):
            mark = self._statement.checkpoint()
            for _ in self._ways_inside(first, space, base):
                yield from self._ways(others, base)
            self._undo(mark, first)
            if self._budget.count_failure():
                return

    def _ways_inside(self, one: _Node, space: Space, base: Bools | None) -> Iterator[None]:
        """Each way to place one part in one of its spaces."""
        if isinstance(one, Part):
            if self._placement.place_quorum(one, space.mask):
                one.space, one.around, one.whole = space, base, True
                yield
            return
        self._places[one.name] = space.mask
        yield from self._ways(self._needed(one), space.mask)

    def _spaces(self, one: _Node, base: Bools | None) -> Iterable[Space]:
        if isinstance(one, Part):
            return self._placement.spaces(one, base)
        groups = [group for part in self._inside[one.name] for group in part.groups]
        whole = Part(groups, one.quorum, topology=one.topology, near=one.near)
        return self._placement.spaces(whole, base)

    def _place_set(self, one: SetNeed, base: Bools | None, *, least: bool) -> bool:
        """Place a set in the first space that holds enough of it; False: nothing of it is placed.
        Arguments as for `_place_parts`.
        """
        for space in self._spaces(one, base):
            mark = self._statement.checkpoint()
            if self._place_parts(one, space.mask, least=least) >= one.missing:
                self._places[one.name] = space.mask
                return True
            self._undo(mark, one)
            if self._budget.count_failure():
                break
        return False

    def _place_parts(self, one: SetNeed, base: Bools | None, *, least: bool) -> int:
        """Place parts of a set inside a mask, each whole or not at all.

        Args:
            one: The set.
            base: The mask; None: all nodes.
            least: Whether to place as few parts as the set needs, the smallest ones, instead of
                all that fit, the largest ones first.

        Returns:
            How many parts are complete now that were not before.
        """
        found = 0
        parts = self._nodes[one.name]
        for part in _smallest_first(parts) if least else largest_first(parts):
            if least and found >= one.missing:
                break
            found += self._place_one(part, base, least=least)
        return found

    def _place_one(self, one: _Node, base: Bools | None, *, least: bool) -> bool:
        """Place a sub-gang or a set, if the message has room for it; whether it is complete now and
        was not before.
        """
        if sum(part.placed for part in self._parts) + one.quorum > self._members_max:
            return False
        if isinstance(one, Part):
            return self.place_all([one], base) and one.quorum > 0
        return self._place_set(one, base, least=least) and one.missing > 0

    def _add_parts(self, one: SetNeed, base: Bools | None) -> None:
        """Place the parts of a complete set that are not placed yet, as far as they fit."""
        for part in largest_first(self._nodes[one.name]):
            if self._budget.failures_left <= 0:
                return
            if isinstance(part, Part):
                if not part.whole:
                    self._place_one(part, base, least=True)
                continue
            if part.name not in self._places:
                self._place_one(part, base, least=True)
            if part.name in self._places:
                self._add_parts(part, self._places[part.name])

    def _undo(self, mark: int, one: _Node) -> None:
        """Undo all placements since the mark: those of a sub-gang or a set."""
        if isinstance(one, Part):
            self._placement.undo(mark, one.groups)
            one.whole = False
            return
        self._places.pop(one.name, None)
        for part in self._nodes[one.name]:
            self._undo(mark, part)


def largest_first(parts: Iterable[_AnyNode]) -> list[_AnyNode]:
    """Large parts first: small ones fit between them."""
    return sorted(parts, key=lambda part: (-part.quorum, part.name))


def _smallest_first(parts: Iterable[_Node]) -> list[_Node]:
    return sorted(parts, key=lambda part: (part.quorum, part.name))


def _is_incomplete(one: _Node) -> bool:
    return (one.quorum if isinstance(one, Part) else one.missing) > 0
