"""From a member that is lost to a debt, and to the debt's end: who is owed room, where, how long.

A member of a started gang that counted and failed, was evicted, deleted or lost its node is owed
room for its shape: on its old node if that would still take it and no member has failed there
before, else wherever it fits (`restoring`), else first in line. Not owed is what nobody will make
again or nobody misses: a pod that simply was deleted from a gang that has enough, or that finished
in part; the members of a gang that is being deleted, released or has ended.

Of a gang that is being repaired a lost member is owed room until the repair ends.
"""

from typing import Final

from services.gang_planner.core.configuring.settings import hold_ms
from services.gang_planner.core.cycle import CycleWork
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.recovery import reservation, successors
from services.gang_planner.core.recovery.debts import (
    DELETED,
    FAILED_POD,
    NODE_LOST,
    REPAIR,
    RESTARTED,
    Debt,
    Loss,
    drop_room,
    keep_room,
)
from services.gang_planner.core.tables.gangs import Gang, Kept
from services.gang_planner.core.tables.members import (
    ASSUMED,
    LEAVING,
    PLACED,
    RUNNING,
    SUCCEEDED,
)
from services.gang_planner.state import State

#: A clock that goes back by more than this was set back.
_CLOCK_STEP_MS: Final = 1_000


def judge(state: State) -> None:
    """A record of CLUSTER has been applied whole: decide which of its losses are owed for, and
    which earlier ones no longer are.

    Whoever leads makes them debts in its next cycle (`open_pending`).
    """
    table = state.debts
    for loss in list(table.pending.values()):
        gang = state.gangs.gangs.get(loss.key)
        if gang is None or not _owed(state, gang, loss):
            table.settle(loss.uid)
            _drop(state, gang)
    for loss in table.take_losses():
        gang = state.gangs.gangs.get(loss.key)
        # Of a victim of ours the room is for whom it was evicted for.
        ours = loss.uid in state.preemptions.victims
        if gang is None or ours or table.knows(loss.uid) or not _owed(state, gang, loss):
            _drop(state, gang)
            continue
        table.await_cycle(loss._replace(started=gang.history.has_started))
        state.gangs.touch(gang)


def open_pending(work: CycleWork) -> None:
    """Make debts of what was lost since the last cycle, with room on the old node where it can."""
    state = work.state
    for loss in list(state.debts.pending.values()):
        state.debts.settle(loss.uid)
        gang = state.gangs.gangs.get(loss.key)
        if gang is None or gang.history.releasing:
            _drop(state, gang)
            continue
        until_ms = _until(work, gang, started=loss.started)
        if until_ms <= work.now_ms:
            _drop(state, gang)
            continue
        debt = Debt(
            uid=loss.uid,
            gang_id=gang.gang_id,
            role=loss.role,
            shape=loss.shape,
            reason=loss.reason if loss.started else REPAIR,
            message=loss.message,
            lost_on=loss.node,
            namespace=loss.namespace,
            labels=loss.labels,
            workload=loss.workload if loss.started else "",
            part=loss.part if loss.started else "",
        )
        debt.at_ms, debt.until_ms = work.now_ms, until_ms
        debt.cluster_seq = state.view.cluster_seq
        state.debts.add(state, debt, gang)
        failed_before = loss.node in gang.history.failed_on
        if loss.reason == FAILED_POD:
            gang.history.failed_on[loss.node] = None
        if not loss.refused and not (failed_before and loss.reason == FAILED_POD):
            _hold_there(work, debt, gang)
        state.gangs.touch(gang)


def review(work: CycleWork) -> None:
    """End what is no longer owed, and give up room that is no room any more; the debt then looks
    for another place.
    """
    state = work.state
    _pass_on(state)
    reservation.review(state)
    for debt in list(state.debts.by_uid.values()):
        gang = debt.gang
        if gang is not None:
            _follow_group(debt, gang)
            _follow_restart(debt, gang)
            _admit(state, gang)
        _mind_clock(debt, work.now_ms)
        reason = _end_of(state, debt, gang, work.now_ms)
        if reason:
            state.debts.close(state, debt, reason)
        elif debt.room is not None and not _still_room(work.session, debt):
            drop_room(state, debt)
            debt.dirty = True
        else:
            continue
        if gang is not None:
            state.gangs.touch(gang)


