"""The units of eviction: single members above a gang's quorum, groups of a tree that it can do
without, and whole gangs.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from services.gang_planner.core.state.columns import add_amounts
from services.gang_planner.core.state.gangs import Gang, Member
from services.gang_planner.core.state.member_states import task_priority
from services.gang_planner.core.state.sub_gangs import part_of
from shared.model.invariants import required

Place: TypeAlias = tuple[bool, int, int, bool, int, int, str, str, int, str]
"""A unit's place in the order of eviction."""


class SparePart(NamedTuple):
    """A complete sub-gang in a set that has more of them than it needs."""

    members: tuple[Member, ...]
    set_name: str
    #: How many complete sub-gangs and sets its set has above the number that it needs.
    surplus: int


class VictimSource(NamedTuple):
    """A gang with members that may be evicted."""

    gang: Gang
    #: These members, in the order of eviction.
    members: tuple[Member, ...]
    #: How many of them above its quorum, in all and by kind: role, or sub-gang if it has any.
    surplus: int
    kind_surplus: Mapping[str, int]
    #: All its bound members may be evicted.
    whole: bool
    #: Sub-gangs that may be evicted each by itself.
    parts: tuple[SparePart, ...] = ()

    @property
    def divisible(self) -> bool:
        """Whether smaller units of it than all of it may be evicted."""
        return bool(self.surplus or self.parts)


class Unit:
    """Pods that are evicted together, or not at all."""

    __slots__ = (
        "breaks",
        "freed",
        "gang",
        "importance",
        "kind",
        "members",
        "part",
        "place",
        "source",
        "whole",
    )

    def __init__(
        self,
        source: VictimSource,
        members: tuple[Member, ...],
        *,
        whole: bool,
        part: SparePart | None = None,
    ) -> None:
        self.source = source
        self.gang: Gang = source.gang
        self.members = members
        #: The sub-gang that it is; None: it is none.
        self.part = part
        #: All bound members of its gang.
        self.whole = whole
        #: It brings a gang of more than one member below its quorum.
        self.breaks = whole and (
            self.gang.min_member > 1 if self.gang.size_known else len(members) > 1
        )
        #: The amounts that it frees, by resource row, by slot.
        self.freed: dict[int, dict[int, int]] = {}
        for member in members:
            slot = required(member.slot, member.pod.uid, "is on no node")
            add_amounts(self.freed.setdefault(slot, {}), member.shape.pairs)
        #: Equal for single pods that free the same amounts on their node.
        alike = len(members) == 1 and part is None
        self.kind = members[0].shape.id if alike else -id(self)
        first = members[0].pod
        #: The highest task priority of its members.
        self.importance = max(task_priority(member.pod) for member in members)
        #: Cheaper units go first; between equals the higher index, then the name decides.
        self.place: Place = (
            self.breaks,
            self.gang.priority,
            len(members),
            whole,
            self.importance,
            -first.started_ms,
            self.gang.namespace,
            self.gang.name,
            -first.index,
            first.name,
        )

    @property
    def single(self) -> bool:
        """The last pod of a gang that needs no more than one."""
        return self.whole and not self.breaks and len(self.members) == 1

    @property
    def amounts(self) -> dict[int, int]:
        """The amounts that it frees on all nodes together, by resource row."""
        return amounts_of(self.members)


def units_of(source: VictimSource, *, whole: bool) -> Iterator[Unit]:
    """The units of a gang; `whole`: the whole gang is one, too, if all its bound members may be
    evicted.
    """
    if source.surplus:
        for member in source.members:
            yield Unit(source, (member,), whole=False)
    for part in source.parts:
        yield Unit(source, part.members, whole=False, part=part)
    if whole and source.whole and source.surplus < len(source.members):
        yield Unit(source, source.members, whole=True)


class TakenUnits:
    """How many units of one gang are taken."""

    __slots__ = ("count", "kinds", "parts", "whole")

    def __init__(self) -> None:
        self.count = 0
        #: How often the whole gang is.
        self.whole = 0
        self.kinds: dict[str, int] = {}
        #: Sub-gangs, by their set.
        self.parts: dict[str, int] = {}

    def add(self, unit: Unit, by: int = 1) -> None:
        """Count a unit, or (-1) no longer."""
        if unit.whole:
            self.whole += by
            return
        self.count += by
        if unit.part is not None:
            name = unit.part.set_name
            self.parts[name] = self.parts.get(name, 0) + by
            return
        if unit.source.kind_surplus:
            kind = kind_of(unit.gang, unit.members[0])
            self.kinds[kind] = self.kinds.get(kind, 0) + by

    def allows(self, unit: Unit) -> bool:
        """Whether a unit may be taken besides: no more than the gang's surplus, or all of it."""
        if self.whole:
            return False
        if unit.whole:
            return True
        if unit.part is not None:
            return self.parts.get(unit.part.set_name, 0) < unit.part.surplus
        if self.count >= unit.source.surplus:
            return False
        kind = kind_of(unit.gang, unit.members[0])
        most = unit.source.kind_surplus.get(kind)
        return most is None or self.kinds.get(kind, 0) < most


NOTHING_TAKEN: Final = TakenUnits()


def kind_of(gang: Gang, member: Member) -> str:
    """Members of one kind have a minimum of their own: those of a sub-gang, else of a role."""
    has_parts = gang.group is not None and gang.group.sub_groups
    return part_of(gang, member.pod) if has_parts else member.pod.role


def members_of(taken: Iterable[Unit]) -> list[Member]:
    """Their pods, each once."""
    members = {member.pod.uid: member for unit in taken for member in unit.members}
    return list(members.values())


def amounts_of(members: Iterable[Member]) -> dict[int, int]:
    """What pods request together, by resource row."""
    amounts: dict[int, int] = {}
    for member in members:
        add_amounts(amounts, member.shape.pairs)
    return amounts


def work_s(member: Member, now_ms: int) -> int:
    """Seconds for which a pod has run: this work is lost."""
    return max(now_ms - (member.pod.started_ms or now_ms), 0) // 1000


def in_order(unit: Unit) -> Place:
    """A key that sorts units by their place."""
    return unit.place
