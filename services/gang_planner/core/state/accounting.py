"""Keeps a member's state and reservation, its gang's counts and its queue's charge consistent with
the pod and the decisions in flight.

Only this module moves pods between nodes. It also adds lost members that counted to
`holds.HoldTable.losses`; `lifecycle.hold_rules` decides which of them get holds.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from services.gang_planner.core.state import gang_runs, sub_gangs, successors
from services.gang_planner.core.state.gang_table import GangTable
from services.gang_planner.core.state.gangs import Gang, Member
from services.gang_planner.core.state.holds import DELETED, EVICTED, FAILED_POD, NODE_LOST, Loss
from services.gang_planner.core.state.inter_pod import profiles
from services.gang_planner.core.state.member_states import (
    ASSUMED,
    FAILED,
    LEAVING,
    LOST,
    PLACED,
    RUNNING,
    SUCCEEDED,
    TERMINAL,
)
from services.gang_planner.core.state.members import state_of
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.reservations import UNDATED, Reservation
from shared.model.gang_keys import UNNAMED, is_of_pods, key_of
from shared.model.group_trees import Moved
from shared.model.objects import Pod

#: The kubelet's reasons for a refused pod, besides OutOf<resource>.
_REFUSALS: Final = frozenset(
    {"NodeAffinity", "NodePorts", "NodeName", "TopologyAffinityError", "UnexpectedAdmissionError"}
)
#: A member in one of these states is lost when it fails or its node is removed.
_COUNTED: Final = frozenset({ASSUMED, PLACED, RUNNING, LEAVING})
#: A member in one of these states is lost when its pod is removed.
_BOUND: Final = frozenset({PLACED, RUNNING, LEAVING, LOST})


def put_pod(state: State, pod: Pod, at_ms: int, *, from_snapshot: bool = False) -> None:
    """Add or update a pod; an older resourceVersion is ignored, unless it is `from_snapshot`."""
    member = state.members.get(pod.uid)
    if member is None:
        _add(state, state.extended_resources.follow(pod), at_ms)
        return
    before = member.pod
    if pod.resource_version < before.resource_version and not from_snapshot:
        return
    pod = state.extended_resources.follow(pod)
    gang = member.gang
    member.note_deletion(pod, at_ms)
    if pod.labels != before.labels:
        state.labels.remove(before)
        state.labels.put(pod)
    if (
        pod.shape != before.shape
        or pod.role != before.role
        or pod.ours != before.ours
        or pod.group_name != before.group_name
        or pod.group_scope != before.group_scope
        or (not pod.group_name and key_of(pod) != key_of(before))
    ):
        _take_out(state.node_capacity, state.gangs, member)
        if pod.shape != before.shape:
            _account(state, member, None)
            # Set first: the terms of the new shape are matched against the current pods.
            member.pod = pod
            member.shape = profiles.entry_of(state, pod)
        member.pod = pod
        _account(state, member, _slot_of(state.nodes, pod))
        _put_in(state, member, at_ms, is_new=False)
        profiles.follow(state, member, before)
        return
    member.pod = pod
    profiles.follow(state, member, before)
    if gang is not None and gang.follow(pod, before):
        state.gangs.choose(gang, at_ms)
    if (
        pod.node != before.node
        or pod.phase != before.phase
        or pod.nominated_node != before.nominated_node
    ):
        _account(state, member, _slot_of(state.nodes, pod))
    settle(state, member)
    if gang is not None:
        if not gang.bound_ms and gang.bound:
            gang.bound_ms = at_ms
        state.gangs.touch(gang)


def follow_device_classes(state: State, at_ms: int) -> None:
    """Give pods other shapes after classes of extended resources have changed."""
    if not state.extended_resources.classes_changed():
        return
    for member in [member for member in state.members.values() if member.pod.extended]:
        put_pod(state, state.extended_resources.unshaped(member.pod), at_ms)


def note_success(state: State, uid: str, at_ms: int) -> None:
    """Note that a pod had succeeded before it was removed, which no record may have shown."""
    member = state.members.get(uid)
    if member is not None and member.pod.phase not in TERMINAL:
        put_pod(state, msgspec.structs.replace(member.pod, phase="Succeeded"), at_ms)


def remove_pod(state: State, uid: str, version: int = 0) -> None:
    """Remove a pod. `version`: the resourceVersion of its deletion; 0: not known."""
    state.extended_resources.forget(uid)
    member = state.members.pop(uid, None)
    if member is None:
        return
    state.labels.remove(member.pod)
    if member.gang is not None:
        part = sub_gangs.part_of(member.gang, member.pod)
        gang_runs.leave(member.gang, member, part, state.view.cluster_seq)
    if member.gang is not None and member.pod.node and member.state in _BOUND:
        with_node = member.slot is None or not state.nodes.exists[member.slot]
        _lose(state, member, member.gang, with_node=with_node, removed=True)
    state.holds.forget(uid)
    for reservation in state.reservations.rows(uid):
        # A binder may have allocated its devices before the pod was deleted.
        known = max(version, member.pod.resource_version)
        state.node_capacity.devices.grants.keep(reservation.shape, known)
        end_reservation(state, reservation)
    member.reservation = None
    _account(state, member, None)
    _take_out(state.node_capacity, state.gangs, member)


def move_members(state: State, moved: Iterable[Moved], at_ms: int) -> None:
    """Move the members of groups that are in another gang now."""
    for move in moved:
        gang = state.gangs.gangs.get(move.before)
        if gang is None:
            continue
        for member in [each for each in gang.members.values() if key_of(each.pod) == move.key]:
            _take_out(state.node_capacity, state.gangs, member)
            _put_in(state, member, at_ms, is_new=False)


def settle(state: State, member: Member) -> None:
    """Give the member the state that follows from pod and reservation, and charge its queue."""
    state_now = state_of(member, state.nodes)
    gang = member.gang
    if gang is None:
        member.state = state_now
        return
    if state_now != member.state:
        if state_now in {FAILED, LOST}:
            if member.state in _COUNTED:
                _lose(state, member, gang, with_node=state_now == LOST)
            if state_now == FAILED and member.pod.node:
                gang.history.failed_pods[member.pod.uid, member.pod.node] = UNDATED
        elif member.state == LOST:
            # The pod's node is back.
            state.holds.come_back(member.pod.uid)
        # Pods that the watcher reports as succeeded were not made to end, or their Job counts them.
        was_ended = member.past or _was_made_to_end(member.pod, state_now)
        member.past = was_ended and state_now != SUCCEEDED
        gang.move(member, state_now)
        state.gangs.touch(gang)
        state.preemptions.stirred += state_now in {PLACED, RUNNING}
    _charge(member, gang)


def _was_made_to_end(pod: Pod, state: int) -> bool:
    """Whether a pod that enters this state has been deleted or evicted before it has ended."""
    return state == LEAVING or (state == FAILED and (pod.deleting or pod.disrupted))


def _charge(member: Member, gang: Gang) -> None:
    # A pod on a node that does not exist takes no capacity: its hold is charged instead.
    holds = (member.slot is not None and member.state != LOST) or member.reservation is not None
    if holds != member.charged:
        member.charged = holds
        gang.hold(member.shape, 1 if holds else -1)


def assume(state: State, member: Member, reservation: Reservation, *, adopted: bool) -> None:
    """Add the reservation of a decided member. An older one of the same pod becomes late."""
    if member.reservation is not None:
        state.reservations.becomes_late(member.reservation)
    state.reservations.keep(reservation, adopted=adopted)
    member.reservation = reservation
    settle(state, member)


def end_reservation(state: State, reservation: Reservation, *, handed_over: bool = False) -> None:
    """End a decision's reservation, the last one with it. `handed_over`: a pod takes its place."""
    state.reservations.end(reservation, handed_over=handed_over)
    if reservation.act is not None and not reservation.act.rows:
        state.open.pop(reservation.act.seq, None)
    if not handed_over:
        state.drop_phantom(reservation.slot)


