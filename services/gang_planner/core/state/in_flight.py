"""Decisions in flight: open decisions, their reservations, and the outcomes of binders.

Each pod, by its UID, has at most one open decision, whatever its group. Only CLUSTER retires a
decision. An outcome ends the reservation of a member that was definitely refused. Otherwise the
member may be placed elsewhere while its reservation stays for some time. If an outcome reports a
pod as bound, and it stays unbound in a later epoch's snapshot, the API server has lost the binding.

A binder reads decisions only from the log. If no binder ran for days, the log would drop a decision
that was never carried out, and its reservations would never end. So the planner reissues it before:
the same bindings under its own epoch. The new record names the record that it repeats, and takes
over that record's reservations and position among the open decisions. Two binders may carry out
both: same pods, same nodes, with the UID as precondition. After that, an outcome no longer proves
that no other POST is in flight.
"""

from itertools import takewhile
from typing import Final

import msgspec

from services.gang_planner.core.state import claim_choices
from services.gang_planner.core.state.accounting import assume, end_reservation, settle
from services.gang_planner.core.state.gang_history import ANY_NODE, Failure
from services.gang_planner.core.state.gang_table import GangTable
from services.gang_planner.core.state.gangs import Gang, Member
from services.gang_planner.core.state.member_states import ASSUMED, TERMINAL
from services.gang_planner.core.state.members import Assignments
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.preemptions import record_evicted
from services.gang_planner.core.state.reservations import (
    UNDATED,
    OpenAct,
    OpenEviction,
    Reservation,
    Unresolved,
    awaits_binders_alone,
)
from shared.contracts.decisions import Act, Cycle, EvictionDecision, GangDecision
from shared.contracts.outcomes import Member as Found
from shared.contracts.outcomes import MemberResult, Outcome
from shared.model.invariants import InvariantViolation

#: How long a member has a reservation while its POST may be in flight: longer than any request
#: timeout of a binder or the API server.
LATE_RESERVATION_MS: Final = 120_000
#: How long a pod counts as bound if an outcome reports it as bound and a later epoch's snapshot has
#: it unbound. If it was listed just before the binding, the watch corrects it much sooner.
#: Otherwise the API server has lost the binding (its storage was restored from a backup).
FORGOTTEN_MS: Final = 60_000
#: After this time, an unanswered decision no longer counts as in flight. It may be lost, or be
#: retried for a reason of its own (a webhook of its namespace), and must not delay other gangs.
UNANSWERED_MS: Final = 30_000
#: Decisions are reissued a day before DECISIONS drops its records (`shared.bus.setup`).
REISSUE_AFTER_MS: Final = 6 * 86_400_000
#: How long a failed (pod, node) pair is avoided.
BAD_PAIR_MS: Final = 60_000
#: Definite results: the API server refused the request, or it was not sent.
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
    """Assume the bindings of a new decision, whose Statement has taken the node capacity.
    `charged`: its queue and its user's account have been charged already.
    """
    act = OpenAct(0, decision, counted=awaits_binders_alone(decision))
    state.unnumbered.append(act)
    state.reservations.adopt(act, assignments.members, assignments.slots)
    taken = gang.assume(assignments.members)
    if not charged:
        for (_, shape_id), count in taken.items():
            gang.queue.charge(state.shapes.entries[shape_id], count)
            if gang.account is not None:
                gang.account.charge(state.shapes.entries[shape_id], count)
    if _all_begins(gang):
        state.gangs.starts(gang)
    else:
        state.gangs.touch(gang)


def _all_begins(gang: Gang) -> bool:
    """Whether all members of a gang are assumed, and it has no open notes or failures."""
    history = gang.history
    if gang.counts[ASSUMED] != len(gang.members) or history.started or history.notes.any_open:
        return False
    return not (history.bad or gang.unread or gang.evicted)


def number(state: State, seq: int, decision: Act) -> None:
    """Set the log's sequence number of a decision of this planner."""
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
    if act.act is not decision:
        raise InvariantViolation(f"decision {seq}", "is not the next one that was made")
    act.seq = seq
    if act.rows:
        state.open[seq] = act


def recall(state: State, seq: int, decision: GangDecision) -> None:
    """Assume the bindings of a decision read from the log, like those of an own decision."""
    if decision.again in state.open:
        _repeated(state, seq, decision)
        return
    claim_choices.recall(state.node_capacity, decision)
    history = state.gangs.history(decision.gang_id)
    history.attempt = max(history.attempt, decision.attempt)
    history.first_seen_ms = decision.first_seen_ms
    history.known_as = decision.gang_id
    history.full_name, history.scope = decision.gang, decision.scope
    act = OpenAct(seq, decision, counted=awaits_binders_alone(decision))
    state.open[seq] = act
    with_claims = {volume.pod_uid for volume in decision.volumes}
    with_claims.update(device.pod_uid for device in decision.devices)
    state.unresolved[seq] = {
        binding.uid: Unresolved(
            binding, decision.gang_id, act, decision.cycle.cluster_seq, binding.uid in with_claims
        )
        for binding in decision.bindings
    }
    _resolve_decision(state, seq)


