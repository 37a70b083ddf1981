"""What is decided and not yet done: open decisions, their room, and what outcomes say of them.

Keyed by pod UID: one open decision per pod, whatever its group. Only CLUSTER retires a decision; an
outcome ends the room of a member that was definitely refused, or lets the member be planned
elsewhere while its room stays a while. What an outcome calls bound and a later epoch's snapshot
keeps showing unbound was forgotten by the API server.
"""

from typing import Final

from services.gang_planner.core.state import claim_choices
from services.gang_planner.core.state.accounting import assume, end_reservation, settle
from services.gang_planner.core.state.gang_history import Failure
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.member_states import ASSUMED, TERMINAL
from services.gang_planner.core.state.members import Assignments
from services.gang_planner.core.state.open_decisions import (
    OpenAct,
    OpenEviction,
    Unresolved,
    awaits_binders_alone,
)
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.preemptions import record_evicted
from services.gang_planner.core.state.reservations import UNDATED, Reservation
from shared.contracts.decisions import Act, EvictionDecision, GangDecision
from shared.contracts.outcomes import Member as Found
from shared.contracts.outcomes import MemberResult, Outcome

#: Room of a member whose POST may still be in flight: longer than any request timeout of a binder
#: or the API server.
LATE_RESERVATION_MS: Final = 120_000
#: A pod that an outcome calls bound and that the snapshot of a later epoch shows unbound counts as
#: bound this long: what was listed just before it was bound is corrected by the watch much sooner.
#: Then the API server has forgotten it (its storage was restored from a backup).
FORGOTTEN_MS: Final = 60_000
#: A decision that no binder has answered for so long is no longer reckoned to be before a binder:
#: it may be lost, or be tried again and again for a reason of its own (a webhook that answers for
#: its namespace alone), and others must not wait for it.
UNANSWERED_MS: Final = 30_000
#: A (pod, node) pair that failed is avoided this long.
BAD_PAIR_MS: Final = 60_000
#: Definite: the API server said no, or was not asked.
_DEFINITE: Final[frozenset[MemberResult]] = frozenset(
    {"refused", "conflict", "gone", "skipped", "unprepared"}
)


def adopt(
    state: State,
    gang: Gang,
    decision: GangDecision,
    assignments: Assignments,
    *,
    charged: bool,
) -> None:
    """Assume the bindings of a decision just made; the node capacity has been taken by its
    Statement. `charged`: its queue has been charged, too.
    """
    act = OpenAct(0, decision, counted=awaits_binders_alone(decision))
    state.unnumbered.append(act)
    state.reservations.adopt(act, assignments.members, assignments.slots)
    taken = gang.assume(assignments.members)
    if not charged:
        for (_, shape_id), count in taken.items():
            gang.queue.charge(state.shapes.entries[shape_id], count)
    if _all_begins(gang):
        state.gangs.starts(gang)
    else:
        state.gangs.touch(gang)


def _all_begins(gang: Gang) -> bool:
    """Whether all of a gang is assumed by its newest decision, and nothing is open of it."""
    history = gang.history
    if gang.counts[ASSUMED] != len(gang.members) or history.started or history.notes:
        return False
    return not (history.bad or gang.unread or gang.evicted)


def number(state: State, seq: int, decision: Act) -> None:
    """The log gave a decision of ours its sequence."""
    if isinstance(decision, EvictionDecision):
        if decision.via == "eviction":
            state.preemptions.number(seq, decision)
        else:
            state.evictions[seq] = OpenEviction(seq, decision)
        return
    if decision.again:
        _repeated(state, seq, decision)
        return
    act = state.unnumbered.popleft()
    assert act.act is decision, f"decision {seq} is not the next one that was made"
    act.seq = seq
    if act.rows:
        state.open[seq] = act


def recall(state: State, seq: int, decision: GangDecision) -> None:
    """Assume the bindings of a decision read from the log, on the same terms as one of ours."""
    if decision.again in state.open:
        _repeated(state, seq, decision)
        return
    claim_choices.recall(state, decision)
    history = state.gangs.history(decision.gang_id)
    history.attempt = max(history.attempt, decision.attempt)
    history.first_seen_ms = decision.first_seen_ms
    history.known_as = decision.gang_id
    history.full_name = decision.gang
    act = OpenAct(seq, decision, counted=awaits_binders_alone(decision))
    state.open[seq] = act
    state.unresolved[seq] = {
        one.uid: Unresolved(one, decision.gang_id, act, decision.cycle.cluster_seq)
        for one in decision.bindings
    }
    _resolve_decision(state, seq)


