"""Holds for lost members: which losses get a hold, on which node, and when the hold ends.

When a member of a started gang fails, is evicted, is deleted or loses its node, the planner
reserves capacity for its shape. It prefers the old node, if that node still accepts the shape and
no member has failed there before. Otherwise it takes any node with free capacity
(`allocation.replacements`). If there is none, the hold waits ahead of other gangs.

A pod gets no hold if no controller creates it again, or if its gang does not need it: it was
deleted from a gang that has enough members or that partly finished, or the gang is being deleted or
released, or has ended.

During a gang's repair, the hold of a lost member lasts until the repair ends.
"""

from typing import Final

from services.gang_planner.core.allocation import min_resources
from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.lifecycle import announced_losses
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state import successors
from services.gang_planner.core.state.columns import ResourceIndex
from services.gang_planner.core.state.gang_history import Kept
from services.gang_planner.core.state.gang_settings import Defaults, hold_ms
from services.gang_planner.core.state.gang_table import GangTable
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.holds import (
    DELETED,
    EXPIRED,
    FAILED_POD,
    MISSING,
    NODE_LOST,
    RESTARTED,
    Hold,
    Loss,
    drop_reservation,
)
from services.gang_planner.core.state.member_states import (
    ASSUMED,
    LEAVING,
    PLACED,
    RUNNING,
    SUCCEEDED,
)
from services.gang_planner.core.state.planner_state import State
from shared.model.invariants import required

#: A clock that goes back by more than this was set back.
_CLOCK_STEP_MS: Final = 1_000
#: Reasons of holds for pods that a user may have deleted: they end when the gang does not need the
#: pod.
_PERHAPS_DELETED: Final = frozenset({DELETED, MISSING})


def judge(state: State) -> None:
    """Decide which losses get a hold, after a record of CLUSTER has been applied completely.

    Earlier losses that no longer qualify are discarded. The active planner opens the holds in its
    next cycle (`open_pending`).
    """
    table = state.holds
    for loss in list(table.pending.values()):
        gang = state.gangs.gangs.get(loss.key)
        if gang is None or not _gets_hold(state, gang, loss):
            table.settle(loss.uid)
            _drop(state.gangs, gang)
    for loss in table.take_losses():
        gang = state.gangs.gangs.get(loss.key)
        # A victim's capacity is reserved for its preemptor.
        eviction = state.preemptions.victims.get(loss.uid)
        if eviction is not None and gang is not None:
            eviction.victim_left(loss.uid, gang.history)
        if gang is None or eviction or table.is_known(loss) or not _gets_hold(state, gang, loss):
            _drop(state.gangs, gang)
            continue
        loss.started = gang.history.has_started
        table.await_cycle(loss)
        state.gangs.touch(gang)


def open_pending(work: CycleContext) -> None:
    """Open holds for members lost since the last cycle, with reservations on their old nodes where
    these still accept the shape.
    """
    state = work.state
    for loss in list(state.holds.pending.values()):
        state.holds.settle(loss.uid)
        gang = state.gangs.gangs.get(loss.key)
        until_ms = 0
        if gang is not None and not gang.history.releasing:
            until_ms = _until(work.state.defaults, gang, work.now_ms, started=loss.started)
        if gang is None or until_ms <= work.now_ms:
            _drop(state.gangs, gang)
            continue
        hold = loss.hold(gang, work.now_ms, until_ms)
        state.holds.add(state, hold, gang)
        failed_before = loss.lost_on in gang.history.failed_on
        if loss.reason == FAILED_POD:
            gang.history.failed_on[loss.lost_on] = None
        if not loss.refused and not (failed_before and loss.reason == FAILED_POD):
            _hold_there(work, hold, gang)
        state.gangs.touch(gang)


