"""One attempt to place a gang: its parts, and how one part is placed, its quorum whole or nothing,
then as many of its other members as fit.

The parts of a gang are its sub-gangs, and last all other members (`parts_of`). A part has a few
*groups*, each a role and a shape. Its quorum is placed greedily: every group gets a target (its
role's minimum first, the rest for the groups that fit most easily), targets are placed scarcest
group first, and shortfalls are made up by other groups. If that fails, nodes are filled up one
after the other, which leaves more nodes to the next shape; then an exact search with a budget is
made (`exact_search`). One group is placed exactly whenever it fits.
"""

from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from services.gang_planner.core.framework.statement import Allocation, Statement
from services.gang_planner.core.placement.domains import Space, find_spaces
from services.gang_planner.core.placement.exact_search import GroupRequest, search
from services.gang_planner.core.placement.members import MembersRequest, place_members
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state.claim_ledger import Key
from services.gang_planner.core.state.columns import Bools, Ints, add_amounts
from services.gang_planner.core.state.devices.demand import ClaimNeed
from services.gang_planner.core.state.needs import (
    NO_SUB_GANG,
    NOTHING_SAID,
    Need,
    Wanted,
)
from services.gang_planner.core.state.pod_shapes import ShapeEntry, stand_in
from services.gang_planner.core.state.queues import QueueEntry
from shared.model.objects import NetworkTopology

if TYPE_CHECKING:
    from services.gang_planner.core.state.devices.allocation_search import Problem
    from services.gang_planner.core.state.node_capacity import Alike

#: Failed domains after which an attempt ends: each costs as much as a gang that does not fit.
_FAILURES_MAX: Final = 64
#: A domain in which the exact search ended by its budget counts as this many: four at most.
_EXCEEDED_COST: Final = 16
#: Cells of the exact search that cost as much as a node column.
_CELLS_PER_COLUMN: Final = 10
_ALL_NODES: Final = Space(None)


@dataclass(slots=True)
class Group:
    """Members of one role and shape during one attempt."""

    role: str
    shape: ShapeEntry
    wanted: int
    #: How many fit alone, at most `wanted`.
    fit: int
    placed: int = 0
    target: int = 0
    #: Priority: when not all fit, the higher is placed first.
    rank: int = 0
    #: Its turn by the gang's own order of roles.
    turn: int = 0
    #: The needs of each member's own ResourceClaims, if numbers of devices decide them; (): it has
    #: no claims; None: more than numbers decides.
    needs: tuple[ClaimNeed, ...] | None = ()

    @property
    def shapes(self) -> tuple[ShapeEntry, ...]:
        """The shapes of its members, each once."""
        return self.shape.alike or (self.shape,)

    def put_last_first(self, count: int) -> None:
        """Place this many of its members that come last before its other members. None is placed.

        So it would be if each were a group, because targets go to the last of equal groups.
        """
        alike = sorted(self.shape.alike, key=lambda shape: shape.order)
        if count < len(alike):
            self.shape = stand_in([*alike[-count:], *alike[:-count]], self.shape.counted)

    def first(self, count: int) -> ShapeEntry:
        """The shape of its first members, so many."""
        if count >= len(self.shape.alike):
            return self.shape
        return stand_in(self.shape.alike[:count], self.shape.counted)

    @property
    def next_shape(self) -> ShapeEntry:
        """The shape of its members that are not placed."""
        if not self.placed or not self.shape.alike:
            return self.shape
        return stand_in(self.shape.alike[self.placed :], self.shape.counted)

    @property
    def left(self) -> int:
        return self.wanted - self.placed

    @property
    def plenty(self) -> tuple[int, str, bytes]:
        """How easily it fits; role and shape decide between equals, not the order of arrival."""
        return self.fit * 1000 // max(self.wanted, 1), self.role, self.shape.order


