"""The parts in which one attempt places a gang: its sub-gangs, and all other members."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from services.gang_planner.core.placement.domains import Space
from services.gang_planner.core.state.columns import Bools
from services.gang_planner.core.state.devices.demand import ClaimNeed
from services.gang_planner.core.state.needs import NO_SUB_GANG
from services.gang_planner.core.state.pod_shapes import ShapeEntry, stand_in
from shared.model.objects import NetworkTopology


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
        alike = sorted(self.shape.alike, key=lambda one: one.order)
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
    space: Space = field(default_factory=lambda: Space(None))
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


def placed_of(groups: Iterable[Group], role: str) -> int:
    """How many members of a role are placed."""
    return sum(group.placed for group in groups if group.role == role)


def scarcest_first(groups: Iterable[Group]) -> list[Group]:
    """The order in which groups are placed: the gang's own order, then the hardest to place."""
    return sorted(groups, key=lambda one: (one.turn, *one.plenty))