def review(work: CycleContext) -> None:
    """Close holds that have ended, and drop reservations on nodes that no longer accept the shape:
    the planner then searches another node for the hold.
    """
    state = work.state
    _pass_on(state)
    min_resources.review(state)
    for hold in list(state.holds.by_uid.values()):
        gang = hold.gang
        if gang is not None:
            _follow_group(hold, gang)
            if hold.workload and hold.reason != RESTARTED and not gang.living:
                # It waits for the successor of its workload.
                hold.reason, hold.dirty = RESTARTED, True
            if not gang.admitted and gang.group is not None:
                # No vote: its predecessor was admitted, and its holds already count as used.
                state.gangs.admit(gang)
        _mind_clock(hold, work.now_ms)
        reason = announced_losses.follow(work, hold) if hold.announced and gang is not None else ""
        reason = reason or _end_of(state, hold, gang, work.now_ms)
        if reason:
            state.holds.close(state, hold, reason)
        elif hold.reservation is not None and not _still_room(work.session, hold):
            drop_reservation(state, hold)
            hold.dirty = True
        else:
            continue
        if gang is not None:
            state.gangs.touch(gang)


def _until(defaults: Defaults, gang: Gang, now_ms: int, *, started: bool) -> int:
    """When the hold of a member lost now expires; 0: it gets none."""
    if started:
        wanted_ms = hold_ms(gang, defaults)
        return now_ms + wanted_ms if wanted_ms else 0
    repair = gang.history.notes.repair
    return repair.until_ms if repair is not None else 0


def _drop(gangs: GangTable, gang: Gang | None) -> None:
    """Drop the gang if it was kept only for a loss that gets no hold."""
    if gang is not None:
        gangs.drop_if_empty(gang)


def _gets_hold(state: State, gang: Gang, loss: Loss) -> bool:
    """Whether the lost member gets a hold, by the current cluster state."""
    made_again = successors.is_made_again(gang)
    if made_again and state.reference_objects.is_living(loss.workload, loss.part):
        started = gang.history.has_started and not gang.history.releasing
        return started and gang.key[0] != "pod" and hold_ms(gang, state.defaults) > 0
    if gang.key[0] == "pod" or _gone(gang) or gang.lacks_object:
        return False
    if gang.history.has_started:
        return not (loss.plain and (gang.succeeded or _needs_no_more(state.resources, gang)))
    return loss.owned and gang.have() > 0 and not gang.quorum_held


def _gone(gang: Gang) -> bool:
    """Whether the gang is ending, being deleted or being released."""
    if gang.history.releasing or (gang.group is not None and gang.group.deleting):
        return True
    return _all_leaving(gang) or gang.completed


def _all_leaving(gang: Gang) -> bool:
    return gang.counts[LEAVING] == len(gang.members)


def _hold_there(work: CycleContext, hold: Hold, gang: Gang) -> None:
    """Reserve the lost pod's capacity on its old node, if the node still accepts the shape."""
    state, session = work.state, work.session
    slot = state.nodes.find(hold.lost_on)
    if slot is None or not gang.queue.headroom(hold.shape, 1):
        return
    if any(node == hold.lost_on for _, node in gang.history.bad):
        return
    if session.fits.takes(hold.shape, slot):
        state.holds.reserve(state, hold, slot, adopted=False)


def _pass_on(state: State) -> None:
    """Attach each hold to its gang: its own, or the successor that its workload has created."""
    orphans: list[Hold] = []
    for hold in state.holds.by_uid.values():
        if hold.gang is None and (gang := _gang_of(state, hold)) is not None:
            state.holds.attach(hold, gang)
        gang = hold.gang
        if hold.workload and gang is not None and not gang.living:
            orphans.append(hold)
    if not orphans:
        return
    successor_of = successors.find_successors(state, {hold.workload for hold in orphans})
    for hold in orphans:
        successor = successor_of.get((hold.workload, hold.part))
        if successor is not None and hold.gang is not None:
            state.gangs.touch(hold.gang)
            state.holds.pass_on(hold, successor)
            state.gangs.touch(successor)


def _gang_of(state: State, hold: Hold) -> Gang | None:
    """The gang of a hold read from the log; None: the cluster state does not have it yet."""
    gang = state.gangs.find(hold.gang_id)
    if gang is not None or hold.gang_key is None or not state.view.shows(hold.cluster_seq):
        return gang
    if not state.reference_objects.is_living(hold.workload, hold.part):
        return None
    kept = Kept(hold.queue, hold.priority)
    return state.gangs.keep_vacant(hold.gang_key, hold.gang_id, kept, hold.at_ms)