def node_changed(state: State, slot: int) -> None:
    """Update the members on a node that was added or removed: they are placed or lost."""
    for member in list(state.residents.get(slot, {}).values()):
        settle(state, member)
    state.drop_phantom(slot)


def _lose(
    state: State, member: Member, gang: Gang, *, with_node: bool, removed: bool = False
) -> None:
    """Add the loss of a member that failed, whose node is gone, or whose pod was `removed` before
    it ended.
    """
    pod = member.pod
    if with_node:
        reason, what = NODE_LOST, f"was lost with {pod.node}"
    elif pod.disrupted:
        reason, what = EVICTED, f"was evicted from {pod.node}"
    elif removed or pod.deleting:
        reason, what = DELETED, f"was deleted on {pod.node}"
    else:
        why = f" ({pod.reason})" if pod.reason else ""
        reason, what = FAILED_POD, f"failed on {pod.node}{why}"
    state.holds.lose(loss_of(state, member, gang, reason, f"{pod.name} {what}"))


def loss_of(state: State, member: Member, gang: Gang, reason: str, message: str) -> Loss:
    """The loss of a member for this reason."""
    pod = member.pod
    workload, part = successors.origin_of(state.reference_objects, pod)
    return Loss(
        uid=pod.uid,
        key=gang.key,
        role=pod.role,
        shape=profiles.lasting(state, member),
        namespace=pod.namespace,
        labels=pod.labels,
        lost_on=pod.node,
        reason=reason,
        message=message,
        plain=reason == DELETED,
        owned=pod.owner is not None,
        refused=pod.reason.startswith("OutOf") or pod.reason in _REFUSALS,
        cluster_seq=state.view.cluster_seq,
        workload=workload,
        part=part,
    )