def _repeated(state: State, seq: int, decision: GangDecision) -> None:
    """A decision takes the place of the one that it repeats; what of that is settled stays so."""
    before = decision.again
    waiting = state.unresolved.pop(before, None)
    if waiting is not None:
        state.unresolved[seq] = waiting
    act = state.open.pop(before, None)
    if act is not None:
        state.reservations.settle(act, answered=False)
        act.repeat(seq, decision)
        state.open[seq] = act


def recall_eviction(state: State, seq: int, decision: EvictionDecision) -> None:
    """A release or preemption read from the log continues, and so does its wait for what a binder
    says. Victims of a preemption whose loss the cluster state has shown already are owed nothing.
    """
    if decision.via == "eviction":
        state.preemptions.recall(seq, decision)
        for victim in decision.victims:
            state.holds.settle(victim.uid)
    else:
        state.evictions[seq] = OpenEviction(seq, decision)
    early = state.early.pop(seq, None)
    if early is not None:
        _take_outcome(state, *early)


def forget_evictions(state: State, gang_id: str) -> None:
    """The gang's release is over; so is that of gangs that are known no more."""
    for seq, one in list(state.evictions.items()):
        if one.act.gang_id == gang_id or not (
            one.act.gang_id in state.gangs.by_id or one.act.gang_id in state.gangs.remembered
        ):
            del state.evictions[seq]


def resolve_all(state: State) -> None:
    """Cluster state advanced: settle the bindings that waited for it, oldest decision first."""
    for seq in sorted(state.unresolved):
        _resolve_decision(state, seq)


def _resolve_decision(state: State, seq: int) -> None:
    waiting = state.unresolved[seq]
    for uid, pending in list(waiting.items()):
        if _resolve(state, pending):
            del waiting[uid]
    if not waiting:
        _resolved(state, seq)


def _resolved(state: State, seq: int) -> None:
    """Every binding of a logged decision is matched with the cluster state; its outcome may count
    now.
    """
    del state.unresolved[seq]
    act = state.open.get(seq)
    if act is not None:
        claim_choices.forget(state, act.act)
        if not act.rows:
            del state.open[seq]
    early = state.early.pop(seq, None)
    if early is not None:
        _take_outcome(state, *early)


def apply_outcome(state: State, outcome_seq: int, outcome: Outcome) -> None:
    """Take in what a binder found; `outcome_seq` is its place in its log. Members that it does not
    list are bound, which CLUSTER will show.

    The logs are read side by side, so that an outcome may come before its decision, or before the
    cluster state in which its reservation is assumed: it is kept until then, or the reservation
    would never end.
    """
    seq = outcome.decision_seq
    if seq > state.view.decisions_seq or seq in state.unresolved:
        state.early[seq] = outcome_seq, outcome
        return
    _take_outcome(state, outcome_seq, outcome)


def _take_outcome(state: State, outcome_seq: int, outcome: Outcome) -> None:
    seq = outcome.decision_seq
    if seq in state.evictions or seq in state.preemptions.logged:
        _take_removal(state, outcome_seq, outcome)
        return
    delivered = outcome.delivered
    act = state.open.get(seq)
    if act is not None:
        state.reservations.settle(act, answered=True)
        act.outcome, act.outcome_seq = outcome, outcome_seq
        if act.act.preflight:
            _touch_waiting(state, act.act)
        # One that was repeated has been in binders' hands under its first number, too.
        delivered += 1 if act.act.again else 0
    for found in outcome.members:
        if found.result == "bound":
            continue
        for reservation in state.reservations.rows(found.uid):
            if reservation.act is not None and reservation.act.seq == seq:
                _take_in(state, reservation, found, outcome_seq, delivered=delivered)


def _touch_waiting(state: State, decision: GangDecision) -> None:
    """Others of the gang may have waited for the proof; it may have another id by now."""
    for binding in decision.bindings:
        member = state.members.get(binding.uid)
        if member is not None and member.gang is not None:
            state.gangs.touch(member.gang)


def _take_removal(state: State, outcome_seq: int, outcome: Outcome) -> None:
    """What became of a release or of an eviction for another gang."""
    eviction = state.evictions.get(outcome.decision_seq)
    if eviction is not None:
        eviction.outcome, eviction.outcome_seq = outcome, outcome_seq
        gang = state.gangs.by_id.get(eviction.act.gang_id)
    else:
        preemption = state.preemptions.logged[outcome.decision_seq]
        preemption.outcome, preemption.outcome_seq = outcome, outcome_seq
        gang = preemption.gang
        if outcome.evicted:
            record_evicted(state, preemption)
    if gang is not None:
        state.gangs.touch(gang)