def _end_of(state: State, hold: Hold, gang: Gang | None, now_ms: int) -> str:
    """The reason for which the hold ends now; "" while it lasts."""
    if gang is None:
        if state.view.shows(hold.cluster_seq):
            return "GroupGone"
    elif reason := _end_by_gang(state, hold, gang):
        return reason
    return EXPIRED if hold.until_ms <= now_ms else ""


def _end_by_gang(state: State, hold: Hold, gang: Gang) -> str:
    if gang.history.releasing:
        return "Released"
    member = state.members.get(hold.uid)
    if member is not None and member.state in {PLACED, RUNNING} and not hold.announced:
        return "Returned"
    if hold.workload and not state.reference_objects.is_living(hold.workload, hold.part):
        return "WorkloadEnded"
    if not hold.workload and _is_over(state.gangs, hold, gang):
        return "GroupGone"
    if hold.reserving and (reason := min_resources.end_of(state.defaults, gang)):
        return reason
    finished = gang.completed and not hold.workload
    if finished or (hold.reason in _PERHAPS_DELETED and gang.succeeded):
        return "Finished"
    if hold.repairing and not gang.history.repairing:
        return "RepairEnded"
    if hold.reason == RESTARTED:
        # The successor's minima are unknown until its group object exists.
        return "ScaledDown" if gang.size_known and _needs_no_more(state.resources, gang) else ""
    may_be_unneeded = hold.reason in _PERHAPS_DELETED and (gang.size_known or not hold.workload)
    return "ScaledDown" if may_be_unneeded and _needs_no_more(state.resources, gang) else ""


def _needs_no_more(resources: ResourceIndex, gang: Gang) -> bool:
    """Whether the gang's members reach its minima and its `minResources`: a driver is a quorum of
    one, and still needs its executors.
    """
    if not gang.quorum_held:
        return False
    wanted = gang.group.min_resources if gang.group is not None else None
    if not wanted:
        return True
    asked: dict[int, int] = {}
    for member in gang.members.values():
        if member.state in {ASSUMED, PLACED, RUNNING, SUCCEEDED}:
            for row, amount in member.shape.pairs:
                asked[row] = asked.get(row, 0) + amount
    rows = [(resources.find(name), amount) for name, amount in wanted]
    return all(asked.get(row, 0) >= amount for row, amount in rows if row is not None)


def _is_over(gangs: GangTable, hold: Hold, gang: Gang) -> bool:
    """Whether the gang is gone or being deleted."""
    if gangs.gangs.get(gang.key) is not gang:
        return True
    if gang.group is not None and gang.group.deleting:
        return True
    # A controller recreates members lost with their node; otherwise a user deleted them.
    return _all_leaving(gang) and (hold.reason != NODE_LOST or gang.group is None)


def _still_room(session: Session, hold: Hold) -> bool:
    """Whether the node still accepts the shape and is not overcommitted."""
    reservation = required(hold.reservation, f"hold for pod {hold.uid}", "has no reservation")
    if not session.fits.masks.mask(hold.shape)[reservation.slot]:
        return False
    session.node_capacity.fit_cells()
    cells = session.node_capacity.free.cells
    return all(cells[row, reservation.slot] >= 0 for row, _ in hold.shape.pairs)


def _follow_group(hold: Hold, gang: Gang) -> None:
    """Move the hold to the gang's current id, which changes when its group is recreated."""
    if hold.gang_id != gang.gang_id:
        hold.gang_id = gang.gang_id
        hold.dirty = True
        if hold.reservation is not None:
            hold.reservation.owner = gang.gang_id


def _mind_clock(hold: Hold, now_ms: int) -> None:
    """Shift the hold's deadline when the clock was set back, so that the hold does not last
    longer.
    """
    if now_ms < hold.at_ms - _CLOCK_STEP_MS:
        hold.until_ms += now_ms - hold.at_ms
        hold.at_ms = now_ms
        hold.dirty = True
        if hold.reservation is not None:
            hold.reservation.until_ms = hold.until_ms