def _add(state: State, pod: Pod, at_ms: int) -> None:
    member = Member(pod, profiles.entry_of(state, pod))
    member.note_deletion(pod, at_ms)
    state.members[pod.uid] = member
    state.labels.put(pod)
    slot = _slot_of(state.nodes, pod)
    if slot is not None:
        _account(state, member, slot)
    _put_in(state, member, at_ms, is_new=True)


def _put_in(state: State, member: Member, at_ms: int, *, is_new: bool) -> None:
    """Make the pod a member of the gang that it belongs to now."""
    pod, before = member.pod, member.state
    member.state = state_of(member, state.nodes)
    member.past |= member.state != before and _was_made_to_end(pod, member.state)
    named = key_of(pod)
    if named is None:
        return
    key = state.gangs.trees.gang_of(named)
    name = pod.name
    if key[0] not in UNNAMED:
        name = key[2]
    elif pod.owner is not None:
        name = pod.owner.name
    gang = state.gangs.gang(key, pod.namespace, name, at_ms)
    gang_runs.join(gang, member, state.view.cluster_seq, is_new=is_new)
    declares = gang.join(member)
    if (gang.group is None or is_of_pods(gang.group)) and (
        not gang.created_ms or pod.created_ms < gang.created_ms
    ):
        gang.created_ms = pod.created_ms
    if declares or gang.traits.preferring == 1:
        # Members may determine queue, priority, and the preferred one of two group objects.
        state.gangs.choose(gang, at_ms)
    _charge(member, gang)
    if not gang.bound_ms and gang.bound:
        gang.bound_ms = at_ms


def _take_out(node_capacity: NodeCapacity, gangs: GangTable, member: Member) -> None:
    gang = member.gang
    if gang is None:
        return
    if member.charged:
        member.charged = False
        gang.hold(member.shape, -1)
        # The queue may now be below its ceiling, so refused gangs are tried again.
        node_capacity.freed += 1
    if gang.leave(member) and (gang.members or is_of_pods(gang.group)):
        gangs.choose(gang, gang.history.first_seen_ms)
    gangs.touch(gang)
    gangs.drop_if_empty(gang)


def _slot_of(nodes: NodeTable, pod: Pod) -> int | None:
    """The slot of the node whose capacity the pod takes; None: it takes none. A pod of another
    scheduler takes its nominated node's: that scheduler may have evicted pods or provision volumes
    there.
    """
    place = pod.node
    if not place and not pod.ours and not pod.group_name:
        place = pod.nominated_node
    if not place or pod.phase in TERMINAL:
        return None
    return nodes.slot(place)


def _account(state: State, member: Member, slot: int | None) -> None:
    """Account for the pod on this node, or on none. Its reservation there is handed over; its other
    reservations end.
    """
    pod = member.pod
    if pod.node or pod.phase in TERMINAL:
        handed_over = _end_reservations(state, member, slot if member.slot != slot else None)
    else:
        handed_over = False
    if handed_over:
        state.node_capacity.devices.grants.land(member.shape)
    if member.slot == slot:
        return
    if member.gang is not None:
        member.gang.moves += 1
    before = member.slot
    if before is not None:
        residents = state.residents[before]
        del residents[pod.uid]
        if not residents:
            del state.residents[before]
        state.node_capacity.devices.grants.keep(member.shape, pod.resource_version)
        state.node_capacity.give(before, member.shape)
        state.drop_phantom(before)
    if slot is not None:
        if not handed_over:
            state.node_capacity.take(slot, member.shape)
        state.residents.setdefault(slot, {})[pod.uid] = member
    member.slot = slot


def _end_reservations(state: State, member: Member, slot: int | None) -> bool:
    """End the reservations of a bound or finished pod; whether one on this slot was handed over."""
    handed_over = False
    for reservation in state.reservations.rows(member.pod.uid):
        here, same = reservation.slot == slot, reservation.shape is member.shape
        matches = here and same and not handed_over
        handed_over |= matches
        if here and not same:
            # Its shape has changed since the decision, by which its claims got their devices.
            state.node_capacity.devices.grants.keep(reservation.shape, member.pod.resource_version)
        end_reservation(state, reservation, handed_over=matches)
    member.reservation = None
    return handed_over
