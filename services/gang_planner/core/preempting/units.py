"""What a search chooses from: single members above a gang's quorum, and whole gangs."""

from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from services.gang_planner.core.columns import Bools
    from services.gang_planner.core.gangs import Gang
    from services.gang_planner.core.members import Member
    from services.gang_planner.core.preempting.budgets import Budgets
    from services.gang_planner.core.preempting.sources import Source

Cost: TypeAlias = tuple[int, ...]
"""The harm of evicting pods, the lower the better; `cost_of` makes it."""


class Unit:
    """Pods that are evicted together, or not at all."""

    __slots__ = ("freed", "gang", "members", "source", "whole")

    def __init__(self, source: "Source", members: "tuple[Member, ...]", *, whole: bool) -> None:
        self.source = source
        self.gang: Gang = source.gang
        self.members = members
        #: All that is bound of its gang.
        self.whole = whole
        #: What it leaves: amounts by resource row, per node's slot.
        self.freed: dict[int, dict[int, int]] = {}
        for member in members:
            amounts = self.freed.setdefault(member.slot, {})
            for row, amount in member.shape.pairs:
                amounts[row] = amounts.get(row, 0) + amount

    @property
    def breaks(self) -> bool:
        """Whether a gang of more than one is brought below its quorum by it."""
        if not self.gang.size_known:
            return self.whole and len(self.members) > 1
        return self.whole and self.gang.min_member > 1


def units_of(
    sources: "Iterable[Source]", *, whole: bool, breaking: bool, usable: "Bools | None"
) -> list[Unit]:
    """Everything that may be chosen, those that go first first; on nodes that are `usable` only
    (None: anywhere).

    Args:
        sources: Where from.
        whole: Gangs, too, that end by it.
        breaking: Of more than one member, too.
        usable: One flag per slot.
    """
    found: list[Unit] = []
    for source in sources:
        if source.surplus:
            found += [
                Unit(source, (member,), whole=False)
                for member in source.members
                if usable is None or usable[member.slot]
            ]
        rest = source.surplus < len(source.members)
        if whole and source.whole and rest:
            unit = Unit(source, source.members, whole=True)
            reachable = usable is None or any(usable[slot] for slot in unit.freed)
            if reachable and (breaking or not unit.breaks):
                found.append(unit)
    found.sort(key=_place)
    return found


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

    def plus(self, units: "Iterable[Unit]") -> "Lost":
        """The same and these."""
        found = Lost()
        found.count, found.whole, found.roles = self.count, self.whole, dict(self.roles)
        for unit in units:
            found.add(unit)
        return found

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


def cost_of(taken: "Sequence[Unit]", budgets: "Budgets", now_ms: int) -> Cost:
    """What evicting all of it costs, the lower the better: budgets violated, gangs broken, the
    highest priority among them, pods, gangs that end, work lost (in seconds of pods), restarts.
    """
    members = members_of(taken)
    started = [one.pod.started_ms or now_ms for one in members]
    return (
        budgets.violations(members),
        len({one.gang.key for one in taken if one.breaks}),
        max((one.gang.priority for one in taken), default=-(2**62)),
        len(members),
        sum(one.whole for one in taken),
        sum(max(now_ms - at_ms, 0) // 1000 for at_ms in started),
        sum(one.pod.restarts for one in members),
    )


def _place(unit: Unit) -> tuple[bool, int, int, bool, int, str, str, str]:
    """Those that cost less first; names decide between equals."""
    first = unit.members[0].pod
    return (
        unit.breaks,
        unit.gang.priority,
        len(unit.members),
        unit.whole,
        -first.started_ms,
        unit.gang.namespace,
        unit.gang.name,
        first.name,
    )
