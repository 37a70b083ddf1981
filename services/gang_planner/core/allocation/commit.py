"""Turns a committed Statement into a `GangDecision`: which member goes to which node, and how it is
to be carried out.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

from services.gang_planner.core.framework.statement import Allocation
from services.gang_planner.core.queueing.decision_size import DECISION_BYTES_MAX, binding_bytes
from services.gang_planner.core.queueing.need import refused_members
from services.gang_planner.core.state import claim_choices, in_flight
from services.gang_planner.core.state.gang_settings import Defaults, preflight_always
from services.gang_planner.core.state.gangs import Gang, Member
from services.gang_planner.core.state.holds import Hold
from services.gang_planner.core.state.members import Seats, placing_order
from services.gang_planner.core.state.needs import Need
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.release_costs import release_cost
from services.gang_planner.core.state.sub_gangs import part_of
from shared.contracts.decisions import Binding, Cycle, GangDecision, ReservedRoom
from shared.contracts.identity import gang_trace_id

#: Gangs up to this size need no look at their names: they fit into a message with the longest ones
#: there can be.
ALWAYS_FIT: Final = 1_000

Turns: TypeAlias = tuple[str, int, Iterator[Sequence[int]]]
"""(role, shape id, for each gang in turn a slot for each of its members)."""


def members_max(state: State, gang: Gang, need: Need) -> int:
    """How many members one decision may hold so that it stays below the size of a message."""
    wanted = sum(count for _, _, count in need.wanted)
    if wanted <= ALWAYS_FIT and not need.attached:
        return wanted
    longest = max(
        binding_bytes(state, member)
        for members in gang.waiting.values()
        for member in members.values()
    )
    return max(need.quorum, min(wanted, DECISION_BYTES_MAX // longest))


def decide(
    state: State,
    gang: Gang,
    need: Need,
    seats: Seats,
    cycle: Cycle,
    *,
    fills: Sequence[Hold] = (),
    domain: str = "",
    preemption: int = 0,
    charged: bool = False,
    reserves: tuple[ReservedRoom, ...] = (),
) -> GangDecision:
    """Assume these members on their nodes, and count the attempt; `fills` are the holds that end
    with it, `domain` the topology domain that all of it is in, `preemption` the eviction whose room
    it takes over; `charged`: its queue has been charged already; `reserves`: the rest of its
    `minResources`.
    """
    history = gang.history
    history.attempt += 1
    history.known_as = gang.gang_id
    domain = "" if history.started else domain
    history.home = domain or history.home
    gang.latest = _bindings(state.nodes.names, seats)
    choices = claim_choices.choices_of(state, seats) if need.attached else claim_choices.NOTHING
    decision = GangDecision(
        gang_id=gang.gang_id,
        gang=gang.full_name,
        dialect=gang.group.dialect if gang.group is not None else "",
        epoch=state.epoch,
        attempt=history.attempt,
        bindings=gang.latest,
        quorum=need.quorum - need.reserved,
        preflight=_preflight(gang, seats.members, state.defaults),
        why=_why(need, seats, fills),
        trace_id=gang_trace_id(gang.trace_root, history.attempt),
        first_seen_ms=history.first_seen_ms,
        cycle=cycle,
        traceparent=_traceparent(gang, seats.members),
        fills=tuple([hold.uid for hold in fills]),
        volumes=choices.volumes,
        devices=choices.devices,
        preemption=preemption,
        domain=domain,
        reserves=reserves,
    )
    history.full_name = decision.gang
    in_flight.adopt(state, gang, decision, seats, charged=charged)
    return decision


def _bindings(names: Sequence[str], seats: Seats) -> tuple[Binding, ...]:
    found: list[Binding] = []
    for member, slot in seats.pairs():
        pod = member.pod
        found.append(Binding(uid=pod.uid, namespace=pod.namespace, name=pod.name, node=names[slot]))
    return tuple(found)


def assign(state: State, gang: Gang, allocations: Iterable[Allocation]) -> Seats:
    """Members in their order to nodes in the order of topology and names: neighbours in rank are
    neighbours on the network.
    """
    per_group: dict[tuple[str, int, str], dict[int, int]] = {}
    for allocation in allocations:
        key = (allocation.role, allocation.shape.id, allocation.part)
        counts = per_group.setdefault(key, {})
        pairs = zip(allocation.slots.tolist(), allocation.counts.tolist(), strict=True)
        for slot, count in pairs:
            counts[slot] = counts.get(slot, 0) + count
    order = state.node_capacity.topology.order(
        gang.group.topology if gang.group is not None else None
    )
    refused = refused_members(gang) if gang.history.bad else set[str]()
    seated: list[Member] = []
    taken: list[int] = []
    for (role, shape_id, part), counts in sorted(per_group.items(), key=_group_place):
        slots = np.fromiter(counts, dtype=np.int64)
        slots = slots[np.argsort(order[slots])]
        expanded = [slot for slot in slots.tolist() for _ in range(counts[slot])]
        waiting = list(gang.waiting[role, shape_id].values())
        if gang.group is not None and gang.group.sub_groups:
            waiting = [one for one in waiting if part_of(gang, one.pod) == part]
        members = sorted(waiting, key=placing_order)
        if refused:
            # Where not all are placed, those that a policy refused are left out.
            members.sort(key=lambda member: member.pod.uid in refused)
        seated += members[: len(expanded)]
        taken += expanded
    return Seats(seated, taken)


def assign_all(gang: Gang, turns: Iterable[Turns]) -> Seats:
    """As `assign`, where all that waits of these roles and shapes has a node, the nodes are in
    order, and it is this gang's turn.
    """
    seated: list[Member] = []
    taken: list[int] = []
    for role, shape_id, slots in turns:
        members: Collection[Member] = gang.waiting[role, shape_id].values()
        if len(members) > 1:
            members = sorted(members, key=placing_order)
        seated += members
        taken += next(slots)
    return Seats(seated, taken)


def _group_place(
    item: tuple[tuple[str, int, str], dict[int, int]],
) -> tuple[str, int, str]:
    return item[0]


def _preflight(gang: Gang, members: Sequence[Member], defaults: Defaults) -> bool:
    """Prove all before binding any: where half a gang would have to be released, and that costs
    something, or has been tried in vain.

    A single binding is whole or nothing by itself, and of a started gang each member counts alone.
    """
    if len(members) < 2 or gang.history.started:
        return False
    if gang.history.attempt > 1 or preflight_always(gang, defaults):
        return True
    owners = [one.pod.owner for one in members]
    if owners.count(owners[0]) == len(owners):
        return release_cost(owners[0]) != "nothing"
    return any(release_cost(one) != "nothing" for one in owners)


def _traceparent(gang: Gang, members: Sequence[Member]) -> str:
    if gang.group is not None and gang.group.traceparent:
        return gang.group.traceparent
    for member in members:
        if member.pod.traceparent:
            return member.pod.traceparent
    return ""


def _why(need: Need, seats: Seats, fills: Sequence[Hold]) -> str:
    members, nodes = len(seats.members), len(set(seats.slots))
    fills = [hold for hold in fills if not hold.reserving]
    if fills:
        others = f", and {len(fills) - 1} other lost members" if len(fills) > 1 else ""
        return f"{members} members in place of lost ones: {fills[0].message}{others}"
    quorum = need.quorum - need.reserved
    if not quorum:
        return f"{members} members placed one by one on {nodes} nodes"
    extras = members - quorum
    more = f" and {extras} above it" if extras else ""
    return f"quorum of {quorum}{more} placed together on {nodes} nodes"
