"""Places one gang: its quorum whole or nothing, then as many of the rest as fit.

`place` is the entry. A gang without topology and sub-gangs is one part, which goes anywhere
(`attempt`). With a topology all of it goes into one domain, the closest that holds it
(`placement.domains`); sub-gangs and sets of them have domains of their own inside the gang's, and
each is placed whole or not at all. An attempt ends after too many failed domains: whether the gang
fits is then not known (`budget_exceeded`).

Sets contain sub-gangs and other sets (`SetNeed`). A set is placed with enough of its parts, inside
one domain if it has a topology, or not at all. Three ways are tried in turn:

* all parts, from the largest to the smallest;
* only as many as each set needs, the smallest ones, and then the rest;
* the same, and where a domain of one part is in the way of another part, the next domain. This
  search is exact for sets that need all their parts, as far as the attempt's budget goes.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias, TypeVar

from services.gang_planner.core.framework.statement import Statement
from services.gang_planner.core.placement.attempt import (
    Attempt,
    Group,
    Part,
    PlacementRequest,
    placed_of,
    scarcest_first,
)
from services.gang_planner.core.placement.domains import Space, wider
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state.columns import Bools
from services.gang_planner.core.state.needs import NOTHING_SAID, Need, SetNeed, Structure

#: Parts up to which further domains are searched: each takes a few frames of Python's stack.
_SEARCHED_MAX: Final = 100
_Node: TypeAlias = Part | SetNeed
_AnyNode = TypeVar("_AnyNode", Part, _Node)


class Placement(NamedTuple):
    """Where a gang fits."""

    #: Open; it holds the capacity.
    statement: Statement
    groups: list[Group]
    #: The domain that contains all of it; None: it has no topology.
    domain: str | None
    #: A search for another domain ended by its budget.
    budget_exceeded: bool


class Refusal(NamedTuple):
    """A gang does not fit; nothing of it is placed."""

    #: How many members of the quorum do not fit even if each shape had all nodes for itself.
    missing: int
    #: A search ended by its budget: whether the gang fits is not known.
    budget_exceeded: bool


def place(session: Session, request: PlacementRequest) -> Placement | Refusal:
    """Place a gang: its quorum whole, and extras as far as they fit."""
    attempt = Attempt(session, request)
    structure, domain = request.need.structure, None
    if attempt.missing > 0:
        # The usual case in a full cluster.
        placed = False
    elif structure is None:
        placed = attempt.place_anywhere()
    else:
        space = StructuredPlacement(attempt, structure).place()
        placed, domain = space is not None, space.name if space is not None else None
    if placed:
        return Placement(attempt.statement, attempt.groups, domain, attempt.budget_exceeded)
    attempt.statement.discard()
    return Refusal(attempt.missing, attempt.budget_exceeded)


def fits(session: Session, request: PlacementRequest) -> bool:
    """Whether a gang fits; nothing has changed."""
    return _tried(session, request) is None


def missing(session: Session, request: PlacementRequest) -> int | None:
    """`Refusal.missing` of a gang that does not fit; None: it fits. Nothing has changed. Members of
    one shape are counted, not placed, where nothing but amounts decides.
    """
    need = request.need
    plain = request.withheld is None and not (need.avoid or need.minima or need.structure)
    if plain and len(need.wanted) == 1:
        shape = session.shapes.entries[need.wanted[0][1]]
        if not (shape.attached or shape.pairwise):
            short = Attempt(session, request).missing
            return short if short > 0 else None
    return _tried(session, request)


def _tried(session: Session, request: PlacementRequest) -> int | None:
    placement = place(session, request)
    if isinstance(placement, Refusal):
        return placement.missing
    placement.statement.discard()
    return None


def place_partly(session: Session, request: PlacementRequest) -> Attempt:
    """Place as much of the quorum as fits anywhere, to find out what is missing. Members of a role
    do not take the place of another role's minimum. The caller discards the statement.
    """
    attempt, need = Attempt(session, request), request.need
    if attempt.sub_gangs:
        structured = StructuredPlacement(attempt, need.structure or NOTHING_SAID)
        for part in _largest_first(attempt.sub_gangs):
            structured.place_all([part], attempt.base)
    rest = attempt.parts[-1]
    ordered = scarcest_first(rest.groups)
    for role, count in need.minima:
        for group in (group for group in ordered if group.role == role):
            wanted = min(group.left, count - placed_of(attempt.groups, role))
            attempt.place(rest, group, wanted, attempt.base)
    owed = sum(max(count - placed_of(attempt.groups, role), 0) for role, count in need.minima)
    for group in ordered:
        wanted = min(group.left, (need.quorum or 1) - owed - attempt.placed)
        attempt.place(rest, group, wanted, attempt.base)
    return attempt


class StructuredPlacement:
    """Places a gang with topology, sub-gangs or sets."""

    def __init__(self, attempt: Attempt, structure: Structure) -> None:
        self._attempt = attempt
        self._structure = structure
        self._members_max = attempt.request.members_max
        self._parts = attempt.sub_gangs
        #: Where each set is placed, by name.
        self._places: dict[str, Bools | None] = {}
        #: The sub-gangs, and the sets, that are directly in a set.
        self._nodes: dict[str, list[_Node]] = {}
        #: All sub-gangs in a set and in the sets in it.
        self._inside: dict[str, list[Part]] = {}
        for part in self._parts:
            self._nodes.setdefault(part.set_name, []).append(part)
            self._inside.setdefault(part.set_name, []).append(part)
        for set_need in reversed(structure.sets):
            self._nodes.setdefault(set_need.set_name, []).append(set_need)
            self._inside.setdefault(set_need.set_name, []).extend(self._inside[set_need.name])

    def place(self) -> Space | None:
        """Place the gang in the first space that holds it; None: nothing of it is placed."""
        attempt, structure = self._attempt, self._structure
        failed_spaces = attempt.request.failed_spaces
        whole = Part(
            attempt.groups,
            attempt.need.quorum,
            attempt.need.minima,
            structure.topology,
            structure.near,
        )
        for space in attempt.spaces(whole, attempt.base, home=structure.home):
            place = space.level, space.domain
            if failed_spaces is not None and place in failed_spaces:
                attempt.budget_exceeded |= failed_spaces[place]
                continue
            before, attempt.budget_exceeded = attempt.budget_exceeded, False
            if self._fill(space):
                self._grow(whole, space)
                if attempt.placed:
                    return space
            self._undo_all()
            if failed_spaces is not None:
                failed_spaces[place] = attempt.budget_exceeded
            attempt.budget_exceeded |= before
            if attempt.count_failure():
                break
        return None

    def place_all(self, parts: Sequence[Part], base: Bools | None) -> bool:
        """Place all of these sub-gangs, each in a space that leaves enough to the rest; False:
        nothing of them is placed.
        """
        return any(True for _ in self._ways(parts, base))

    def _fill(self, space: Space) -> bool:
        """Place all minima inside a space."""
        attempt, structure, need = self._attempt, self._structure, self._attempt.need
        *sub_gangs, rest = attempt.parts
        if not sub_gangs:
            return attempt.place_quorum(rest, space.mask)
        if not structure.sets:
            self._place_sub_gangs(space)
        elif not self._place_outermost(space.mask):
            return False
        rest.minima = tuple(
            (role, count - placed)
            for role, count in need.minima
            if (placed := placed_of(attempt.groups, role)) < count
        )
        least = sum(count for _, count in rest.minima)
        self._enlarge(sub_gangs, need.quorum - attempt.placed - rest.wanted)
        rest.quorum = max(least, need.quorum - attempt.placed)
        if not attempt.place_quorum(rest, space.mask):
            return False
        return all(
            sum(part.whole for part in sub_gangs if part.policy == policy) >= count
            for policy, count in structure.sub_minima
        )

    def _place_sub_gangs(self, space: Space) -> None:
        """Place sub-gangs that are in no sets, as many as fit."""
        attempt = self._attempt
        ordered = _largest_first(self._parts)
        for part in ordered:
            if attempt.placed + part.quorum <= self._members_max:
                self.place_all([part], space.mask)
        if all(part.whole for part in ordered) or not self._is_searchable():
            return
        if _all_needed(ordered, attempt.need):
            # One that was placed first may be in the way of another of a different size.
            self._undo_all()
            self.place_all(ordered, space.mask)

    def _enlarge(self, sub_gangs: list[Part], lacking: int) -> None:
        """Place members of sub-gangs above their quorums: the gang's quorum needs them, because it
        has too few members outside its sub-gangs.
        """
        attempt = self._attempt
        for part in sub_gangs:
            for group in scarcest_first(part.groups) if part.whole else ():
                before = group.placed
                attempt.place(part, group, min(group.left, lacking), part.space.mask)
                lacking -= group.placed - before

    def _grow(self, whole: Part, space: Space) -> None:
        """Place extras: those of a sub-gang in its own domain and the wider ones inside the gang's,
        those of the gang in ever wider domains.
        """
        attempt = self._attempt
        topology = attempt.session.node_capacity.topology
        rest = attempt.parts[-1]
        masks: list[Bools | None] = [space.mask]
        if whole.topology is not None:
            masks += wider(topology.levels(whole.topology), space, attempt.base)
        for part in self._parts:
            if not part.whole:
                continue
            attempt.place_extras(part, part.space.mask)
            if part.topology is not None:
                levels = topology.levels(part.topology)
                for mask in wider(levels, part.space, part.around):
                    attempt.place_extras(part, mask)
        for mask in masks:
            if not rest.groups or attempt.placed >= self._members_max:
                return
            attempt.place_extras(rest, mask)

    def _undo_all(self) -> None:
        attempt = self._attempt
        attempt.undo(0, attempt.groups)
        self._places.clear()
        for part in self._parts:
            part.whole = False

    def _is_searchable(self) -> bool:
        """Whether there are few enough sub-gangs and sets to search for further domains."""
        return len(self._parts) + len(self._structure.sets) <= _SEARCHED_MAX

    def _place_outermost(self, base: Bools | None) -> bool:
        """Place the outermost set inside a mask; False: nothing of it is placed."""
        outermost = self._structure.sets[0]
        for least in (False, True):
            mark = self._attempt.statement.checkpoint()
            if self._place_parts(outermost, base, least=least) >= outermost.missing:
                self._add_parts(outermost, base)
                return True
            self._undo(mark, outermost)
            if self._attempt.failures_left <= 0:
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
            set_need.topology is not None for set_need in self._structure.sets
        )
        return has_domains and self._is_searchable()

    def _needed(self, set_need: SetNeed) -> list[_Node]:
        """The smallest parts of a set with which it is complete, the largest of them first."""
        lacking = [each for each in self._nodes[set_need.name] if _is_incomplete(each)]
        return _largest_first(_smallest_first(lacking)[: set_need.missing])

    def _ways(self, parts: Sequence[_Node], base: Bools | None) -> Iterator[None]:
        """Each way to place all of these parts inside a mask. They stay placed until the next way
        is asked for; at the end nothing of them is placed.
        """
        if not parts:
            yield
            return
        first, *others = parts
        for space in self._spaces(first, base):
            mark = self._attempt.statement.checkpoint()
            for _ in self._ways_inside(first, space, base):
                yield from self._ways(others, base)
            self._undo(mark, first)
            if self._attempt.count_failure():
                return

    def _ways_inside(self, child: _Node, space: Space, base: Bools | None) -> Iterator[None]:
        """Each way to place one part in one of its spaces."""
        if isinstance(child, Part):
            if self._attempt.place_quorum(child, space.mask):
                child.space, child.around, child.whole = space, base, True
                yield
            return
        self._places[child.name] = space.mask
        yield from self._ways(self._needed(child), space.mask)

    def _spaces(self, child: _Node, base: Bools | None) -> Iterable[Space]:
        if isinstance(child, Part):
            return self._attempt.spaces(child, base)
        groups = [group for part in self._inside[child.name] for group in part.groups]
        whole = Part(groups, child.quorum, topology=child.topology, near=child.near)
        return self._attempt.spaces(whole, base)

    def _place_set(self, set_need: SetNeed, base: Bools | None, *, least: bool) -> bool:
        """Place a set in the first space that holds enough of it; False: nothing of it is placed.
        Arguments as for `_place_parts`.
        """
        for space in self._spaces(set_need, base):
            mark = self._attempt.statement.checkpoint()
            if self._place_parts(set_need, space.mask, least=least) >= set_need.missing:
                self._places[set_need.name] = space.mask
                return True
            self._undo(mark, set_need)
            if self._attempt.count_failure():
                break
        return False

    def _place_parts(self, set_need: SetNeed, base: Bools | None, *, least: bool) -> int:
        """Place parts of a set inside a mask, each whole or not at all.

        Args:
            set_need: The set.
            base: The mask; None: all nodes.
            least: Whether to place as few parts as the set needs, the smallest ones, instead of
                all that fit, the largest ones first.

        Returns:
            How many parts are complete now that were not before.
        """
        completed = 0
        parts = self._nodes[set_need.name]
        for part in _smallest_first(parts) if least else _largest_first(parts):
            if least and completed >= set_need.missing:
                break
            completed += self._place_one(part, base, least=least)
        return completed

    def _place_one(self, child: _Node, base: Bools | None, *, least: bool) -> bool:
        """Place a sub-gang or a set, if the message has room for it; whether it is complete now and
        was not before.
        """
        if sum(part.placed for part in self._parts) + child.quorum > self._members_max:
            return False
        if isinstance(child, Part):
            return self.place_all([child], base) and child.quorum > 0
        return self._place_set(child, base, least=least) and child.missing > 0

    def _add_parts(self, set_need: SetNeed, base: Bools | None) -> None:
        """Place the parts of a complete set that are not placed yet, as far as they fit."""
        for part in _largest_first(self._nodes[set_need.name]):
            if self._attempt.failures_left <= 0:
                return
            if isinstance(part, Part):
                if not part.whole:
                    self._place_one(part, base, least=True)
                continue
            if part.name not in self._places:
                self._place_one(part, base, least=True)
            if part.name in self._places:
                self._add_parts(part, self._places[part.name])

    def _undo(self, mark: int, child: _Node) -> None:
        """Undo all placements since the mark: those of a sub-gang or a set."""
        if isinstance(child, Part):
            self._attempt.undo(mark, child.groups)
            child.whole = False
            return
        self._places.pop(child.name, None)
        for part in self._nodes[child.name]:
            self._undo(mark, part)


def _largest_first(parts: Iterable[_AnyNode]) -> list[_AnyNode]:
    """Large parts first: small ones fit between them."""
    return sorted(parts, key=lambda part: (-part.quorum, part.name))


def _smallest_first(parts: Iterable[_Node]) -> list[_Node]:
    return sorted(parts, key=lambda part: (part.quorum, part.name))


def _is_incomplete(child: _Node) -> bool:
    return (child.quorum if isinstance(child, Part) else child.missing) > 0


def _all_needed(parts: Sequence[Part], need: Need) -> bool:
    """Whether the gang needs every one of its sub-gangs, and these differ: then they may fit in
    another order of domains.
    """
    kinds = {
        (part.quorum, *((group.role, group.shape.id) for group in part.groups)) for part in parts
    }
    others = sum(count for _, _, count in need.wanted) - min(part.quorum for part in parts)
    return len(kinds) > 1 and others < need.quorum
