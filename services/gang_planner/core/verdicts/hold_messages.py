"""Messages about holds (member, node, deadline) and about degraded gangs."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from services.gang_planner.core.state.amounts import in_words as amount_in_words
from services.gang_planner.core.state.amounts import listed
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.holds import Hold
from services.gang_planner.core.state.member_states import LEAVING
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import PODS
from services.gang_planner.core.state.titles import title_of
from shared.model.bounded_text import joined
from shared.model.gang_keys import GangKey

#: Maximum number of lost members named in one message; the rest are counted.
_NAMED_MAX: Final = 5
#: Maximum number of nodes named for one reservation; the rest are counted.
_NODES_MAX: Final = 5
_DAY_S: Final = 86_400
#: Reservations that last longer are named to the gangs that wait because of them.
_NAMED_FROM_MS: Final = 60_000


class ReservationOwner(NamedTuple):
    """A gang with a long reservation. Gangs of one owner have the same title."""

    namespace: str
    title: str
    until_ms: int
    key: GangKey


def meaning(holds: Sequence[Hold]) -> tuple[object, ...]:
    """The parts of the holds whose changes are published at once."""
    return tuple((hold.uid, hold.node, hold.until_ms) for hold in holds)


def in_words(holds: Sequence[Hold], names: Sequence[str]) -> str:
    """Describe the holds of a gang, such as `job-worker-1 failed on node-2: capacity for its
    successor is reserved on node-2 until 12:00:05 UTC`, and the reservation for its `minResources`.
    `names` are the names of resources, by row.
    """
    units = [hold for hold in holds if hold.reserving]
    holds = [hold for hold in holds if not hold.reserving]
    said = [_one(hold) for hold in holds[:_NAMED_MAX]]
    if len(holds) > _NAMED_MAX:
        said.append(f"{len(holds) - _NAMED_MAX} more members have holds")
    if units:
        said.append(_units_in_words(units, names))
    return "; ".join(said)


def degraded_in_words(gang: Gang, holds: Sequence[Hold], names: Sequence[str]) -> str:
    """A message with the members that a started gang lacks, and its holds."""
    short = [
        f"{gang.have(role)} of {count} {role}"
        for role, count in gang.role_minima
        if gang.have(role) < count
    ]
    roles = f" ({joined(short, ', ')})" if short else ""
    left = f"{gang.have()} of the {max(gang.min_member, 1)} members that it needs are left{roles}"
    if holds:
        return f"{left}; {in_words(holds, names)}"
    if leaving := gang.counts[LEAVING]:
        still = (
            "1 member still terminates" if leaving == 1 else f"{leaving} members still terminate"
        )
        return f"{left}; {still}, and Tutti reserves their capacity after that"
    return f"{left}, and no capacity is reserved for the other members"


def owners_of_reservations(state: State) -> list[ReservationOwner]:
    """The gangs with long reservations, the latest end of each; sorted. Reservations as long as a
    hold by default pass while their gang is looked up.
    """
    ends: dict[GangKey, tuple[Gang, int]] = {}
    for hold in state.holds.by_uid.values():
        gang = hold.gang if hold.reservation is not None else None
        if gang is not None and hold.until_ms - hold.at_ms > _NAMED_FROM_MS:
            _, until_ms = ends.get(gang.key, (gang, 0))
            ends[gang.key] = gang, max(until_ms, hold.until_ms)
    return sorted(
        ReservationOwner(gang.namespace, title_of(state, gang), until_ms, key)
        for key, (gang, until_ms) in ends.items()
    )


def owners_in_words(owners: Sequence[ReservationOwner], namespace: str) -> str:
    """`team/a until 12:00:05 UTC, and 2 gangs of other namespaces`; only gangs of `namespace` are
    named.
    """
    own = [owner for owner in owners if owner.namespace == namespace]
    said = [f"{owner.title} until {_clock(owner.until_ms)} UTC" for owner in own[:_NAMED_MAX]]
    if len(own) > _NAMED_MAX:
        said.append(f"{len(own) - _NAMED_MAX} more gangs of this namespace")
    if hidden := len(owners) - len(own):
        said.append(
            "1 gang of another namespace" if hidden == 1 else f"{hidden} gangs of other namespaces"
        )
    return listed(said)


def _one(hold: Hold) -> str:
    until = f"until {_clock(hold.until_ms)} UTC"
    if hold.node:
        return f"{hold.message}: capacity for its successor is reserved on {hold.node} {until}"
    return f"{hold.message}: no node has free capacity, its successor is first in line {until}"


def _units_in_words(units: Sequence[Hold], names: Sequence[str]) -> str:
    """The amounts reserved for a gang's `minResources`, their nodes and their deadline."""
    amounts: dict[str, int] = {}
    for hold in units:
        for row, amount in hold.shape.pairs:
            amounts[names[row]] = amounts.get(names[row], 0) + amount
    amounts.pop(PODS, None)
    what = listed([amount_in_words(name, amount) for name, amount in sorted(amounts.items())])
    nodes = sorted({hold.node for hold in units if hold.node})
    more = f" and {len(nodes) - _NODES_MAX} more nodes" if len(nodes) > _NODES_MAX else ""
    where = f" on {', '.join(nodes[:_NODES_MAX])}{more}" if nodes else ""
    until = f"until {_clock(max(hold.until_ms for hold in units))} UTC"
    return f"{what} of its minResources reserved for its later pods{where} {until}"


def _clock(at_ms: int) -> str:
    """The time of day (UTC) as HH:MM:SS."""
    second = at_ms // 1000 % _DAY_S
    return f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