@dataclass(slots=True)
class Part:
    """Members that are placed together, or not at all up to their quorum."""

    groups: list[Group]
    quorum: int
    minima: tuple[tuple[str, int], ...] = ()
    topology: NetworkTopology | None = None
    near: tuple[str, ...] = ()
    #: The sub-gang, and the policy that makes it; None: it is no sub-gang.
    name: str = NO_SUB_GANG
    policy: str | None = None
    #: The set that it is in; "": its gang has no sets.
    set_name: str = ""
    #: Where its quorum was placed, and the space around, of its set or its gang.
    space: Space = _ALL_NODES
    around: Bools | None = None
    whole: bool = False
    #: Nodes are filled up one after the other: it did not fit otherwise.
    packed: bool = False

    @property
    def placed(self) -> int:
        return sum(group.placed for group in self.groups)

    @property
    def wanted(self) -> int:
        return sum(group.wanted for group in self.groups)


def parts_of(session: Session, need: Need) -> list[Part]:
    """The sub-gangs of a need, and last the part with all other members."""
    structure = need.structure or NOTHING_SAID
    shared = _shared_claims(session, need)
    left = {(role, shape_id): count for role, shape_id, count in need.wanted}
    parts: list[Part] = []
    for sub in structure.sub_gangs:
        for role, shape_id, count in sub.wanted:
            left[role, shape_id] -= count
        parts.append(
            Part(
                _groups(session, sub.wanted, shared),
                sub.quorum,
                topology=sub.topology,
                near=sub.near,
                name=sub.part,
                policy=sub.policy,
                set_name=sub.set_name,
            )
        )
    rest = [(role, shape_id, count) for (role, shape_id), count in left.items() if count]
    ranks = need.ranks if need.ranks and not parts else (0,) * len(rest)
    last = Part(_groups(session, rest, shared, ranks), need.quorum, need.minima)
    if structure.tasks is not None:
        for group in last.groups:
            group.turn = structure.tasks.turn(group.role)
    return [*parts, last]


def _groups(
    session: Session,
    wanted: Sequence[Wanted],
    shared: AbstractSet[Key],
    ranks: Sequence[int] = (),
) -> list[Group]:
    """Groups by role and shape. Members that differ only in the names of their claims are one
    group, unless one of these claims is shared.
    """
    entries = session.shapes.entries
    shapes = [entries[shape_id] for _, shape_id, _ in wanted]
    similar = session.node_capacity.alike(shapes)
    #: Role, rank, what the members have in common, how many they are, and their shapes.
    by_kind: dict[Hashable, tuple[str, int, Alike | None, int, list[ShapeEntry]]] = {}
    latest: tuple[str, int, Alike] | None = None
    members: list[ShapeEntry] = []
    for at, (role, _, count) in enumerate(wanted):
        shape, rank, alike = shapes[at], ranks[at] if ranks else 0, similar[at]
        if alike is None or count > 1 or not shared.isdisjoint(shape.device_keys):
            by_kind[at] = role, rank, None, count, [shape]
            continue
        if latest is None or latest[2] is not alike or latest[:2] != (role, rank):
            latest = role, rank, alike
            members = by_kind.setdefault(latest, (*latest, 1, []))[4]
        members.append(shape)
    groups: list[Group] = []
    for role, rank, alike, count, same in by_kind.values():
        shape = same[0]
        needs: Problem | None = None if shape.attached else ()
        if alike is not None:
            count, needs = len(same), alike[1]
        if len(same) > 1:
            same.sort(key=lambda shape: shape.order)
            shape = stand_in(same, alike)
        fitting = min(count, session.total(shape))
        groups.append(Group(role, shape, count, fitting, rank=rank, needs=needs))
    return groups


def _shared_claims(session: Session, need: Need) -> set[Key]:
    """The ResourceClaims that several of the gang's waiting shapes name."""
    seen: set[Key] = set()
    shared: set[Key] = set()
    for _, shape_id, _ in need.wanted if need.attached else ():
        for key in session.shapes.entries[shape_id].device_keys:
            (shared if key in seen else seen).add(key)
    return shared


def placed_of(groups: Iterable[Group], role: str) -> int:
    """How many members of a role are placed."""
    return sum(group.placed for group in groups if group.role == role)