def _repeated(state: State, seq: int, decision: GangDecision) -> None:
    """Replace the decision that this one repeats; its settled bindings stay settled."""
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
    """Restore a release or preemption from the log, with its outcome if that was read already.
    Victims of a preemption get no holds.
    """
    if decision.via == "eviction":
        preemption = state.preemptions.recall(seq, decision)
        for victim in decision.victims:
            loss = state.holds.pending.get(victim.uid)
            gang = state.gangs.gangs.get(loss.key) if loss is not None else None
            if gang is not None:
                preemption.victim_left(victim.uid, gang.history)
            state.holds.settle(victim.uid)
    else:
        state.evictions[seq] = OpenEviction(seq, decision)
    early = state.early.pop(seq, None)
    if early is not None:
        _take_outcome(state, *early)


def forget_evictions(gangs: GangTable, evictions: dict[int, OpenEviction], gang_id: str) -> None:
    """Drop the eviction decisions of this gang, whose release has ended, and of gangs now gone."""
    released = gangs.find(gang_id)
    for seq, eviction in list(evictions.items()):
        gang = gangs.find(eviction.act.gang_id)
        is_gone = gang is None and eviction.act.gang_id not in gangs.remembered
        if eviction.act.gang_id == gang_id or is_gone or (gang is not None and gang is released):
            del evictions[seq]


def resolve_all(state: State) -> None:
    """Resolve logged bindings after the cluster state advanced, oldest decision first."""
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
    """Mark a logged decision's bindings as resolved, and apply its early outcome."""
    del state.unresolved[seq]
    act = state.open.get(seq)
    if act is not None:
        claim_choices.forget(state.node_capacity, act.act)
        if not act.rows:
            del state.open[seq]
    early = state.early.pop(seq, None)
    if early is not None:
        _take_outcome(state, *early)


def apply_outcome(state: State, outcome_seq: int, outcome: Outcome) -> None:
    """Apply the outcome with this sequence number in OUTCOMES. Members that it does not list are
    bound, and CLUSTER will show them.

    The logs are read concurrently, so an outcome may arrive before its decision, or before the
    cluster state in which its reservations are assumed. It is kept until then; otherwise these
    reservations would never end.
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
            _touch_waiting(state.members, state.gangs, act.act)
        # A repeated decision was also delivered under its first sequence number.
        delivered += 1 if act.act.again else 0
    for answer in outcome.members:
        if answer.result == "bound":
            continue
        for reservation in state.reservations.rows(answer.uid):
            if reservation.act is not None and reservation.act.seq == seq:
                _take_in(state, reservation, answer, outcome_seq, delivered=delivered)


def _touch_waiting(members: dict[str, Member], gangs: GangTable, decision: GangDecision) -> None:
    """Mark the gang as changed: members may have waited for the pre-flight. It is found by its
    pods, because its id may have changed.
    """
    for binding in decision.bindings:
        member = members.get(binding.uid)
        if member is not None and member.gang is not None:
            gangs.touch(member.gang)


def _take_removal(state: State, outcome_seq: int, outcome: Outcome) -> None:
    """Apply the outcome of a release or of an eviction for a preemptor."""
    eviction = state.evictions.get(outcome.decision_seq)
    if eviction is not None:
        eviction.outcome, eviction.outcome_seq = outcome, outcome_seq
        gang = state.gangs.find(eviction.act.gang_id)
    else:
        preemption = state.preemptions.logged[outcome.decision_seq]
        preemption.outcome, preemption.outcome_seq = outcome, outcome_seq
        gang = preemption.gang
        if outcome.evicted:
            record_evicted(state, preemption)
    if gang is not None:
        state.gangs.touch(gang)


def _take_in(
    state: State, reservation: Reservation, answer: Found, outcome_seq: int, *, delivered: int
) -> None:
    """End a member's reservation or make it late: it was not bound, and may be placed again."""
    if answer.result in _DEFINITE and delivered == 1 and not answer.late:
        end_reservation(state, reservation)
    elif reservation.reason == "assumed":
        state.reservations.becomes_late(reservation)
    member = state.members[answer.uid]
    if member.reservation is reservation:
        member.reservation = None
        settle(state, member)
    gang = member.gang
    if gang is None:
        return
    if answer.result in {"refused", "unknown", "unprepared"}:
        pair = answer.uid, ANY_NODE if answer.result == "refused" else answer.node
        if outcome_seq > state.view.consumed_seq or pair not in gang.history.bad:
            gang.history.bad[pair] = UNDATED
    words = answer.message or answer.reason or f"HTTP status {answer.code}"
    gang.unread.append(
        Failure(answer.uid, answer.node, answer.result, f"{member.pod.name}: {words}", outcome_seq)
    )
    state.gangs.touch(gang)


