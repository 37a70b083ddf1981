"""Follows open preemptions to their ends: the gang takes the capacity over, or a reason ends it.

| what is seen | what follows |
| --- | --- |
| all victims have left | the gang is placed: where the eviction said, or wherever it fits |
| enough free capacity elsewhere, before that | the gang is placed there |
| an answer that a victim, or a binding of the gang, was refused | EvictionRefused |
| no answer in time; victims that do not leave | Unanswered; VictimsStayed |
| victims gone, and no place for the gang any more | PlacementLost |
| the gang gone, or waiting for something else or for nothing | Gone; NotNeeded |

Each step can be repeated: a planner that takes over finds the decision, its answer and the victims,
and continues from there. The backoff after a preemption that failed follows from the record of its
end, so that a restart, or another planner, continues in the same way.
"""

from typing import Final

from services.gang_planner.core.allocation.decision import FoundPlacement, decide
from services.gang_planner.core.allocation.gang_allocation import find_placement
from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.framework.statement import Allocation, Statement
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.queueing.need import need_of
from services.gang_planner.core.state.gang_history import History
from services.gang_planner.core.state.gangs import Gang, Member
from services.gang_planner.core.state.needs import Need
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.preemptions import (
    Preemption,
    devices_held,
    not_evicted,
    refused_victims,
)
from shared.contracts.decisions import EvictionDecision, NoteClosed
from shared.contracts.outcomes import Outcome, refusal_without_words
from shared.contracts.pending_reasons import PendingReason

#: Its gang is gone, or no longer waits for capacity.
GONE: Final = "Gone"
NOT_NEEDED: Final = "NotNeeded"
#: The API server refused a victim or a binding of the gang, for a budget or a policy.
REFUSED: Final = "EvictionRefused"
#: No binder has answered.
UNANSWERED: Final = "Unanswered"
#: Victims are still there.
STAYED: Final = "VictimsStayed"
#: All victims are gone, and the gang does not fit where they were any more.
LOST: Final = "PlacementLost"
#: Ends after which no pod is evicted for the gang for a while.
_FAILURES: Final = frozenset({REFUSED, UNANSWERED, STAYED, LOST})
#: First pause; each further failure in a row doubles it, up to five minutes.
_PAUSE_MS: Final = 2_000
_PAUSE_MS_MAX: Final = 300_000
#: A victim that was refused is no candidate for this long.
SPARED_MS: Final = 60_000
#: Binders do not start an eviction after that.
ANSWER_MS: Final = 60_000
#: A binder that started in time has answered by then.
_ANSWERED_MS: Final = ANSWER_MS + 30_000
#: A clock that goes back by more than this was set back.
_CLOCK_STEP_MS: Final = 1_000


def follow(work: CycleContext) -> None:
    """Take every open preemption further."""
    state = work.state
    for preemption in state.preemptions.opened:
        gang = preemption.gang
        if preemption.seq == 0 or (gang is not None and gang.key in state.gangs.changed):
            # Not in the log yet; or its gang is assessed first.
            continue
        if work.now_ms < preemption.at_ms - _CLOCK_STEP_MS:
            preemption.at_ms = work.now_ms
        reason, words = _end_of(work, preemption)
        if reason:
            _end(work, preemption, reason, words)
            continue
        if gang is None:
            # This cluster state is older than the decision: a newer one has the gang, or ends it.
            continue
        # An older cluster state does not have the victims' ends.
        shown = state.view.cluster_seq >= preemption.act.cycle.cluster_seq
        there = _there(state.members, preemption)
        left = shown and not there and not devices_held(state, preemption)
        if (left or preemption.tried != state.node_capacity.freed) and not _place(
            work, preemption, gang
        ):
            if left:
                _end(work, preemption, LOST, "it does not fit where its victims were")
                continue
            preemption.tried = state.node_capacity.freed
        if not preemption.ended:
            answered_ms = preemption.at_ms + _ANSWERED_MS
            unanswered = preemption.outcome is None and work.now_ms < answered_ms
            work.timers.set(answered_ms if unanswered else preemption.until_ms, gang)


def _end_of(work: CycleContext, preemption: Preemption) -> tuple[str, str]:
    """Why it ends now, and a message; "" while it lasts."""
    state, gang = work.state, preemption.gang
    if gang is None:
        newer = state.view.cluster_seq >= preemption.act.cycle.cluster_seq
        return (GONE, "") if newer else ("", "")
    if gang.pending_reason is not PendingReason.PREEMPTING:
        return NOT_NEEDED, gang.pending_reason.value if gang.pending_reason else ""
    if preemption.outcome is not None and (preemption.outcome.reason or not_evicted(preemption)):
        return REFUSED, _refusal_words(preemption.act, preemption.outcome)
    there = _there(work.state.members, preemption)
    if preemption.outcome is None and there:
        waited = work.now_ms >= preemption.at_ms + _ANSWERED_MS
        return (UNANSWERED, "no binder answered") if waited else ("", "")
    if not all(there) and work.now_ms >= preemption.at_ms + _ANSWERED_MS:
        return STAYED, f"{there.count(False)} of {len(preemption.act.victims)} pods do not leave"
    if there and work.now_ms >= preemption.until_ms:
        return STAYED, f"{len(there)} of {len(preemption.act.victims)} pods are still there"
    if work.now_ms >= preemption.until_ms and devices_held(state, preemption):
        return STAYED, "claims still have the devices that it needs"
    return "", ""