def scarcest_first(groups: Iterable[Group]) -> list[Group]:
    """The order in which groups are placed: the gang's own order, then the hardest to place."""
    return sorted(groups, key=lambda group: (group.turn, *group.plenty))


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacementRequest:
    """A gang to place."""

    queue: QueueEntry
    need: Need
    members_max: int
    #: Slots of nodes that are left to other queues; None: none.
    withheld: Ints | None = None
    #: Spaces that are known not to hold the need; those that turn out not to are added. None: every
    #: space is tried, and nothing is remembered.
    failed_spaces: dict[tuple[int, int], bool] | None = None


class Attempt:
    """The parts of one gang, and the statement that they are placed into."""

    def __init__(self, session: Session, request: PlacementRequest) -> None:
        self.session = session
        self.request = request
        self.need = request.need
        avoid = session.node_capacity.nodes.slots_of(self.need.avoid)
        if request.withheld is not None:
            avoid = np.concatenate([avoid, request.withheld])
        self._avoid = avoid
        self.statement = Statement(session.node_capacity, request.queue)
        self.parts = parts_of(session, self.need)
        #: Nodes that its queue and its group may use; None: all.
        self.base = session.allowed_nodes(request.queue, self.need.structure)
        self.groups = [group for part in self.parts for group in part.groups]
        #: How many more domains may be tried without success.
        self.failures_left = _FAILURES_MAX
        #: A search ended by its budget: if nothing was placed, whether the gang fits is not known.
        self.budget_exceeded = False
        #: How many members of the quorum do not fit even if each shape had all nodes for itself.
        self.missing = max(self.need.quorum, 1) - sum(group.fit for group in self.groups)

    @property
    def placed(self) -> int:
        return sum(group.placed for group in self.groups)

    @property
    def sub_gangs(self) -> list[Part]:
        """Its sub-gangs; `whole` says which are placed."""
        return self.parts[:-1]

    def count_failure(self) -> bool:
        """Count a failed domain; whether the attempt must end."""
        self.failures_left -= 1
        self.budget_exceeded = self.budget_exceeded or self.failures_left <= 0
        return self.failures_left <= 0

    def place_anywhere(self) -> bool:
        """Place a gang that demands nothing of nodes beyond numbers: quorum and extras."""
        (part,) = self.parts
        if not self.place_quorum(part, self.base):
            return False
        self.place_extras(part, None)
        return self.placed > 0

    def spaces(self, part: Part, base: Bools | None, *, home: str | None = None) -> Iterable[Space]:
        """Where a part may be placed inside `base`, `home` first; without a topology one space, all
        of `base`.
        """
        if part.topology is None:
            return (Space(base),)
        return find_spaces(
            self.session,
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
                here = int(self.session.fits.counts(group.shape)[within].sum())
                group.fit = min(group.wanted, here)
        if _cannot_fit(part) or self._exceeds_free(part, within):
            return False
        mark = self.statement.checkpoint()
        for packed in (False, True):
            part.packed = packed
            if self._place_greedily(part, within):
                return True
            self.undo(mark, part.groups)
            if len(part.groups) == 1:
                return False
        part.packed = False
        return self._search(part, within) or self._place_by_nodes(part, within)

    def place_extras(self, part: Part, within: Bools | None) -> None:
        """Place members above the quorum as far as they fit, those of higher rank first."""
        most = self.request.members_max - self.placed
        growing = [group for group in part.groups if group.left]
        for group in sorted(scarcest_first(growing), key=lambda group: -group.rank):
            before = group.placed
            self.place(part, group, min(group.left, most), within)
            most -= group.placed - before

    def place(self, part: Part, group: Group, wanted: int, within: Bools | None) -> None:
        """Place up to `wanted` members of a group of a part."""
        if wanted > 0:
            group.placed += place_members(
                self.session,
                MembersRequest(
                    statement=self.statement,
                    role=group.role,
                    shape=group.next_shape,
                    wanted=wanted,
                    avoid=self._avoid,
                    packed=part.packed,
                    within=within,
                    part=part.name,
                    structure=self.need.structure,
                ),
            )

    def undo(self, mark: int, groups: Iterable[Group]) -> None:
        """Undo all placements since the mark: those of these groups."""
        self.statement.rollback(mark)
        for group in groups:
            group.placed = group.target = 0

    def _place_by_nodes(self, part: Part, within: Bools | None) -> bool:
        """Place a part's quorum greedily, the groups that fit on the fewest nodes first, where
        claims are beyond the exact search.
        """
        if all(group.needs is not None for group in part.groups):
            return False
        mark = self.statement.checkpoint()
        counts = [self.session.fits.counts(group.shape) > 0 for group in part.groups]
        nodes = [
            int(np.count_nonzero(fitting if within is None else fitting & within))
            for fitting in counts
        ]
        pairs = zip(nodes, part.groups, strict=True)
        ordered = sorted(pairs, key=lambda pair: (pair[1].turn, pair[0], *pair[1].plenty))
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
            missing = wanted - sum(group.placed for group in groups)
            if missing <= 0:
                return
            self.place(part, group, min(missing, group.left), within)

    def _search(self, part: Part, within: Bools | None) -> bool:
        """Place a part's quorum by the exact search, where the greedy one found nothing."""
        session = self.session
        # The table has an axis for each group but the last, which may be as large as it likes.
        groups = sorted(part.groups, key=lambda group: group.wanted)
        if not _is_searchable(groups):
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
        needs = [group.needs or () for group in groups]
        limits = devices.searches.joint_limits(needs, slots)
        if limits is None:
            return False
        result = search(
            session.node_capacity, request, [fitting[slots] for fitting in counts], slots, limits
        )
        session.work_left -= result.work // _CELLS_PER_COLUMN + len(limits) * len(slots)
        if result.budget_exceeded:
            self.budget_exceeded = True
            self.failures_left -= _EXCEEDED_COST
        mark = self.statement.checkpoint()
        for group, (where, taken) in zip(groups, result.places, strict=False):
            total = int(taken.sum())
            if self.request.queue.headroom(group.shape, total) < total:
                self.undo(mark, part.groups)
                return False
            if total:
                shape = group.first(total)
                self.statement.allocate(Allocation(group.role, shape, where, taken, part.name))
                group.placed = total
                if group.needs and not all(map(devices.is_served, shape.alike or (shape,))):
                    # Claims of pods of other schedulers may have the devices.
                    self.undo(mark, part.groups)
                    return False
        return bool(result.places)

    def _exceeds_free(self, part: Part, within: Bools | None) -> bool:
        """Whether all of a part's members together request more than is free: cheaper to compute
        than a search. For one shape its counts show it.
        """
        if len(part.groups) < 2 or part.wanted != part.quorum:
            return False
        session = self.session
        usable: Bools = np.zeros(session.node_capacity.nodes.size, dtype=np.bool_)
        for group in part.groups:
            usable |= session.fits.counts(group.shape) > 0
        if within is not None:
            usable &= within
        free = session.node_capacity.free.cells[:, : len(usable)][:, usable]
        requested: dict[int, int] = {}
        for group in part.groups:
            add_amounts(requested, group.shape.pairs, group.wanted)
        return any(
            amount > int(np.maximum(free[row], 0).sum()) for row, amount in requested.items()
        )


def _is_searchable(groups: Sequence[Group]) -> bool:
    """Whether these groups compete for nothing but amounts of resources and numbers of devices."""
    return len(groups) > 1 and all(
        group.needs is not None
        and not group.shape.shape.host_ports
        and group.shape.shape.pod_affinity is None
        and not group.shape.shape.spread
        for group in groups
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
    for group in sorted(groups, key=lambda group: (group.rank, *group.plenty), reverse=True):
        if amount <= 0:
            return
        more = max(0, min(group.fit - group.target, amount))
        group.target += more
        amount -= more