def next_ms(state: State) -> int | None:
    """When the next debt expires."""
    return min((debt.until_ms for debt in state.debts.by_uid.values()), default=None)


def _until(work: CycleWork, gang: Gang, *, started: bool) -> int:
    """Until when room for a member lost now is owed; 0: it is not."""
    if started:
        wanted_ms = hold_ms(gang, work.defaults)
        return work.now_ms + wanted_ms if wanted_ms else 0
    repair = gang.history.notes.get("repair")
    return repair.until_ms if repair is not None else 0


def _drop(state: State, gang: Gang | None) -> None:
    """A gang of which nothing exists was kept for what is now not owed."""
    if gang is not None:
        state.gangs.drop_if_empty(gang)


def _owed(state: State, gang: Gang, loss: Loss) -> bool:
    """Whether the gang is to get the room of what it lost, as the picture is now."""
    if successors.is_living(state, loss.workload, loss.part) and successors.is_made_again(gang):
        started = gang.history.has_started and not gang.history.releasing
        return started and gang.key[0] != "pod" and hold_ms(gang, state.defaults) > 0
    if gang.key[0] == "pod" or _gone(gang) or (gang.key[0] == "name" and gang.group is None):
        return False
    if gang.history.has_started:
        return not (loss.plain and (gang.counts[SUCCEEDED] or _enough(gang)))
    return loss.owned and gang.have() > 0 and not _enough(gang)


def _gone(gang: Gang) -> bool:
    """Whether nothing of the gang is to be kept: it is ending, being deleted or released."""
    if gang.history.releasing or (gang.group is not None and gang.group.deleting):
        return True
    return _all_leaving(gang) or gang.all_ended


def _all_leaving(gang: Gang) -> bool:
    return gang.counts[LEAVING] == len(gang.members)


def _enough(gang: Gang) -> bool:
    """Whether every minimum holds with the members that it has."""
    return gang.have() >= max(gang.min_member, 1) and all(
        gang.have(role) >= count for role, count in gang.role_minima
    )


def _hold_there(work: CycleWork, debt: Debt, gang: Gang) -> None:
    """Keep the room that the lost pod just left, if the node would still take the shape."""
    state, session = work.state, work.session
    slot = state.nodes.find(debt.lost_on)
    if slot is None or not gang.queue.headroom(debt.shape, 1):
        return
    if any(node == debt.lost_on for _, node in gang.history.bad):
        return
    if session.fits.takes(debt.shape, slot):
        keep_room(state, debt, slot, adopted=False)


def _pass_on(state: State) -> None:
    """Find the gang of each debt: its own, or the successor that its workload has made."""
    orphans: list[Debt] = []
    for debt in state.debts.by_uid.values():
        if debt.gang is None and (gang := _gang_of(state, debt)) is not None:
            state.debts.attach(debt, gang)
        gang = debt.gang
        if debt.workload and gang is not None and not gang.living:
            orphans.append(debt)
    if not orphans:
        return
    found = successors.find_successors(state, {debt.workload for debt in orphans})
    for debt in orphans:
        successor = found.get((debt.workload, debt.part))
        if successor is not None and debt.gang is not None:
            state.gangs.touch(debt.gang)
            state.debts.pass_on(debt, successor)
            state.gangs.touch(successor)


def _gang_of(state: State, debt: Debt) -> Gang | None:
    """The gang of a debt that was read from the log; None: the picture does not show it yet."""
    gang = state.gangs.by_id.get(debt.gang_id)
    if gang is not None or debt.gang_key is None or not _is_shown(state, debt):
        return gang
    if not successors.is_living(state, debt.workload, debt.part):
        return None
    kept = Kept(debt.queue, debt.priority)
    return state.gangs.keep_vacant(debt.gang_key, debt.gang_id, kept, debt.at_ms)


def _is_shown(state: State, debt: Debt) -> bool:
    """Whether the picture is as new as the debt's note: before, its gang may still be to come."""
    return bool(state.view.epoch) and state.view.cluster_seq >= debt.cluster_seq


