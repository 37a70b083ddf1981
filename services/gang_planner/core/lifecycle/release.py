"""Release: deletes the bound pods of a gang that cannot be completed, to free its capacity, or that
has run for as long as its run limit allows. At the limit, pods that no controller creates again are
deleted as well.

The release note is written first. Once it is in the log, no member of the gang is planned or held.
The planner waits while a binding decision of the gang is unanswered, because its POSTs may still
arrive. Then one `EvictionDecision` names all bound members that a controller creates again. Members
that are bound later get another decision, and so do members that still exist some time after an
answer. The release ends when no member is bound, terminating or assumed. A pause follows, and all
later attempts are pre-flighted.

Every step can be repeated: victims are named by UID, and the state after a restart determines the
next step (a note without decision, a decision without outcome, an outcome with existing victims).
"""

from typing import Final

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.lifecycle import backoff
from services.gang_planner.core.lifecycle.assessment import starts
from services.gang_planner.core.state.decision_sizes import parts_of
from services.gang_planner.core.state.gang_states import GangEvent
from services.gang_planner.core.state.gangs import Gang, Member
from services.gang_planner.core.state.in_flight import LATE_RESERVATION_MS, is_old
from services.gang_planner.core.state.member_states import ASSUMED, LEAVING, PLACED, RUNNING
from services.gang_planner.core.state.release_costs import release_cost
from services.gang_planner.core.state.reservations import OpenEviction
from shared.contracts.decisions import EvictionDecision, NoteOpened, Victim
from shared.contracts.identity import gang_trace_id
from shared.contracts.pending_reasons import PendingReason
from shared.model.gang_keys import scope_of

#: A victim that still exists this long after its decision, with an outcome, is decided again.
_AGAIN_MS: Final = 10_000
_BOUND: Final = frozenset({PLACED, RUNNING})
_HELD: Final = _BOUND | {ASSUMED}


def made_again(member: Member) -> bool:
    """Whether a controller recreates the pod after it is deleted."""
    return release_cost(member.pod.owner) != "for ever"


def deletable(member: Member, reason: str = "") -> bool:
    """Whether a release for this reason would delete the pod: it is bound, and a controller
    recreates it, or its run has ended.
    """
    return member.state in _BOUND and (reason == PendingReason.RUN_LIMIT or made_again(member))


def worthwhile(gang: Gang, reason: str = "") -> bool:
    """Whether a release for this reason would delete any member that is bound or in flight."""
    ends = reason == PendingReason.RUN_LIMIT
    members = gang.members.values()
    return any(member.state in _HELD and (ends or made_again(member)) for member in members)


def begin(
    work: CycleContext, gang: Gang, cause: GangEvent, reason: PendingReason, message: str
) -> bool:
    """Begin the gang's release. False: it is being released already, or has no members that can be
    released.

    `reason` and `message` are those of the release's note; the reason is the gang's pending reason
    until it is placed again.
    """
    if gang.history.releasing or not worthwhile(gang, reason):
        return False
    work.report(gang, cause, reason=reason.value, message=message)
    return True


def advance(work: CycleContext, gang: Gang) -> None:
    """Take the next step of the gang's release, if its note is in the log."""
    note = gang.history.notes.release
    if note is None or (gang.key, "release") in work.fresh or gang.key in work.released:
        return
    if not gang.history.started and starts(gang) and not _asked(work.state.evictions, gang):
        # A late binding completed the gang, and no deletion has been decided yet.
        work.report(gang, GangEvent.RELEASE_WITHDRAWN)
        return
    if gang.counts[ASSUMED]:
        return
    victims: list[Member] = []
    waits = False
    for member in gang.members.values():
        if deletable(member, note.reason):
            if _may_ask(work, gang, member.pod.uid):
                victims.append(member)
            waits = True
        elif (member.state == LEAVING and member.slot is not None) or _in_flight(
            work, gang, member
        ):
            waits = True
    if victims:
        _decide(work, gang, note, victims)
    elif not waits:
        until_ms = work.now_ms + backoff.pause_ms(gang)
        reason, message = note.reason, note.message
        work.report(gang, GangEvent.RELEASED, reason=reason, message=message, until_ms=until_ms)


def _asked(evictions: dict[int, OpenEviction], gang: Gang) -> bool:
    """Whether the deletion of any member has been decided."""
    return any(not eviction.uids.isdisjoint(gang.members) for eviction in evictions.values())


def _may_ask(work: CycleContext, gang: Gang, uid: str) -> bool:
    """Whether to decide the pod's deletion now: it was not decided, or the pod outlived it."""
    asked = [eviction for eviction in work.state.evictions.values() if uid in eviction.uids]
    if any(
        eviction.outcome is None and not is_old(eviction.act, work.now_ms) for eviction in asked
    ):
        return False
    again_ms = max((eviction.act.cycle.now_ms + _AGAIN_MS for eviction in asked), default=0)
    if work.now_ms >= again_ms or again_ms > work.now_ms + _AGAIN_MS:
        return True
    work.timers.set(again_ms, gang)
    return False


def _in_flight(work: CycleContext, gang: Gang, member: Member) -> bool:
    """Whether a late POST may still bind it."""
    rows = work.state.reservations.rows(member.pod.uid)
    for reservation in rows:
        work.timers.set(reservation.until_ms or work.now_ms + LATE_RESERVATION_MS, gang)
    return bool(rows)


def _decide(work: CycleContext, gang: Gang, note: NoteOpened, members: list[Member]) -> None:
    uids = {member.pod.uid for member in members}
    _forget_settled(work.state.evictions, uids, work.now_ms)
    attempt = max(gang.history.attempt, 1)
    pods = sorted((member.pod.namespace, member.pod.name, member.pod.uid) for member in members)
    victims = [Victim(uid=uid, namespace=namespace, name=name) for namespace, name, uid in pods]
    work.decisions.extend(
        EvictionDecision(
            gang_id=gang.gang_id,
            gang=gang.full_name,
            scope=scope_of(gang.key),
            epoch=work.state.epoch,
            attempt=attempt,
            victims=part,
            via="delete",
            reason=note.reason,
            why=note.message,
            trace_id=gang_trace_id(gang.trace_root, attempt),
            first_seen_ms=gang.history.first_seen_ms,
            cycle=work.cycle,
            traceparent=gang.group.traceparent if gang.group is not None else "",
        )
        for part in parts_of(victims)
    )
    work.released.add(gang.key)


def _forget_settled(evictions: dict[int, OpenEviction], uids: set[str], now_ms: int) -> None:
    """Drop earlier decisions on the same pods that have an outcome or that the log will drop."""
    for seq, eviction in list(evictions.items()):
        settled = eviction.outcome is not None or is_old(eviction.act, now_ms)
        if settled and eviction.uids <= uids:
            del evictions[seq]
