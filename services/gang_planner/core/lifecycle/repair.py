"""Repair: completes starting gangs that are partly bound, ahead of all other gangs.

From the first binding in CLUSTER until its quorum is placed, a gang is *partial*. For most gangs
that takes milliseconds, and no note is written. A repair is opened when an outcome reports a member
that was not bound, when a bound member is lost, or after a second. It ends when the gang has
started, when none of its members is bound any more, or with a release:

* at once, if a policy refused a member that the quorum needs: another node would not help;
* when the repair's deadline passes;
* when two repairs block each other: the later one in order is released (`unblock`).

If no controller would recreate the pods, nothing is released. The repair stays open beyond its
deadline, the gang's missing members stay ahead of other gangs, and the condition PartlyBound names
its bound pods.
"""

from collections.abc import Sequence
from typing import Final

from services.gang_planner.core.allocation import gang_allocation
from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.lifecycle import backoff, release
from services.gang_planner.core.lifecycle.assessment import starts
from services.gang_planner.core.placement import gang_placement
from services.gang_planner.core.placement.attempt import PlacementRequest
from services.gang_planner.core.placement.session import Session, in_turns
from services.gang_planner.core.preemption.trial import Trial
from services.gang_planner.core.queueing.need import members_max, refused_members
from services.gang_planner.core.state.gang_history import Failure
from services.gang_planner.core.state.gang_settings import repair_deadline_ms
from services.gang_planner.core.state.gang_states import GangEvent
from services.gang_planner.core.state.gangs import Gang, Member
from services.gang_planner.core.state.holds import HoldTable
from services.gang_planner.core.state.member_states import ASSUMED, WAITING
from services.gang_planner.core.state.titles import title_of
from shared.contracts.pending_reasons import PendingReason
from shared.model.invariants import required

#: A gang may be partial this long without a note.
QUIET_MS: Final = 1_000
#: At most this much of the time before the note counts towards the deadline, because the time of
#: the first binding is that of another machine's clock.
_CREDIT_MS_MAX: Final = 2_000
_INCOMPLETE: Final = "QuorumNotPlaced"
_LOST: Final = "MemberLost"


def partial(gang: Gang) -> bool:
    """Whether the gang is starting, some members are bound, and its quorum is not placed."""
    history = gang.history
    starting = not history.started and not history.dormant
    return bool(starting and history.attempt and gang.bound and not starts(gang))


def is_open(gang: Gang) -> bool:
    """Whether the gang has a repair, or is being released for another one: until its capacity is
    free, `unblock` releases no further gang.
    """
    release_note = gang.history.notes.release
    gives_way = release_note is not None and release_note.reason == PendingReason.REPAIRS_BLOCKED
    return gives_way or gang.history.repairing


def take_failures(work: CycleContext, gang: Gang, failures: Sequence[Failure]) -> None:
    """Release the gang, or open a pause, after outcomes reported members that were not bound."""
    history = gang.history
    if history.releasing:
        return
    refused = next((failure for failure in failures if failure.result == "refused"), None)
    if refused is not None:
        gang.refusal = refused.message
    if (
        refused is not None
        and not history.started
        and not starts(gang)
        and _needs_refused_member(gang)
        and release.begin(
            work, gang, GangEvent.MEMBER_REFUSED, PendingReason.BINDING_REFUSED, refused.message
        )
    ):
        return
    backoff.pause_after(work, gang, failures)


def watch(work: CycleContext, gang: Gang, failures: Sequence[Failure]) -> None:
    """Open, continue or end the gang's repair."""
    history = gang.history
    if not partial(gang):
        if history.repairing:
            event = GangEvent.QUORUM_PLACED if starts(gang) else GangEvent.NOTHING_BOUND
            work.report(gang, event)
        elif history.notes.repair is not None:
            # The log ended after the release's note, before the end of the repair.
            work.close_note(gang, "repair", "Started" if starts(gang) else "NothingBound")
    elif history.repairing:
        _continue(work, gang)
    elif not history.releasing:
        _open_when_due(work, gang, failures)
    if is_open(gang):
        work.state.repairs[gang.key] = gang
    else:
        work.state.repairs.pop(gang.key, None)


def place_first(work: CycleContext) -> None:
    """Place the missing members of gangs under repair, in order, before all other gangs."""
    for gang in in_turns(work.session, in_order(work)):
        bucket = gang.bucket
        if bucket is None or bucket.refused_at == work.state.node_capacity.freed:
            continue
        if work.session.exhausted:
            return
        if not gang_allocation.place_gang(work, gang):
            gang_allocation.refuse(work, bucket)


