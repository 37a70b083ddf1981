"""What a search chooses from: single members above a gang's quorum, and whole gangs."""

from typing import TYPE_CHECKING, Final, TypeAlias

from services.gang_planner.core.state.member_states import task_priority

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from services.gang_planner.core.preemption.disruption_budgets import Budgets
    from services.gang_planner.core.preemption.sources import Source
    from services.gang_planner.core.state.gangs import Gang, Member

Cost: TypeAlias = tuple[int, ...]
"""The harm of evicting pods, the lower the better; `cost_of` makes it."""

Place: TypeAlias = tuple[bool, int, int, bool, int, int, str, str, int, str]
"""A unit's place among those that could go."""

#: Below every priority.
_NO_MATTER: Final = -(2**62)


class Unit:
    """Pods that are evicted together, or not at all."""

    __slots__ = (
        "breaks",
        "freed",
        "gang",
        "importance",
        "kind",
        "members",
        "place",
        "source",
        "whole",
    )

    def __init__(self, source: "Source", members: "tuple[Member, ...]", *, whole: bool) -> None:
        self.source = source
        self.gang: Gang = source.gang
        self.members = members
        #: All that is bound of its gang.
        self.whole = whole
        #: A gang of more than one is brought below its quorum by it.
        self.breaks = whole and (
            self.gang.min_member > 1 if self.gang.size_known else len(members) > 1
        )
        #: What it leaves: amounts by resource row, per node's slot.
        self.freed: dict[int, dict[int, int]] = {}
        for member in members:
            amounts = self.freed.setdefault(member.slot, {})
            for row, amount in member.shape.pairs:
                amounts[row] = amounts.get(row, 0) + amount
        #: Equal for units of one pod that leave the same on their node.
        self.kind = members[0].shape.id if len(members) == 1 else -id(self)
        first = members[0].pod
        #: How much the one that counts most counts among those of its gang.
        self.importance = max(task_priority(member.pod) for member in members)
        #: Those that cost less go first; between equals the last of their rank, and names, decide.
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
        """What it leaves on all nodes together, by resource row."""
        return amounts_of(self.members)


def units_of(source: "Source", *, whole: bool) -> "Iterator[Unit]":
    """Everything that may be chosen of a gang.

    Args:
        source: The gang.
        whole: All of it, too, if it ends by that.
    """
    if source.surplus:
        for member in source.members:
            yield Unit(source, (member,), whole=False)
    if whole and source.whole and source.surplus < len(source.members):
        yield Unit(source, source.members, whole=True)


class Lost:
    """What was chosen of one gang, counted."""

    __slots__ = ("count", "roles", "whole")

    def __init__(self) -> None:
        self.count = 0
        #: All that is bound of it.
        self.whole = 0
        self.roles: dict[str, int] = {}

    def add(self, unit: Unit, by: int = 1) -> None:
        """One unit more, or (-1) less."""
        if unit.whole:
            self.whole += by
            return
        self.count += by
        if unit.source.role_surplus:
            role = unit.members[0].pod.role
            self.roles[role] = self.roles.get(role, 0) + by

    def allows(self, unit: Unit) -> bool:
        """Whether the gang may lose a unit beside that: no more than its surplus, or all."""
        if self.whole:
            return False
        if unit.whole:
            return True
        if self.count >= unit.source.surplus:
            return False
        role = unit.members[0].pod.role
        return all(
            name != role or self.roles.get(role, 0) < most
            for name, most in unit.source.role_surplus
        )


NOTHING_LOST: Final = Lost()


def members_of(taken: "Iterable[Unit]") -> "list[Member]":
    """Their pods, each once."""
    found = {member.pod.uid: member for unit in taken for member in unit.members}
    return list(found.values())


def amounts_of(members: "Iterable[Member]") -> dict[int, int]:
    """What pods ask for together, by resource row."""
    amounts: dict[int, int] = {}
    for member in members:
        for row, amount in member.shape.pairs:
            amounts[row] = amounts.get(row, 0) + amount
    return amounts


def cost_of(taken: "Sequence[Unit]", budgets: "Budgets", now_ms: int) -> Cost:
    """What evicting all of it costs, the lower the better: budgets violated, gangs broken, the
    highest priority among them, pods, gangs that end, the importance of members, work lost (in
    seconds of pods), restarts.
    """
    members = members_of(taken) if len(taken) > 1 else taken[0].members if taken else ()
    return (
        budgets.violations(members),
        len({one.gang.key for one in taken if one.breaks}),
        max((one.gang.priority for one in taken), default=_NO_MATTER),
        len(members),
        sum(one.whole for one in taken),
        max((one.importance for one in taken), default=_NO_MATTER),
        sum(work_s(one, now_ms) for one in members),
        sum(one.pod.restarts for one in members),
    )


def work_s(member: "Member", now_ms: int) -> int:
    """Seconds for which a pod has run: what it has done since is lost."""
    return max(now_ms - (member.pod.started_ms or now_ms), 0) // 1000


def in_order(unit: Unit) -> Place:
    """A key that sorts units by their place."""
    return unit.place