def _refusal_words(act: EvictionDecision, outcome: Outcome) -> str:
    """Why pods were not evicted, for the preemptor's users: the API server's words about a pod of
    its own, but only the kind of a refusal to evict another one, which they may not be allowed to
    read. The binder logs the words.
    """
    own = {binding.uid for binding in act.bindings}
    for each in outcome.members:
        if each.result == "skipped":
            continue
        if each.uid not in own:
            return refusal_without_words(each)
        if each.message or each.reason:
            return each.message or each.reason
    return outcome.reason


def _there(members: dict[str, Member], preemption: Preemption) -> list[bool]:
    """Of each victim that is on its node, whether it is leaving."""
    known = [members.get(victim.uid) for victim in preemption.act.victims]
    there = [member for member in known if member is not None and member.slot is not None]
    return [member.pod.deleting for member in there]


def _end(work: CycleContext, preemption: Preemption, reason: str, words: str) -> None:
    state, gang = work.state, preemption.gang
    refused = refused_victims(preemption)
    state.preemptions.end(state, preemption)
    work.notes.append(
        NoteClosed(
            gang_id=preemption.act.gang_id,
            epoch=state.epoch,
            kind="preemption",
            at_ms=work.now_ms,
            reason=reason,
            pod_uids=refused,
            cycle=work.cycle,
            message=words,
        )
    )
    if gang is None:
        return
    _count_failure(gang.history, reason, work.now_ms, refused, words)
    if gang.history.preempt_after_ms > work.now_ms:
        work.timers.set(gang.history.preempt_after_ms, gang)
    state.gangs.touch(gang)


def _place(work: CycleContext, preemption: Preemption, gang: Gang) -> bool:
    """Place the gang with the capacity that is reserved for it: on the same nodes if it still fits
    there, otherwise wherever it fits.
    """
    state = work.state
    need = need_of(state, gang)
    if not need.wanted:
        return False
    freed = state.node_capacity.freed
    state.backlog.put(gang, need, work.session.policies.order(gang))
    places = _places(preemption)
    state.preemptions.release(state, preemption)
    statement = _exactly(work.session, gang, need, places) if need.structure is None else None
    placed = find_placement(work, gang) if statement is None else FoundPlacement(statement, [])
    if placed is None:
        state.backlog.take(gang)
        state.preemptions.sync_one(state, preemption)
        state.node_capacity.freed = freed
        return False
    decide(work, gang, placed._replace(preemption=preemption.seq))
    taken_over(state, preemption)
    work.took_over.add(gang.key)
    return True


def _places(preemption: Preemption) -> dict[tuple[str, int], dict[int, int]]:
    """How many members of each role and shape have reservations on each node."""
    places: dict[tuple[str, int], dict[int, int]] = {}
    for uid, (reservation, gang) in preemption.reservations.items():
        key = gang.members[uid].pod.role, reservation.shape.id
        counts = places.setdefault(key, {})
        counts[reservation.slot] = counts.get(reservation.slot, 0) + 1
    return places


def _exactly(
    session: Session, gang: Gang, need: Need, places: dict[tuple[str, int], dict[int, int]]
) -> Statement | None:
    """The placement that was proven, if it still fits and suffices; None: nothing is taken."""
    statement = Statement(session.node_capacity, gang.queue)
    avoid = set(session.node_capacity.nodes.slots_of(need.avoid).tolist())
    wanted = {(role, shape_id): count for role, shape_id, count in need.wanted}
    placed: dict[str, int] = {}
    for (role, shape_id), counts in sorted(places.items()):
        shape = session.shapes.entries[shape_id]
        total = sum(counts.values())
        fits = session.fits.counts(shape)
        if (
            total > wanted.get((role, shape_id), 0)
            or gang.queue.headroom(shape, total) < total
            or any(slot in avoid or fits[slot] < count for slot, count in counts.items())
        ):
            statement.discard()
            return None
        statement.allocate(Allocation.of(role, shape, counts))
        placed[role] = placed.get(role, 0) + total
    enough = sum(placed.values()) >= max(need.quorum, 1) and all(
        placed.get(role, 0) >= least for role, least in need.minima
    )
    if not enough:
        statement.discard()
        return None
    return statement


def _count_failure(
    history: History, reason: str, at_ms: int, refused: tuple[str, ...], words: str
) -> None:
    """Begin or extend the backoff of a gang whose preemption has ended, if it failed."""
    if reason not in _FAILURES:
        return
    history.preemptions_failed += 1
    lasts_ms = min(_PAUSE_MS << min(history.preemptions_failed - 1, 16), _PAUSE_MS_MAX)
    history.preempt_after_ms = at_ms + lasts_ms
    history.preemption_ended = f"{reason}: {words}" if words else reason
    history.spared = {uid: until for uid, until in history.spared.items() if until > at_ms}
    history.spared.update(dict.fromkeys(refused, at_ms + SPARED_MS))


def taken_over(state: State, preemption: Preemption) -> None:
    """End a preemption whose capacity a decision takes over, and its gang's backoff."""
    state.preemptions.end(state, preemption)
    gang = preemption.gang or state.gangs.find(preemption.act.gang_id)
    if gang is not None:
        history = gang.history
        history.preemptions_failed = history.preempt_after_ms = 0
        history.preemption_ended = None
        history.spared = {}


def recall(state: State, closed: NoteClosed) -> None:
    """Apply a record of the log that ends a gang's preemption."""
    preemption = state.preemptions.find(closed.gang_id)
    if preemption is None:
        return
    state.preemptions.end(state, preemption)
    gang = preemption.gang or state.gangs.find(closed.gang_id)
    history = gang.history if gang is not None else state.gangs.history(closed.gang_id)
    _count_failure(history, closed.reason, closed.at_ms, closed.pod_uids, closed.message)
