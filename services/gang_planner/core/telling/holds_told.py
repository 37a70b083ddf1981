"""Words for held room: for whom, where, until when; and for a gang that has none and is short."""

from collections.abc import Sequence
from typing import Final

from services.gang_planner.core.recovery.debts import Debt
from services.gang_planner.core.tables.gangs import Gang
from services.gang_planner.core.tables.members import LEAVING
from services.gang_planner.core.telling import reservation_messages

#: Lost members named in one message; the others are counted.
_NAMED_MAX: Final = 5
_DAY_S: Final = 86_400


def meaning(owed: Sequence[Debt]) -> tuple[object, ...]:
    """What of it is worth a verdict in the cycle in which it changes."""
    return tuple((debt.uid, debt.node, debt.until_ms) for debt in owed)


def in_words(owed: Sequence[Debt], names: Sequence[str]) -> str:
    """What a gang is owed: `job-worker-1 failed on node-2: room for its successor is held on node-2
    until 12:00:05 UTC`; and what is reserved for it. `names` are those of resources, by row.
    """
    units = [debt for debt in owed if debt.reserving]
    owed = [debt for debt in owed if not debt.reserving]
    said = [_one(debt) for debt in owed[:_NAMED_MAX]]
    if len(owed) > _NAMED_MAX:
        said.append(f"{len(owed) - _NAMED_MAX} more members are owed room")
    if units:
        until = f"until {_clock(max(one.until_ms for one in units))} UTC"
        said.append(reservation_messages.reserved_in_words(names, units, until))
    return "; ".join(said)


def degraded_in_words(gang: Gang, owed: Sequence[Debt], names: Sequence[str]) -> str:
    """What a started gang is short of."""
    short = [
        f"{gang.have(role)} of {count} {role}"
        for role, count in gang.role_minima
        if gang.have(role) < count
    ]
    roles = f" ({', '.join(short)})" if short else ""
    left = f"{gang.have()} of the {max(gang.min_member, 1)} members that it needs are left{roles}"
    if owed:
        return f"{left}; {in_words(owed, names)}"
    if leaving := gang.counts[LEAVING]:
        return f"{left}; others are still terminating ({leaving}), then their room is held"
    return f"{left}, and no room is held for the others"


def _one(debt: Debt) -> str:
    until = f"until {_clock(debt.until_ms)} UTC"
    if debt.node:
        return f"{debt.message}: room for its successor is held on {debt.node} {until}"
    return f"{debt.message}: no node has room, its successor is first in line {until}"


def _clock(at_ms: int) -> str:
    """The time of day of an instant."""
    second = at_ms // 1000 % _DAY_S
    return f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
