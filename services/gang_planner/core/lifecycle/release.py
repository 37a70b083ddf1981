"""Release: what is bound of a gang that cannot be whole is deleted, so that it holds nothing.

The note comes first, and once it is in the log nothing of the gang is planned or held. Deciding
waits while a binding decision of the gang is unanswered: its POSTs may still land. Then all bound
members that a controller makes again are victims of one `EvictionDecision`; whatever is shown bound
later gets another, and so does what is still there some time after an answer. The release is over
when nothing of it is bound, terminating or assumed; a pause follows, and all later attempts are
pre-flighted.

Every step can be repeated: victims are named by UID, and what a restart finds (a note without
decision, a decision without outcome, an outcome with victims still shown) says what is next.
"""

from typing import Final

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.lifecycle import backoff
from services.gang_planner.core.lifecycle.assessment import starts
from services.gang_planner.core.lifecycle.effects import report
from services.gang_planner.core.lifecycle.reissue import is_old
from services.gang_planner.core.state.gang_states import GangEvent
from services.gang_planner.core.state.gangs import Gang, Member
from services.gang_planner.core.state.in_flight import LATE_RESERVATION_MS
from services.gang_planner.core.state.member_states import ASSUMED, LEAVING, PLACED, RUNNING
from services.gang_planner.core.state.release_costs import release_cost
from shared.contracts.decisions import EvictionDecision, Victim
from shared.contracts.identity import gang_trace_id

#: What is still shown this long after it was to be deleted, and was answered for, is decided again.
_AGAIN_MS: Final = 10_000
_BOUND: Final = frozenset({PLACED, RUNNING})


def made_again(member: Member) -> bool:
    """Whether a controller makes the pod again when it is deleted."""
    return release_cost(member.pod.owner) != "for ever"


def deletable(member: Member) -> bool:
    """Whether a release would delete the pod: it is bound, and a controller makes it again."""
    return member.state in _BOUND and made_again(member)


def worthwhile(gang: Gang) -> bool:
    """Whether there is, or may soon be, anything to release: bound or in flight, and made again."""
    return any(
        deletable(member) or (member.state == ASSUMED and made_again(member))
        for member in gang.members.values()
    )


def begin(work: CycleContext, gang: Gang, cause: GangEvent, reason: str, message: str) -> bool:
    """Begin the gang's release, if it has members that can be released.

    Args:
        work: The cycle.
        gang: The gang.
        cause: The event that makes the release necessary.
        reason: The same in CamelCase, for the note.
        message: The same in words.

    Returns:
        Whether the gang is released from now on.
    """
    if gang.history.releasing or not worthwhile(gang):
        return False
    report(work, gang, cause, reason=reason, message=message)
    return True


def advance(work: CycleContext, gang: Gang) -> None:
    """Take the gang's release one step further, if it has one in the log."""
    note = gang.history.notes.get("release")
    if note is None or (gang.key, "release") in work.fresh or gang.key in work.released:
        return
    if not gang.history.started and starts(gang) and not _asked(work, gang):
        # A late binding completed it, and no deletion has been decided yet.
        report(work, gang, GangEvent.RELEASE_WITHDRAWN)
        return
    if gang.counts[ASSUMED]:
        return
    victims: list[Member] = []
    waits = False
    for member in gang.members.values():
        if deletable(member):
            if _may_ask(work, gang, member.pod.uid):
                victims.append(member)
            waits = True
        elif (member.state == LEAVING and member.slot >= 0) or _in_flight(work, gang, member):
            waits = True
    if victims:
        _decide(work, gang, victims)
    elif not waits:
        _end(work, gang)


def _asked(work: CycleContext, gang: Gang) -> bool:
    """Whether the deletion of any member has been decided."""
    return any(not one.uids.isdisjoint(gang.members) for one in work.state.evictions.values())


def _end(work: CycleContext, gang: Gang) -> None:
    note = gang.history.notes["release"]
    report(
        work,
        gang,
        GangEvent.RELEASED,
        reason=note.reason,
        message=note.message,
        until_ms=work.now_ms + backoff.pause_ms(gang),
    )


def _may_ask(work: CycleContext, gang: Gang, uid: str) -> bool:
    """Whether the pod's deletion is to be decided now: not asked for, or answered in vain."""
    asked = [one for one in work.state.evictions.values() if uid in one.uids]
    if any(one.outcome is None and not is_old(one.act, work.now_ms) for one in asked):
        return False
    again_ms = max((one.act.cycle.now_ms + _AGAIN_MS for one in asked), default=0)
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


def _decide(work: CycleContext, gang: Gang, members: list[Member]) -> None:
    state, note = work.state, gang.history.notes["release"]
    uids = {member.pod.uid for member in members}
    _forget_settled(work, uids)
    attempt = max(gang.history.attempt, 1)
    victims = sorted((one.pod.namespace, one.pod.name, one.pod.uid) for one in members)
    work.decisions.append(
        EvictionDecision(
            gang_id=gang.gang_id,
            gang=gang.full_name,
            epoch=state.epoch,
            attempt=attempt,
            victims=tuple(
                Victim(uid=uid, namespace=namespace, name=name) for namespace, name, uid in victims
            ),
            via="delete",
            reason=note.reason,
            why=note.message,
            trace_id=gang_trace_id(gang.trace_root, attempt),
            first_seen_ms=gang.history.first_seen_ms,
            cycle=work.cycle,
            traceparent=gang.group.traceparent if gang.group is not None else "",
        )
    )
    work.released.add(gang.key)


def _forget_settled(work: CycleContext, uids: set[str]) -> None:
    """What led to another decision on the same pods is of no more use: an answer, or none for so
    long that the log drops the question.
    """
    evictions = work.state.evictions
    for seq, one in list(evictions.items()):
        settled = one.outcome is not None or is_old(one.act, work.now_ms)
        if settled and one.uids <= uids:
            del evictions[seq]
