"""Places replacements of lost members, then reserves capacity for those that do not exist yet.

A waiting member of the same gang and role replaces a lost one: with the same shape on the reserved
node itself, with another shape wherever it fits once that reservation is given up. If it fits
nowhere, the hold is for the new shape from then on and stays first in line. A gang that has lost
all its members is placed whole, and may use all its reservations.
"""

from collections.abc import Iterable

from services.gang_planner.core.allocation.decision import FoundPlacement, decide
from services.gang_planner.core.allocation.gang_allocation import (
    ReleasedReservations,
    find_placement,
    is_plain,
    place_gang,
)
from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.framework.statement import Allocation, Statement
from services.gang_planner.core.placement.domains import domain_around
from services.gang_planner.core.placement.members import MembersRequest, place_members
from services.gang_planner.core.placement.session import in_turns
from services.gang_planner.core.queueing.fair_share import Limit
from services.gang_planner.core.queueing.need import members_max
from services.gang_planner.core.state.columns import Bools
from services.gang_planner.core.state.gangs import Bucket, Gang
from services.gang_planner.core.state.holds import RESTARTED, Hold
from services.gang_planner.core.state.needs import Need
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.sub_gangs import nodes_of
from shared.model.invariants import required


def run(work: CycleContext) -> None:
    """Serve every gang that has holds, in the order of gangs, until the cycle's budget is spent."""
    state = work.state
    full: set[tuple[object, ...]] = set()
    gangs = [state.gangs.gangs[key] for key in state.holds.owners()]
    for gang in in_turns(work.session, sorted(gangs, key=work.session.policies.order)):
        if work.session.exhausted:
            return
        bucket = gang.bucket
        if bucket is not None and _worth_trying(work, gang, bucket.need):
            if is_plain(state.holds, gang):
                _fill(work, gang, bucket.need)
            elif (placement := find_placement(work, gang)) is not None:
                decide(work, gang, placement)
            else:
                _release_other_shapes(state, gang, bucket)
        for hold in state.holds.of(gang):
            if hold.reservation is None and not work.session.exhausted:
                _reserve(work, hold, gang, full)


def place_missing(work: CycleContext) -> None:
    """Place missing members of started gangs, in the order of gangs, until the cycle's budget is
    spent. A gang with lower priority than a waiting gang is left to the allocate action.

    Members that a planner saw get lost have holds. Members lost while no planner ran have none if
    their shape is unknown (`lifecycle.unseen_losses`), and a hold is filled only once, even if the
    replacement's binding fails. The other members of such a gang occupy capacity without making
    progress, so its missing members are placed first.
    """
    backlog = work.state.backlog
    gangs = [gang for bucket in backlog.lacking.values() for _, _, gang in bucket.entries]
    fresh = (bucket for bucket in backlog.buckets.values() if not bucket.need.lacking)
    highest = max((bucket.entries[0][2].priority for bucket in fresh), default=None)
    for gang in in_turns(work.session, sorted(gangs, key=work.session.policies.order)):
        bucket = required(gang.bucket, gang.full_name, "lacks members and does not wait")
        outranked = highest is not None and gang.priority < highest
        if outranked or bucket.need.best_effort:
            continue
        if bucket.refused_at == work.state.node_capacity.freed:
            continue
        if work.session.exhausted:
            return
        # A gang that does not fit is refused by allocate, which may also place extra members.
        place_gang(work, gang, Limit(bucket.need.lacking))


def _worth_trying(work: CycleContext, gang: Gang, need: Need) -> bool:
    """Whether anything has changed since the same attempt failed.

    The mark contains everything that an attempt depends on: a replay leaves out cycles that wrote
    nothing, and must make the same attempts.
    """
    table = work.state.holds
    holds = tuple((hold.uid, hold.node, hold.shape.id) for hold in table.of(gang))
    mark = (work.state.node_capacity.freed, need.signature, holds)
    if table.tried.get(gang.key) == mark:
        return False
    table.tried[gang.key] = mark
    return True


def _fill(work: CycleContext, gang: Gang, need: Need) -> None:
    """Bind waiting members of a started gang as replacements of its lost ones."""
    state, session = work.state, work.session
    avoid = set(state.nodes.slots_of(need.avoid).tolist())
    exact, loose = _match(state.holds.of(gang), need, avoid)
    # The members that one decision does not hold are placed by later ones.
    most = members_max(state.holds, state.node_capacity, gang, need)
    exact, loose = exact[:most], loose[: max(most - len(exact), 0)]
    if not exact and not loose:
        return
    released = ReleasedReservations(
        state, [hold for hold, _ in (*exact, *loose) if hold.reservation is not None]
    )
    statement = Statement(state.node_capacity, gang.queue)
    for allocation in _exactly(exact, state.shapes.entries):
        statement.allocate(allocation)
    filled = [hold for hold, _ in exact]
    slots = state.nodes.slots_of(need.avoid)
    full: set[int] = set()
    for hold, (role, shape_id) in loose:
        shape = state.shapes.entries[shape_id]
        request = MembersRequest(statement=statement, role=role, shape=shape, wanted=1, avoid=slots)
        if shape_id not in full and place_members(session, request):
            filled.append(hold)
            continue
        full.add(shape_id)
        if shape is not hold.shape:
            released.give_up(hold)
            # Its capacity is free for other holds.
            full.clear()
            hold.shape, hold.dirty = shape, True
            hold.labels = next(iter(gang.waiting[role, shape_id].values())).pod.labels
    for hold in released.restore_if_fits(session, filled):
        hold.dirty = True
    if filled:
        decide(work, gang, FoundPlacement(statement, filled))
    else:
        statement.discard()