def unblock(work: CycleContext) -> None:
    """Release gangs whose repairs block the first one in order: the last ones, as few as let the
    first gang be completed.
    """
    if any(gang.history.releasing for gang in work.state.repairs.values()):
        return
    blocked = [
        gang
        for gang in in_order(work)
        if gang.bucket is not None and gang.bucket.reason is not None
    ]
    if len(blocked) < 2:
        return
    first, *others = blocked
    for gang in _gangs_to_release(work, first, others):
        other = (
            title_of(work.state, first)
            if first.namespace == gang.namespace
            else "a gang of another namespace"
        )
        release.begin(
            work,
            gang,
            GangEvent.REPAIRS_BLOCKED,
            PendingReason.REPAIRS_BLOCKED,
            f"it and {other} each had a part of the capacity that one of them needs",
        )


def in_order(work: CycleContext) -> list[Gang]:
    return sorted(work.state.repairs.values(), key=work.session.policies.order)


def _open_when_due(work: CycleContext, gang: Gang, failures: Sequence[Failure]) -> None:
    pending = work.state.holds.pending.values()
    lost = next((loss.message for loss in pending if loss.key == gang.key), "")
    bound_ms = work.state.view.local_ms(gang.bound_ms)
    due_ms = bound_ms + QUIET_MS
    if not failures and not lost and work.now_ms < due_ms:
        work.timers.set(min(due_ms, work.now_ms + QUIET_MS), gang)
        return
    credit_ms = min(max(work.now_ms - bound_ms, 0), _CREDIT_MS_MAX)
    lasts_ms = max(repair_deadline_ms(gang, work.state.defaults) - credit_ms, 0)
    reason, message = _cause(gang, failures, lost)
    work.report(
        gang,
        GangEvent.REPAIR_NEEDED,
        reason=reason,
        message=message,
        until_ms=work.now_ms + lasts_ms,
    )


def _cause(gang: Gang, failures: Sequence[Failure], lost: str) -> tuple[str, str]:
    """The reason and the message of a repair's note."""
    note = gang.history.notes.backoff
    if note is not None:
        return note.reason, note.message
    if failures:
        return backoff.FAILED, backoff.first_cause(failures).message
    return (_LOST, lost) if lost else (_INCOMPLETE, "")


def _continue(work: CycleContext, gang: Gang) -> None:
    lasts_ms = repair_deadline_ms(gang, work.state.defaults)
    note = required(gang.history.notes.repair, gang.full_name, "is under repair without a note")
    if not work.has_passed(gang, note, lasts_ms):
        return
    words = _incomplete_words(gang, lasts_ms)
    release.begin(
        work, gang, GangEvent.REPAIR_DEADLINE_PASSED, PendingReason.REPAIR_DEADLINE, words
    )


def _incomplete_words(gang: Gang, lasts_ms: int) -> str:
    """A message: how many members were placed, and why the other members were not."""
    needed = max(gang.min_member, 1)
    words = f"{gang.placed()} of {needed} members were placed within {lasts_ms // 1000} s"
    notes = gang.history.notes
    for note in (notes.backoff, notes.repair):
        if note is not None and note.message:
            return f"{words}; {note.message}"
    if gang.able() < needed:
        return f"{words}; the other members do not exist"
    # The backlog is not read: a replay lacks refusals of cycles that wrote no records.
    return f"{words}; the other members found no free capacity"


def _needs_refused_member(gang: Gang) -> bool:
    """Whether the quorum needs a member that a policy refused, on any node."""
    refused = refused_members(gang)
    waiting = [
        member.pod.role
        for uid, member in gang.members.items()
        if member.state == WAITING and uid not in refused
    ]
    if gang.have() + len(waiting) < max(gang.min_member, 1):
        return True
    return any(gang.have(role) + waiting.count(role) < least for role, least in gang.role_minima)


def _gangs_to_release(work: CycleContext, first: Gang, others: Sequence[Gang]) -> list[Gang]:
    """The last of the other gangs, as few as let the first gang fit without their bound pods; empty
    if it would not fit without all of them.

    A gang with members in flight cannot be released now, so its capacity is not counted.
    """
    chosen: dict[Gang, list[Member]] = {}
    with Trial(work.state) as trial:
        for gang in reversed(others):
            pods = [member for member in gang.members.values() if release.deletable(member)]
            if not pods or gang.counts[ASSUMED]:
                continue
            trial.take_away(pods)
            chosen[gang] = pods
            if _would_fit(work.state.holds, work.session, first):
                break
        else:
            return []
        # The first gang may also fit without one that was chosen before the last one.
        for gang, pods in list(chosen.items())[:-1]:
            if work.session.exhausted:
                break
            trial.put_back(pods)
            if _would_fit(work.state.holds, work.session, first):
                del chosen[gang]
            else:
                trial.take_away(pods)
    return list(chosen)


def _would_fit(holds: HoldTable, session: Session, gang: Gang) -> bool:
    need = required(gang.bucket, gang.full_name, "is under repair and does not wait").need
    most = members_max(holds, session.node_capacity, gang, need)
    request = PlacementRequest(queue=gang.queue, need=need, members_max=most)
    return gang_placement.fits(session, request)
