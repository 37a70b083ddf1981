"""Turns a committed Statement into a `GangDecision`: which member goes to which node, and how it is
to be carried out.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

from services.gang_planner.core.configuring.settings import preflight_always
from services.gang_planner.core.decisions import attaching, inflight
from services.gang_planner.core.placement.statement import Allocation
from services.gang_planner.core.placement.sub_gangs import part_of
from services.gang_planner.core.queueing.backlog import Need
from services.gang_planner.core.recovery.debts import Debt
from services.gang_planner.core.recovery.release_costs import release_cost
from services.gang_planner.core.tables.gangs import Gang
from services.gang_planner.core.tables.members import Member, placing_order
from services.gang_planner.core.telling.assessing import (
    DECISION_BYTES_MAX,
    binding_bytes,
    refused_members,
)
from services.gang_planner.state import State
from shared.contracts.decisions import Binding, Cycle, GangDecision
from shared.contracts.identity import gang_trace_id

#: Gangs up to this size need no look at their names: they fit into a message with the longest ones
#: there can be.
ALWAYS_FIT: Final = 1_000

Turns: TypeAlias = tuple[str, int, Iterator[Sequence[int]]]
"""(role, shape id, for each gang in turn a slot for each of its members)."""


def members_max(state: State, gang: Gang, need: Need) -> int:
    """How many members one decision may hold so that it stays below the size of a message."""
    wanted = sum(count for _, _, count in need.wanted)
    shapes = state.shapes.entries
    if wanted <= ALWAYS_FIT and not any(shapes[one].attached for _, one, _ in need.wanted):
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
    placed: Sequence[tuple[Member, int]],
    cycle: Cycle,
    *,
    fills: Sequence[Debt] = (),
    domain: str = "",
    preemption: int = 0,
    charged: bool = False,
) -> GangDecision:
    """Assume these members on their nodes, and count the attempt; `fills` are the debts that end
    with it, `domain` the topology domain that all of it is in, `preemption` the eviction whose room
    it takes over; `charged`: its queue has been charged already.
    """
    history = gang.history
    history.attempt += 1
    history.known_as = gang.gang_id
    domain = "" if history.started else domain
    history.home = domain or history.home
    names = state.nodes.names
    bindings = [
        Binding(
            uid=(pod := member.pod).uid, namespace=pod.namespace, name=pod.name, node=names[slot]
        )
        for member, slot in placed
    ]
    gang.latest = tuple(bindings)
    choices = attaching.choices_of(state, placed)
    decision = GangDecision(
        gang_id=gang.gang_id,
        gang=gang.full_name,
        dialect=gang.group.dialect if gang.group is not None else "",
        epoch=state.epoch,
        attempt=history.attempt,
        bindings=gang.latest,
        quorum=need.quorum,
        preflight=_preflight(gang, placed, always=preflight_always(gang, state.defaults)),
        why=_why(need, placed, fills),
        trace_id=gang_trace_id(gang.trace_root, history.attempt),
        first_seen_ms=history.first_seen_ms,
        cycle=cycle,
        traceparent=_traceparent(gang, placed),
        fills=tuple(debt.uid for debt in fills),
        volumes=choices.volumes,
        devices=choices.devices,
        preemption=preemption,
        domain=domain,
    )
    history.full_name = decision.gang
    inflight.adopt(state, gang, decision, placed, charged=charged)
    return decision


def assign(state: State, gang: Gang, allocations: Iterable[Allocation]) -> list[tuple[Member, int]]:
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
    order = state.nodes.topology.order(gang.group.topology if gang.group is not None else None)
    refused = refused_members(gang) if gang.history.bad else set[str]()
    placed: list[tuple[Member, int]] = []
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
        placed.extend(zip(members, expanded, strict=False))
    return placed


def assign_all(gang: Gang, turns: Iterable[Turns]) -> list[tuple[Member, int]]:
    """As `assign`, where all that waits of these roles and shapes has a node, the nodes are in
    order, and it is this gang's turn.
    """
    placed: list[tuple[Member, int]] = []
    for role, shape_id, slots in turns:
        members: Collection[Member] = gang.waiting[role, shape_id].values()
        if len(members) > 1:
            members = sorted(members, key=placing_order)
        placed += zip(members, next(slots), strict=True)
    return placed


def _group_place(
    item: tuple[tuple[str, int, str], dict[int, int]],
) -> tuple[str, int, str]:
    return item[0]


def _preflight(gang: Gang, placed: Sequence[tuple[Member, int]], *, always: bool) -> bool:
    """Prove all before binding any: where half a gang would have to be released, and that costs
    something, or has been tried in vain.

    A single binding is whole or nothing by itself, and of a started gang each member counts alone.
    """
    if len(placed) < 2 or gang.history.started:
        return False
    if always or gang.history.attempt > 1:
        return True
    owner = placed[0][0].pod.owner
    if release_cost(owner) != "nothing":
        return True
    # Members of one gang have one owner, nearly always.
    others = [one.pod.owner for one, _ in placed if one.pod.owner != owner]
    return any(release_cost(other) != "nothing" for other in others)


def _traceparent(gang: Gang, placed: Sequence[tuple[Member, int]]) -> str:
    if gang.group is not None and gang.group.traceparent:
        return gang.group.traceparent
    for member, _ in placed:
        if member.pod.traceparent:
            return member.pod.traceparent
    return ""


def _why(need: Need, placed: Sequence[tuple[Member, int]], fills: Sequence[Debt]) -> str:
    extras = len(placed) - need.quorum
    if fills:
        others = f", and {len(fills) - 1} other lost members" if len(fills) > 1 else ""
        return f"{len(placed)} members in place of lost ones: {fills[0].message}{others}"
    nodes = len({slot for _, slot in placed})
    if not need.quorum:
        return f"{len(placed)} members placed one by one on {nodes} nodes"
    more = f" and {extras} above it" if extras else ""
    return f"quorum of {need.quorum}{more} placed together on {nodes} nodes"