def _match(
    holds: Iterable[Hold], need: Need, avoid: set[int]
) -> tuple[list[tuple[Hold, tuple[str, int]]], list[tuple[Hold, tuple[str, int]]]]:
    """Which holds waiting members can fill: on the reserved node, and elsewhere."""
    left = {(role, shape_id): count for role, shape_id, count in need.wanted}
    exact: list[tuple[Hold, tuple[str, int]]] = []
    others: list[Hold] = []
    for hold in holds:
        if hold.announced:
            # Its member is still there: a member that waits is none of its successors.
            continue
        key = (hold.role, hold.shape.id)
        # A reservation says nothing of the claims of a successor, nor of pods that have come near
        # since, where it has terms about other pods: such a successor is placed again.
        plain = not hold.shape.attached and not hold.shape.pairwise
        held = hold.reservation is not None and plain and hold.reservation.slot not in avoid
        if held and left.get(key):
            left[key] -= 1
            exact.append((hold, key))
        else:
            others.append(hold)
    loose: list[tuple[Hold, tuple[str, int]]] = []
    for hold in others:
        keys = [key for key, count in left.items() if count and key[0] == hold.role]
        if keys:
            key = min(keys, key=lambda key: (key[1] != hold.shape.id, key[1]))
            left[key] -= 1
            loose.append((hold, key))
    return exact, loose


def _exactly(
    exact: Iterable[tuple[Hold, tuple[str, int]]], shapes: list[ShapeEntry]
) -> list[Allocation]:
    """Allocations on the reserved nodes themselves."""
    counts: dict[tuple[str, int], dict[int, int]] = {}
    for hold, key in exact:
        slot = required(hold.reservation, f"hold for {hold.uid}", "has no reservation").slot
        per_slot = counts.setdefault(key, {})
        per_slot[slot] = per_slot.get(slot, 0) + 1
    return [
        Allocation.of(role, shapes[shape_id], per_slot)
        for (role, shape_id), per_slot in counts.items()
    ]


def _release_other_shapes(state: State, gang: Gang, bucket: Bucket) -> None:
    """Release reservations that no member can use, of a gang that was created again and does not
    fit even with all its reservations.
    """
    if bucket.budget_exceeded:
        return
    shapes = {shape_id for _, shape_id, _ in bucket.need.wanted}
    for hold in state.holds.of(gang):
        if hold.reason == RESTARTED and hold.shape.id not in shapes:
            state.holds.close(state, hold, "OtherShape")
            state.gangs.touch(gang)


def _reserve(work: CycleContext, hold: Hold, gang: Gang, full: set[tuple[object, ...]]) -> None:
    """Reserve capacity wherever the shape fits; otherwise the hold stays first in line.

    `full` has the searches that failed in this cycle: a rack that fails leaves hundreds of equal
    holds.
    """
    state, session = work.state, work.session
    bad = tuple(sorted({node for _, node in gang.history.bad} | set(gang.history.failed_on)))
    mark = (state.node_capacity.freed, hold.shape.id, bad)
    if hold.tried == mark:
        return
    hold.tried = mark
    topology = gang.group.topology if gang.group is not None else None
    equal = (gang.queue.name if topology is None else gang.full_name, *mark)
    if equal in full:
        return
    statement = Statement(state.node_capacity, gang.queue)
    request = MembersRequest(
        statement=statement,
        role=hold.role,
        shape=hold.shape,
        wanted=1,
        avoid=state.nodes.slots_of(bad),
        within=_domain(work.state.node_capacity, gang),
    )
    if not place_members(session, request):
        statement.discard()
        full.add(equal)
        return
    (allocation,) = statement.commit()
    state.holds.reserve(state, hold, int(allocation.slots[0]), adopted=True)
    hold.dirty = True
    state.gangs.touch(gang)


def _domain(node_capacity: NodeCapacity, gang: Gang) -> Bools | None:
    """Where the gang's topology allows its next member; None: anywhere."""
    group = gang.group
    if group is None or group.topology is None:
        return None
    names = nodes_of(gang.members.values(), node_capacity.nodes.names)
    levels = node_capacity.topology.levels(group.topology)
    return domain_around(levels, node_capacity.nodes.slots_of(names))
