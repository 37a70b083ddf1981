"""Turns a found placement into a `GangDecision`: which member goes to which node, and how it is to
be carried out.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from services.gang_planner.core.allocation import min_resources
from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.framework.statement import Allocation, Statement
from services.gang_planner.core.queueing.need import refused_members
from services.gang_planner.core.state import claim_choices, in_flight
from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.gang_requests import class_of
from services.gang_planner.core.state.gang_settings import Defaults, preflight_always, undisturbed
from services.gang_planner.core.state.gangs import Gang, Member
from services.gang_planner.core.state.holds import Hold
from services.gang_planner.core.state.member_states import ASSUMED, PLACED, RUNNING
from services.gang_planner.core.state.members import Assignments, placing_order
from services.gang_planner.core.state.needs import RESERVED, Need
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.release_costs import release_cost
from services.gang_planner.core.state.sub_gangs import part_of
from shared.contracts.decisions import Binding, GangDecision, ReservedRoom
from shared.contracts.identity import gang_trace_id
from shared.model.gang_keys import scope_of
from shared.model.invariants import required


class FoundPlacement(NamedTuple):
    """A placement of one gang that is not decided yet."""

    #: Open; it holds the capacity.
    statement: Statement
    #: Holds that end with the decision.
    filled: Sequence[Hold] = ()
    #: The topology domain that contains all of it; None: it has no topology.
    domain: str | None = None
    #: Sequence of the eviction that made capacity for it; 0: none did.
    preemption: int = 0


def decide(work: CycleContext, gang: Gang, placement: FoundPlacement) -> None:
    """Decide a placement of a gang in the backlog.

    Afterwards the gang is out of the backlog, its placed members are assumed on their nodes, the
    holds that they fill have ended, and the decision is among those of this cycle.
    """
    state = work.state
    need = required(gang.bucket, gang.full_name, "is decided and does not wait").need
    state.backlog.take(gang)
    allocations = placement.statement.commit()
    reserves: tuple[ReservedRoom, ...] = ()
    if need.reserved:
        reserves = min_resources.open_units(work, gang, allocations, placement.filled)
    members = [allocation for allocation in allocations if allocation.role != RESERVED]
    decision = record(
        work,
        gang,
        need,
        assign_members(state.node_capacity, gang, members),
        fills=placement.filled,
        domain=placement.domain,
        preemption=placement.preemption,
        reserves=reserves,
    )
    work.session.spend(len(decision.bindings))
    for hold in placement.filled:
        state.holds.close(state, hold, "Filled")
        state.gangs.touch(gang)


def record(
    work: CycleContext,
    gang: Gang,
    need: Need,
    assignments: Assignments,
    *,
    fills: Sequence[Hold] = (),
    domain: str | None = None,
    preemption: int = 0,
    charged: bool = False,
    reserves: tuple[ReservedRoom, ...] = (),
) -> GangDecision:
    """Decide a gang that has left the backlog: count the attempt, and assume the members on their
    nodes, whose capacity is taken. `charged`: so are its queue and the budget.
    """
    state = work.state
    history = gang.history
    gang.queue.promise(gang.gang_id, {})
    request = gang.request if not history.started else None
    request = request if request is not None and request.open else None
    history.attempt += 1
    history.count_decided(len(assignments.members))
    history.known_as = gang.gang_id
    if history.started:
        domain = None
    elif domain is not None:
        history.home = domain
    bindings = bindings_of(state.nodes.names, assignments)
    gang.latest = (*_unreported(gang, bindings), *bindings) if gang.latest else bindings
    choices = claim_choices.NOTHING
    if need.attached:
        choices = claim_choices.choices_of(state, assignments)
    decision = GangDecision(
        gang_id=gang.gang_id,
        gang=gang.full_name,
        scope=scope_of(gang.key),
        dialect=gang.group.dialect if gang.group is not None else "",
        epoch=state.epoch,
        attempt=history.attempt,
        bindings=bindings,
        quorum=need.quorum - need.reserved,
        preflight=_preflight(gang, assignments.members, state.defaults),
        why=_why(need, assignments, fills),
        trace_id=gang_trace_id(gang.trace_root, history.attempt),
        first_seen_ms=history.first_seen_ms,
        cycle=work.cycle,
        traceparent=_traceparent(gang, assignments.members),
        fills=tuple([hold.uid for hold in fills]),
        volumes=choices.volumes,
        devices=choices.devices,
        preemption=preemption,
        domain=domain or "",
        reserves=reserves,
        undisturbed=undisturbed(gang),
        provisioning_request=str(request.name) if request is not None else "",
        provisioning_class=class_of(gang.queue) if request is not None else "",
    )
    history.full_name, history.scope = decision.gang, decision.scope
    in_flight.adopt(state, gang, decision, assignments, charged=charged)
    work.add_decision(gang, decision)
    return decision


def bindings_of(names: list[str], assignments: Assignments) -> tuple[Binding, ...]:
    """The assignments to nodes with these names as a record of DECISIONS has them."""
    bindings: list[Binding] = []
    for member, slot in assignments.pairs():
        pod = member.pod
        bindings.append(
            Binding(uid=pod.uid, namespace=pod.namespace, name=pod.name, node=names[slot])
        )
    return tuple(bindings)


def assign_members(
    node_capacity: NodeCapacity, gang: Gang, allocations: Iterable[Allocation]
) -> Assignments:
    """Assign members, in their order, to nodes in the order of topology and names: neighbours in
    rank are neighbours on the network.
    """
    per_group: dict[tuple[str, int, str], dict[int, int]] = {}
    for allocation in allocations:
        pairs = zip(allocation.slots.tolist(), allocation.counts.tolist(), strict=True)
        if allocation.shape.alike:
            slots_of_each = [slot for slot, count in pairs for _ in range(count)]
            for shape, slot in zip(allocation.shape.alike, slots_of_each, strict=True):
                per_group[allocation.role, shape.id, allocation.part] = {slot: 1}
            continue
        key = (allocation.role, allocation.shape.id, allocation.part)
        counts = per_group.setdefault(key, {})
        for slot, count in pairs:
            counts[slot] = counts.get(slot, 0) + count
    order = node_capacity.topology.order(gang.group.topology if gang.group is not None else None)
    refused = refused_members(gang) if gang.history.bad else set[str]()
    assigned: list[Member] = []
    taken: list[int] = []
    for role, shape_id, part in sorted(per_group):
        counts = per_group[role, shape_id, part]
        expanded = _in_order(counts, order)
        waiting = list(gang.waiting[role, shape_id].values())
        if gang.group is not None and gang.group.sub_groups:
            waiting = [member for member in waiting if part_of(gang, member.pod) == part]
        members = sorted(waiting, key=placing_order) if len(waiting) > 1 else waiting
        if refused:
            # Where not all are placed, those that a policy refused are left out.
            members.sort(key=lambda member: member.pod.uid in refused)
        assigned += members[: len(expanded)]
        taken += expanded
    return Assignments(assigned, taken)


def _in_order(counts: dict[int, int], order: Ints) -> list[int]:
    """The slots, each as often as it is counted, by their places in the order."""
    listed = list(counts)
    if len(counts) > 1:
        slots = np.fromiter(counts, dtype=np.int64)
        listed = slots[np.argsort(order[slots])].tolist()
    return [slot for slot in listed for _ in range(counts[slot])]


def _unreported(gang: Gang, bindings: Sequence[Binding]) -> Iterator[Binding]:
    """Earlier bindings of members that no verdict has named as placed: a verdict names them after
    the start of the gang, when CLUSTER shows them bound.
    """
    again = {binding.uid for binding in bindings}
    kept = (ASSUMED,) if gang.history.started else (ASSUMED, PLACED, RUNNING)
    for binding in gang.latest:
        member = gang.members.get(binding.uid)
        if member is not None and member.state in kept and binding.uid not in again:
            yield binding


def _preflight(gang: Gang, members: Sequence[Member], defaults: Defaults) -> bool:
    """Whether binders validate all bindings before they bind any: where releasing a half-bound gang
    would cost something, or an earlier attempt failed.

    A single binding is atomic by itself, and each member of a started gang counts alone.
    """
    if len(members) < 2 or gang.history.started:
        return False
    if gang.history.attempt > 1 or preflight_always(gang, defaults):
        return True
    owners = [member.pod.owner for member in members]
    if owners.count(owners[0]) == len(owners):
        return release_cost(owners[0]) != "nothing"
    return any(release_cost(owner) != "nothing" for owner in owners)


def _traceparent(gang: Gang, members: Sequence[Member]) -> str:
    if gang.group is not None and gang.group.traceparent:
        return gang.group.traceparent
    for member in members:
        if member.pod.traceparent:
            return member.pod.traceparent
    return ""


def _why(need: Need, assignments: Assignments, fills: Sequence[Hold]) -> str:
    members = len(assignments.members)
    nodes = _number(len(set(assignments.slots)), "node")
    fills = [hold for hold in fills if not hold.reserving]
    if fills:
        others = f", and {_number(len(fills) - 1, 'other lost member')}" if len(fills) > 1 else ""
        return f"{_number(members, 'member')} in place of lost ones: {fills[0].message}{others}"
    quorum = need.quorum - need.reserved
    if not quorum:
        return f"{_number(members, 'member')} placed one by one on {nodes}"
    extras = members - quorum
    more = f" and {extras} above it" if extras else ""
    return f"quorum of {quorum}{more} placed together on {nodes}"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