def _take_in(
    state: State, reservation: Reservation, found: Found, outcome_seq: int, *, delivered: int
) -> None:
    """One member was not bound: its room ends or becomes late, it may be planned again."""
    if found.result in _DEFINITE and delivered == 1 and not found.late:
        end_reservation(state, reservation)
    elif reservation.reason == "assumed":
        state.reservations.becomes_late(reservation)
    member = state.members[found.uid]
    if member.reservation is reservation:
        member.reservation = None
        settle(state, member)
    gang = member.gang
    if gang is None:
        return
    if found.result in {"refused", "unknown", "unprepared"}:
        pair = found.uid, "" if found.result == "refused" else found.node
        if outcome_seq > state.view.consumed_seq or pair not in gang.history.bad:
            gang.history.bad[pair] = UNDATED
    words = found.message or found.reason or f"HTTP status {found.code}"
    gang.unread.append(
        Failure(found.uid, found.node, found.result, f"{member.pod.name}: {words}", outcome_seq)
    )
    state.gangs.touch(gang)


def date_late_reservations(state: State, now_ms: int) -> int | None:
    """Give late rows their deadline and end those whose deadline has come; returns the next
    deadline.
    """
    following: int | None = None
    for uid in list(state.reservations.late):
        for reservation in state.reservations.rows(uid):
            if reservation.reason != "late":
                continue
            if (
                reservation.until_ms == UNDATED
                or reservation.until_ms > now_ms + LATE_RESERVATION_MS
            ):
                # New, or dated before the clock was set back.
                reservation.until_ms = now_ms + LATE_RESERVATION_MS
            if reservation.until_ms <= now_ms:
                end_reservation(state, reservation)
            elif following is None or reservation.until_ms < following:
                following = reservation.until_ms
    return following


def overlook_unanswered(state: State, now_ms: int) -> int | None:
    """Take decisions that were not answered for long out of what is in flight; returns when the
    next one may be.
    """
    for one in state.open.values():
        due_ms = one.act.cycle.now_ms + UNANSWERED_MS
        if due_ms <= now_ms:
            state.reservations.settle(one, answered=False)
        elif one.counted:
            return due_ms
    return None


def end_forgotten(state: State, now_ms: int, *, fresh: bool) -> int | None:
    """End the room of members that the API server has forgotten to be bound, so that they are
    planned again; returns when to check next. While the cluster state is not `fresh`, it is
    unknown.

    No record of the decision's own epoch ends it: there the watch will show the binding.
    """
    following: int | None = None
    for one in list(state.open.values()):
        if one.outcome is None or one.act.cycle.cluster_seq >= state.view.epoch:
            continue
        until_ms = one.believed_until_ms
        if not until_ms or until_ms > now_ms + FORGOTTEN_MS or (until_ms <= now_ms and not fresh):
            # New, dated before the clock was set back, or cluster state is too old.
            until_ms = one.believed_until_ms = now_ms + FORGOTTEN_MS
        if until_ms <= now_ms:
            _forget_bindings(state, one)
        elif following is None or until_ms < following:
            following = until_ms
    return following


def _forget_bindings(state: State, act: OpenAct) -> None:
    for binding in act.act.bindings:
        for reservation in state.reservations.rows(binding.uid):
            if reservation.act is not act or reservation.reason != "assumed":
                continue
            end_reservation(state, reservation)
            member = state.members[binding.uid]
            member.reservation = None
            settle(state, member)
            if member.gang is not None:
                state.gangs.touch(member.gang)


def _resolve(state: State, pending: Unresolved) -> bool:
    """Assume one logged binding; False while the cluster state is too old to decide."""
    member = state.members.get(pending.binding.uid)
    if member is None:
        return state.view.epoch > 0 and state.view.cluster_seq >= pending.cluster_seq
    if member.pod.node or member.slot >= 0 or member.pod.phase in TERMINAL:
        return True
    reservation = Reservation(
        owner=pending.gang_id,
        uid=pending.binding.uid,
        shape=member.shape,
        slot=state.nodes.slot(pending.binding.node),
        act=pending.act,
    )
    assume(state, member, reservation, adopted=False)
    return True


def give_up_unresolved(state: State) -> None:
    """No snapshot will ever be new enough (CLUSTER was re-created): the pods are not there."""
    for seq in sorted(state.unresolved):
        _resolved(state, seq)
