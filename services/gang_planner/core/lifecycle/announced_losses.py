"""Members of started gangs on nodes that an autoscaler drains and then removes, or that are not
ready, so that Kubernetes evicts their pods after a while: announced losses.

Each gets a hold before its pod is evicted, so that capacity for its successor is reserved elsewhere
while there is some. When the pod has left, the hold becomes that of a lost member and gets its
deadline. If the node stays, or is ready again, the hold ends.
"""

from typing import Final

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.state.accounting import loss_of
from services.gang_planner.core.state.gang_settings import hold_ms
from services.gang_planner.core.state.gangs import Gang, Member
from services.gang_planner.core.state.holds import DELETED, EVICTED, NODE_LEAVING, Hold
from services.gang_planner.core.state.member_states import LEAVING, PLACED, RUNNING
from shared.model.invariants import required

_ON_NODE: Final = frozenset({PLACED, RUNNING})


def announce(work: CycleContext) -> None:
    """Open a hold for each member of a started gang on a node that is being removed, or that is not
    ready.
    """
    state, nodes = work.state, work.state.nodes
    slots = nodes.leaving
    if len(nodes.unready) * 2 <= nodes.count:
        # If most nodes are not ready, Kubernetes evicts no pods: their connection to the API server
        # is the likely cause.
        slots = slots | nodes.unready
    for slot in sorted(slots, key=nodes.names.__getitem__):
        residents = state.residents.get(slot, {})
        for uid in sorted(residents):
            member = residents[uid]
            gang = member.gang
            if gang is not None and _is_concerned(work, member, gang, slot):
                _open(work, member, gang, hold_ms(gang, work.state.defaults))


def follow(work: CycleContext, hold: Hold) -> str:
    """Advance the hold of an announced loss: as long as its member may leave, it has no deadline.

    Returns:
        The reason for which it ends; "" while it lasts.
    """
    state, gang = work.state, required(hold.gang, f"hold for {hold.uid}", "has no gang")
    member = state.members.get(hold.uid)
    if member is not None and member.state in _ON_NODE:
        if member.slot not in state.nodes.leaving and member.slot not in state.nodes.unready:
            return "Returned"
        if hold.until_ms <= work.now_ms:
            _date(hold, work.now_ms + hold_ms(gang, work.state.defaults))
        return ""
    deleted = member is not None and member.state == LEAVING and not member.pod.disrupted
    hold.reason = DELETED if deleted else EVICTED
    name = hold.message.partition(" ")[0]
    hold.message = f"{name} was {'deleted' if deleted else 'evicted'} on {hold.lost_on}"
    _date(hold, work.now_ms + hold_ms(gang, work.state.defaults))
    return ""


def _is_concerned(work: CycleContext, member: Member, gang: Gang, slot: int) -> bool:
    state, uid = work.state, member.pod.uid
    if member.state not in _ON_NODE or state.holds.knows(uid):
        return False
    if not gang.history.has_started or gang.history.releasing or gang.key[0] == "pod":
        return False
    if uid in state.preemptions.victims or not hold_ms(gang, work.state.defaults):
        return False
    # A pod that tolerates the taint stays.
    return not bool(work.session.fits.masks.mask(member.shape)[slot])


def _open(work: CycleContext, member: Member, gang: Gang, lasts_ms: int) -> None:
    state, pod = work.state, member.pod
    removed = member.slot in state.nodes.leaving
    fate = "which is being removed" if removed else "which is not ready"
    loss = loss_of(state, member, gang, NODE_LEAVING, f"{pod.name} is on {pod.node}, {fate}")
    loss.started = True
    hold = loss.hold(gang, work.now_ms, work.now_ms + lasts_ms)
    state.holds.add(state, hold, gang)
    state.gangs.touch(gang)


def _date(hold: Hold, until_ms: int) -> None:
    hold.until_ms, hold.dirty = until_ms, True
    if hold.reservation is not None:
        hold.reservation.until_ms = until_ms