def date_late_reservations(state: State, now_ms: int) -> int | None:
    """Date new late reservations, end those whose deadline has passed; return the next one."""
    deadlines: list[int] = []
    for uid in list(state.reservations.late):
        for reservation in state.reservations.rows(uid):
            if reservation.reason != "late":
                continue
            if (
                reservation.until_ms == UNDATED
                or reservation.until_ms > now_ms + LATE_RESERVATION_MS
            ):
                # It is new, or its deadline was set before the clock was set back.
                reservation.until_ms = now_ms + LATE_RESERVATION_MS
            if reservation.until_ms <= now_ms:
                end_reservation(state, reservation)
            else:
                deadlines.append(reservation.until_ms)
    return min(deadlines, default=None)


def overlook_unanswered(state: State, now_ms: int) -> int | None:
    """Stop counting decisions unanswered for `UNANSWERED_MS`; return when the next is due."""
    for act in state.open.values():
        due_ms = act.act.cycle.now_ms + UNANSWERED_MS
        if due_ms <= now_ms:
            state.reservations.settle(act, answered=False)
        elif act.counted:
            return due_ms
    return None


def is_old(act: Act, now_ms: int) -> bool:
    """Whether DECISIONS will soon drop the record."""
    return now_ms - act.cycle.now_ms >= REISSUE_AFTER_MS


def reissued(state: State, cycle: Cycle) -> list[Act]:
    """The unanswered decisions that the log will soon drop, to be appended again; their gangs are
    marked as changed where `release` decides them again. Usually reads only the oldest.
    """
    evictions = state.evictions.values()
    for eviction in takewhile(lambda release: is_old(release.act, cycle.now_ms), evictions):
        gang = state.gangs.find(eviction.act.gang_id)
        if eviction.outcome is None and gang is not None:
            state.gangs.touch(gang)
    old = takewhile(lambda entry: is_old(entry[1].act, cycle.now_ms), state.open.items())
    return [
        msgspec.structs.replace(decision.act, epoch=state.epoch, cycle=cycle, again=seq)
        for seq, decision in old
        if decision.outcome is None and seq not in state.early
    ]


def end_forgotten(state: State, now_ms: int, *, fresh: bool) -> int | None:
    """End reservations whose bindings the API server has lost, so that their pods are placed again;
    return when to check next. Without `fresh` cluster state, none is ended.

    A decision of the current epoch is not affected: the watch will show its bindings.
    """
    deadlines: list[int] = []
    for act in list(state.open.values()):
        if act.outcome is None or act.act.cycle.cluster_seq >= state.view.epoch:
            continue
        until_ms = act.believed_until_ms
        if not until_ms or until_ms > now_ms + FORGOTTEN_MS or (until_ms <= now_ms and not fresh):
            # The deadline is new, was set before the clock was set back, or passed while the
            # cluster state was stale.
            until_ms = act.believed_until_ms = now_ms + FORGOTTEN_MS
        if until_ms <= now_ms:
            _forget_bindings(state, act)
        else:
            deadlines.append(until_ms)
    return min(deadlines, default=None)


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
    """Assume one logged binding; False while the cluster state is too old for it."""
    new_enough = state.view.shows(pending.cluster_seq)
    member = state.members.get(pending.binding.uid)
    if member is None:
        if new_enough:
            claim_choices.keep(state.node_capacity, pending.act.act, pending.binding.uid)
        return new_enough
    if member.pod.node or member.slot is not None or member.pod.phase in TERMINAL:
        return True
    if pending.has_claims and not new_enough:
        return False
    _assume_logged(state, member, pending)
    return True


def _assume_logged(state: State, member: Member, pending: Unresolved) -> None:
    reservation = Reservation(
        owner=pending.gang_id,
        uid=pending.binding.uid,
        shape=member.shape,
        slot=state.nodes.slot(pending.binding.node),
        act=pending.act,
    )
    assume(state, member, reservation, adopted=False)


def give_up_unresolved(state: State) -> None:
    """Drop all unresolved bindings of unknown pods, and assume those of known pods: no snapshot
    will be new enough (CLUSTER was recreated).
    """
    for seq in sorted(state.unresolved):
        for uid, pending in state.unresolved[seq].items():
            member = state.members.get(uid)
            if member is not None:
                _assume_logged(state, member, pending)
        _resolved(state, seq)