def _follow_restart(debt: Debt, gang: Gang) -> None:
    """What is owed to a gang of which nothing is left is owed to what its workload makes again."""
    if debt.workload and debt.reason != RESTARTED and not gang.living:
        debt.reason, debt.dirty = RESTARTED, True


def _admit(state: State, gang: Gang) -> None:
    """A successor needs no admission: its predecessor was admitted, and what is held counts as used
    already.
    """
    if not gang.admitted and gang.group is not None:
        gang.admitted = True
        state.gangs.unadmitted.pop(gang.key, None)
        state.gangs.lobby.take(gang)
        state.gangs.touch(gang)


def _end_of(state: State, debt: Debt, gang: Gang | None, now_ms: int) -> str:
    """Why the debt ends now; "" while it lasts."""
    if gang is None:
        if _is_shown(state, debt):
            return "GroupGone"
    elif reason := _end_by_gang(state, debt, gang):
        return reason
    return "Expired" if debt.until_ms <= now_ms else ""


def _end_by_gang(state: State, debt: Debt, gang: Gang) -> str:
    if gang.history.releasing:
        return "Released"
    member = state.members.get(debt.uid)
    if member is not None and member.state in {PLACED, RUNNING}:
        return "Returned"
    if debt.workload and not successors.is_living(state, debt.workload, debt.part):
        return "WorkloadEnded"
    if not debt.workload and _is_over(state, debt, gang):
        return "GroupGone"
    if debt.reserving and (reason := reservation.end_of(state, gang)):
        return reason
    finished = gang.members and gang.all_ended and not debt.workload
    if finished or (debt.reason == DELETED and gang.counts[SUCCEEDED]):
        return "Finished"
    if debt.repairing and "repair" not in gang.history.notes:
        return "RepairEnded"
    if debt.reason == RESTARTED:
        return "ScaledDown" if _is_whole(state, gang) else ""
    unknown = debt.workload and not gang.size_known
    return "ScaledDown" if debt.reason == DELETED and _enough(gang) and not unknown else ""


def _is_whole(state: State, gang: Gang) -> bool:
    """Whether a gang that was made again has its minima, and what `minResources` asks for; until
    its object is there, nobody knows them.
    """
    if not gang.size_known or not _enough(gang):
        return False
    wanted = gang.group.min_resources if gang.group is not None else None
    if not wanted:
        return True
    asked: dict[int, int] = {}
    for member in gang.members.values():
        if member.state in {ASSUMED, PLACED, RUNNING, SUCCEEDED}:
            for row, amount in member.shape.pairs:
                asked[row] = asked.get(row, 0) + amount
    rows = [(state.resources.find(name), amount) for name, amount in wanted]
    return all(asked.get(row, 0) >= amount for row, amount in rows if row is not None)


def _is_over(state: State, debt: Debt, gang: Gang) -> bool:
    """Whether the gang is gone or being deleted."""
    if state.gangs.gangs.get(gang.key) is not gang:
        return True
    if gang.group is not None and gang.group.deleting:
        return True
    # Who lost all members with their node gets them again; otherwise somebody deleted them.
    return _all_leaving(gang) and (debt.reason != NODE_LOST or gang.group is None)


def _still_room(session: Session, debt: Debt) -> bool:
    """Whether the node still takes the shape, and nobody has over-filled it."""
    room = debt.room
    assert room is not None
    if not session.fits.masks.mask(debt.shape)[room.slot]:
        return False
    session.ground.fit_cells()
    cells = session.ground.free.cells
    return all(cells[row, room.slot] >= 0 for row, _ in debt.shape.pairs)


def _follow_group(debt: Debt, gang: Gang) -> None:
    """A group made again under its name has another id, and inherits what is owed."""
    if debt.gang_id != gang.gang_id:
        debt.gang_id = gang.gang_id
        debt.dirty = True
        if debt.room is not None:
            debt.room.owner = gang.gang_id


def _mind_clock(debt: Debt, now_ms: int) -> None:
    """A clock set back must not make a hold last until it has caught up."""
    if now_ms < debt.at_ms - _CLOCK_STEP_MS:
        debt.until_ms += now_ms - debt.at_ms
        debt.at_ms = now_ms
        debt.dirty = True
        if debt.room is not None:
            debt.room.until_ms = debt.until_ms
