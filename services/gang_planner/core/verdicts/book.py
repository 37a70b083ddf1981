"""The published verdict of each gang, and the pace at which changes are published.

* Meaning (phase, reason, object, queue, size, attempt): in the cycle in which it changed, except
  verdicts that are debounced (`debounce`).
* Counts, and whether nodes or quota are short: at most once per second and gang.
* Numbers of a refusal that lasts while the cluster changes: at most once per 5 s and gang.
* Of the last two kinds at most 100 per cycle; the rest follow in later cycles.

`Book` keeps the published verdicts, so that equal verdicts are not published again, even after a
restart (`recall`).
"""

import enum
import heapq
from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from services.gang_planner.core.state.backlog import Backlog
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.member_states import (
    FAILED,
    PLACED,
    RUNNING,
    SUCCEEDED,
)
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.verdicts import (
    hold_messages,
    members,
    new_nodes,
    provisioning_messages,
)
from services.gang_planner.core.verdicts.conditions import conditions, meaning
from services.gang_planner.core.verdicts.debounce import RUSH, Debouncer
from services.gang_planner.core.verdicts.member_messages import disagreement_words
from services.gang_planner.core.verdicts.part_verdicts import part_verdicts
from services.gang_planner.core.verdicts.pending_reason import Explainer
from shared.contracts.identity import gang_trace_id
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.verdicts import Condition, PodRef, Verdict, Why
from shared.model.bounded_text import NAME_BYTES_MAX, shortened
from shared.model.gang_keys import GangKey, is_made_for_pods, is_of_pods
from shared.model.objects import GROUP_NAME_SCOPE, PodGroup

_COUNTS_MS: Final = 1_000
_NUMBERS_MS: Final = 5_000
_REFRESHES_MAX: Final = 100
#: Refusals whose numbers change with the cluster.
_MOVING: Final = frozenset(
    {
        PendingReason.BEHIND_IN_QUEUE,
        PendingReason.NOT_ENOUGH_QUOTA,
        PendingReason.NOT_ENOUGH_RESOURCES,
        PendingReason.REPAIR_ROOM,
        PendingReason.SEARCH_BUDGET_EXCEEDED,
        PendingReason.WOULD_DELAY,
    }
)
#: Reasons for which Volcano has one reason: see `conditions`.
_OF_ROOM: Final = frozenset(
    {
        PendingReason.NOT_ENOUGH_QUOTA,
        PendingReason.NOT_ENOUGH_RESOURCES,
        PendingReason.WOULD_DELAY,
    }
)


class Book:
    """The published verdicts by gang id, and the verdicts that are due."""

    def __init__(self, *, publishes: bool = True) -> None:
        """`publishes` False: there is no verdict of any gang. No decision depends on one, and they
        take most of a crowded cycle.
        """
        self._publishes = publishes
        self.published: dict[str, Verdict] = {}
        #: (due, key) of gangs whose counts changed; each gang at most once.
        self._due: list[tuple[int, GangKey]] = []
        self._queued: set[GangKey] = set()
        self._debouncer = Debouncer()
        #: Gangs without a pending reason yet, because no attempt was made, by id; and whether the
        #: cluster state was stale when all of them were last examined.
        self._unexplained: dict[str, Gang] = {}
        self._unexplained_stale = False
        #: Waiting gangs, in the order in which their numbers are examined again.
        self._ring: deque[GangKey] = deque()
        self._in_ring: set[GangKey] = set()
        self._ring_ms = 0
        self._ringed_at: int | None = None

    def recall(self, verdict: Verdict) -> None:
        """Import a verdict of an earlier planner as the published one of its gang."""
        if verdict.phase == "Gone":
            self.published.pop(verdict.gang_id, None)
        else:
            self.published[verdict.gang_id] = verdict

    def forget_pace(self, now_ms: int) -> None:
        """Make postponed verdicts due now, after the clock was set back."""
        self._due = [(now_ms, key) for _, key in self._due]
        heapq.heapify(self._due)
        self._debouncer.forget_pace(now_ms)
        self._ring_ms = now_ms

    def reconcile(self, state: State) -> None:
        """Mark published verdicts, and ProvisioningRequests, of gangs that no longer exist for
        withdrawal, when this planner becomes the writer.
        """
        requests = state.reference_objects.provisioning_requests
        state.gangs.retired = {
            gang_id: None
            for gang_id in (*self.published, *requests.gang_ids)
            if gang_id not in state.gangs.by_id and not state.gangs.trees.is_part(gang_id)
        } | dict.fromkeys(state.gangs.twins)

    def write(
        self,
        state: State,
        explainer: Explainer,
        changed: Mapping[str, Gang],
        now_ms: int,
        *,
        stale: bool,
    ) -> list[Verdict]:
        """Return the verdicts to publish now. `changed` are the gangs that this cycle assessed, by
        id; `stale`: the cluster state was too old for placement.
        """
        if not self._publishes:
            state.gangs.retired.clear()
            return []
        turn = _Turn(state, explainer, now_ms, stale, self._gone(state, now_ms))
        unexplained, rush = self._unexplained, _rush(state)
        for gang_id, gang in self._to_examine(changed, stale=stale):
            known = not gang.silent and state.gangs.gangs.get(gang.key) is gang
            reason = reason_of(state.backlog, gang, stale=stale) if known else None
            if reason is UNTRIED:
                unexplained[gang_id] = gang
                continue
            unexplained.pop(gang_id, None)
            if not known:
                continue
            # Most starting gangs are published later, so their meaning is not computed now.
            meant = _meaning(state, gang, reason) if gang.shown else ()
            if gang.shown and (gang.shown == meant or _passing(gang, meant, now_ms)):
                self._queue(gang)
                continue
            if self._is_debounced(state.epoch, gang, reason, now_ms, rush=rush):
                continue
            if reason in _MOVING and gang.key not in self._in_ring:
                self._in_ring.add(gang.key)
                self._ring.append(gang.key)
            self._publish(turn, gang, reason)
            gang.shown = meant or _meaning(state, gang, reason)
        self._refresh(turn)
        return turn.verdicts

    def _to_examine(self, changed: Mapping[str, Gang], *, stale: bool) -> list[tuple[str, Gang]]:
        """The gangs to examine, with their ids: changed gangs, those without a pending reason
        first. When the cluster state became stale or fresh, all gangs without a pending reason are
        included.
        """
        unexplained = self._unexplained
        if stale != self._unexplained_stale:
            self._unexplained_stale = stale
            return list({**unexplained, **changed}.items())
        first = {gang_id: gang for gang_id, gang in unexplained.items() if gang_id in changed}
        return list({**first, **changed}.items())

    def next_ms(self, freed: int, now_ms: int) -> int | None:
        """When the next paced verdict is due at this count of freed capacity; None: none is."""
        due = [self._due[0][0]] if self._due else []
        held_ms = self._debouncer.next_ms()
        due += [] if held_ms is None else [held_ms]
        if self._ring and self._ringed_at != freed:
            due.append(max(self._ring_ms, now_ms + 1))
        return min(due, default=None)

    def _gone(self, state: State, now_ms: int) -> list[Verdict]:
        verdicts: list[Verdict] = []
        for gang_id in list(state.gangs.retired):
            if state.gangs.trees.is_part(gang_id):
                # It was a gang by itself, or another object; its gang's verdict replaces its own.
                continue
            self._unexplained.pop(gang_id, None)
            twin = state.gangs.twins.get(gang_id)
            last = self.published.get(gang_id)
            unheard = self._debouncer.take_gone(gang_id, now_ms)
            if twin is not None:
                verdict = _twin_verdict(state.epoch, twin, now_ms)
                if last is None or not last.waits_for(PendingReason.DUPLICATE_GROUP):
                    self.published[gang_id] = verdict
                    verdicts.append(verdict)
            elif gang_id not in state.gangs.by_id:
                self.published.pop(gang_id, None)
                # A debounced verdict has the attempt that has to end.
                gone = unheard or (_gone_verdict(state.epoch, last, now_ms) if last else None)
                verdicts += provisioning_messages.with_requests_of_gone(
                    state, gang_id, last, gone, now_ms
                )
        state.gangs.retired.clear()
        return verdicts

    def _is_debounced(
        self, epoch: int, gang: Gang, reason: PendingReason | None, now_ms: int, *, rush: bool
    ) -> bool:
        throttled = reason is PendingReason.BINDING_THROTTLED
        passing = throttled or (reason is None and gang.phase in {"Starting", "Running"})
        eventful = gang.history.notes.any_open and any(meaning(gang))
        if not passing or eventful or _group_wanted(gang):
            return False
        last = self.published.get(gang.gang_id)
        return self._debouncer.holds(gang, last, epoch, now_ms, throttled=throttled, rush=rush)

    def _queue(self, gang: Gang) -> None:
        if gang.key not in self._queued:
            self._queued.add(gang.key)
            heapq.heappush(self._due, (gang.shown_ms + _COUNTS_MS, gang.key))

    def _refresh(self, turn: "_Turn") -> None:
        state, now_ms, left = turn.state, turn.now_ms, _REFRESHES_MAX
        for key in self._debouncer.take_due(now_ms, left, rush=_rush(state)):
            left -= self._again(turn, key)
        while left and self._due and self._due[0][0] <= now_ms:
            _, key = heapq.heappop(self._due)
            self._queued.discard(key)
            left -= self._again(turn, key)
        freed = state.node_capacity.freed
        if now_ms < self._ring_ms or self._ringed_at == freed or not self._ring:
            return
        self._ring_ms = now_ms + _COUNTS_MS
        looked = 0
        paced_ms: int | None = None
        while left and looked < len(self._ring):
            looked += 1
            key = self._ring.popleft()
            gang = state.gangs.gangs.get(key)
            if gang is None or gang.bucket is None:
                self._in_ring.discard(key)
                continue
            self._ring.append(key)
            if gang.shown_at == freed:
                continue
            due_ms = gang.shown_ms + _NUMBERS_MS
            if gang.shown_ms <= now_ms < due_ms:
                # The nodes may not change again: it is to be examined without that.
                paced_ms = due_ms if paced_ms is None else min(paced_ms, due_ms)
            else:
                left -= self._again(turn, key)
        if not left:
            return
        if paced_ms is None:
            self._ringed_at = freed
        else:
            self._ring_ms = max(self._ring_ms, paced_ms)

    def _again(self, turn: "_Turn", key: GangKey) -> int:
        """Build a gang's verdict again and publish it if it changed; 1 if it was built, else 0."""
        gang = turn.state.gangs.gangs.get(key)
        if gang is None or gang.silent:
            return 0
        reason = reason_of(turn.state.backlog, gang, stale=turn.stale)
        if reason is UNTRIED:
            return 0
        self._publish(turn, gang, reason)
        gang.shown = _meaning(turn.state, gang, reason)
        return 1

    def _publish(self, turn: "_Turn", gang: Gang, reason: PendingReason | None) -> None:
        last = self.published.get(gang.gang_id)
        verdict = _build(turn, gang, reason, last)
        gang.shown_ms, gang.shown_at = turn.now_ms, turn.state.node_capacity.freed
        self._debouncer.take_published(gang.gang_id)
        for new in (verdict, *part_verdicts(turn.state.gangs, gang, verdict, self.published)):
            last = self.published.get(new.gang_id)
            if last is None or not _same(last, new):
                self.published[new.gang_id] = new
                turn.verdicts.append(new)


class _Turn(NamedTuple):
    """What one call of `Book.write` is given, and the verdicts that it returns."""

    state: State
    explainer: Explainer
    now_ms: int
    stale: bool
    verdicts: list[Verdict]


class Untried(enum.Enum):
    """Instead of a pending reason: the gang waits for its first attempt."""

    UNTRIED = enum.auto()


UNTRIED: Final = Untried.UNTRIED


def reason_of(backlog: Backlog, gang: Gang, *, stale: bool) -> PendingReason | Untried | None:
    """The gang's pending reason; None: it does not wait for the planner."""
    reason = gang.pending_reason
    if reason is not None:
        unheard = stale and reason is PendingReason.NOT_ADMITTED
        return PendingReason.CLUSTER_VIEW_STALE if unheard else reason
    if gang.bucket is None:
        # The start hangs, as the kubelet reports: the gang does not wait for the planner.
        hangs = gang.traits.stuck and gang.history.started and not gang.quorum_runs
        return PendingReason.NOT_STARTING if hangs and gang.counts[PLACED] else None
    reason = gang.bucket.reason
    if reason is not None:
        return PendingReason.REPAIR_ROOM if gang.history.repairing else reason
    if stale:
        return PendingReason.CLUSTER_VIEW_STALE
    return PendingReason.BINDING_THROTTLED if backlog.throttled else UNTRIED


def _rush(state: State) -> bool:
    """Whether so many pods are being bound that verdicts of running gangs would delay them."""
    return state.backlog.throttled or state.reservations.pods_not_seen_bound >= RUSH


def _build(turn: _Turn, gang: Gang, reason: PendingReason | None, last: Verdict | None) -> Verdict:
    """Build a gang's verdict; `last` is its last published one, `reason` its pending reason."""
    state, now_ms, group = turn.state, turn.now_ms, gang.group
    why = None
    waiting: tuple[PodRef, ...] = ()
    unschedulable = 0
    new_nodes.recall_reach(gang, last)
    if reason is not None:
        before = last.why if last is not None else None
        kept = before is not None and before.reason == reason
        why = turn.explainer.why(gang, reason, before.since_ms if before and kept else now_ms)
        helped = turn.explainer.helped(gang, why)
        waiting, unschedulable = members.waiting(gang, helped, _nominated(state, gang))
    new_nodes.note_reach(gang, why, unschedulable, state.nodes.count)
    counts, history, size = gang.counts, gang.history, len(gang.members)
    owner = gang.owner if group is None or is_of_pods(group) else None
    known = last.conditions if last is not None else ()
    wanted = _group_wanted(gang)
    members_minimum, members_queue = _members_declare(gang)
    return Verdict(
        gang_id=gang.gang_id,
        epoch=state.epoch,
        at_ms=now_ms,
        dialect=group.dialect if group is not None else "",
        namespace=gang.namespace,
        name=gang.name,
        uid=group.uid if group is not None else "",
        owner_uid=owner.uid if owner is not None else "",
        group_wanted=wanted,
        queue=shortened(gang.queue.name, NAME_BYTES_MAX),
        phase=gang.shown_phase,
        min_member=gang.declared,
        members=size,
        pending=size - counts[RUNNING] - counts[SUCCEEDED] - counts[FAILED],
        running=counts[RUNNING],
        succeeded=gang.succeeded,
        failed=counts[FAILED] + gang.run.failed,
        succeeded_by_role=members.succeeded_by_role(gang),
        succeeded_by_part=members.succeeded_by_part(gang),
        jobs=members.jobs(gang),
        conditions=conditions(state, gang, why, known, now_ms),
        why=why,
        attempt=history.attempt,
        waiting=waiting,
        unschedulable=unschedulable,
        out_of_reach=new_nodes.is_out_of_reach(gang),
        placed=members.placed(gang, last),
        evicted=gang.evicted.pods if gang.evicted else (),
        ended=members.ended(gang),
        unnamed=members.unnamed(gang) if wanted else (),
        members_minimum=members_minimum,
        members_queue=members_queue,
        provisioning=provisioning_messages.requests(state, gang),
        trace_id=gang_trace_id(gang.trace_root, max(history.attempt, 1)),
        first_seen_ms=history.first_seen_ms,
        domain=_domain(gang),
        node_pool=next((value for requirement in group.nodes for value in requirement.values), "")
        if group
        else "",
    )


def _nominated(state: State, gang: Gang) -> dict[str, str]:
    """The nodes where pods are evicted for members of the gang, by the members' UIDs."""
    preemption = state.preemptions.of(gang)
    if preemption is None:
        return {}
    return {
        uid: state.nodes.names[reservation.slot]
        for uid, (reservation, _) in preemption.reservations.items()
    }


def _domain(gang: Gang) -> str:
    """The HyperNode of the gang's last placement; "": it requests none, or was not placed."""
    topology = gang.group.topology if gang.group is not None else None
    wanted = topology is not None and not topology.label_key
    return (gang.history.home or "") if wanted else ""


def _passing(gang: Gang, meant: tuple[object, ...], now_ms: int) -> bool:
    """Whether only the reason changed, between missing resources and missing quota, soon after the
    last verdict. On a full cluster that changes with every gang that ends.
    """
    return (
        meant[0] in _OF_ROOM
        and gang.shown[0] in _OF_ROOM
        and 0 <= now_ms - gang.shown_ms < _COUNTS_MS
        and gang.shown[1:] == meant[1:]
    )


def _meaning(state: State, gang: Gang, reason: PendingReason | None) -> tuple[object, ...]:
    group = gang.group
    holds = state.holds.of(gang)
    return (
        reason,
        gang.shown_phase,
        group.uid if group is not None else "",
        group.errors if group is not None else (),
        gang.queue.name,
        gang.min_member,
        gang.history.attempt,
        _group_wanted(gang),
        _members_declare(gang),
        meaning(gang) if gang.history.notes.any_open else (),
        hold_messages.meaning(holds) if holds else (),
        gang.evicted,
        disagreement_words(gang),
        gang.declarations.misdirected > 0,
        gang.bucket is not None and bool(gang.bucket.searches_due),
        provisioning_messages.meaning(state, gang),
    )


def _group_wanted(gang: Gang) -> str:
    """The name of the PodGroup that the podgroup controller must create and set on the gang's pods;
    "": none.
    """
    return gang.name if gang.traits.implied and gang.key[0] == GROUP_NAME_SCOPE else ""


def _members_declare(gang: Gang) -> tuple[int, str]:
    """The minimum and queue for `Verdict.members_minimum` and `members_queue`."""
    group = gang.group
    if group is None or not is_made_for_pods(group):
        return 0, ""
    declared = gang.declarations.declared
    is_name = len(declared.queue) <= NAME_BYTES_MAX
    return declared.minimum, declared.queue if is_name else ""


def _twin_verdict(epoch: int, twin: PodGroup, now_ms: int) -> Verdict:
    sentence = (
        f"another dialect declares PodGroup {twin.namespace}/{twin.name} too, and is in effect"
    )
    return Verdict(
        gang_id=twin.uid,
        epoch=epoch,
        at_ms=now_ms,
        dialect=twin.dialect,
        namespace=twin.namespace,
        name=twin.name,
        uid=twin.uid,
        queue=shortened(twin.queue, NAME_BYTES_MAX),
        phase="Pending",
        min_member=twin.min_member,
        conditions=(
            Condition(
                type="Unschedulable",
                status="True",
                reason=PendingReason.DUPLICATE_GROUP.value,
                message=sentence,
                since_ms=now_ms,
            ),
        ),
        why=Why(reason=PendingReason.DUPLICATE_GROUP.value, sentence=sentence, since_ms=now_ms),
    )


def _gone_verdict(epoch: int, last: Verdict, now_ms: int) -> Verdict:
    return Verdict(
        gang_id=last.gang_id,
        epoch=epoch,
        at_ms=now_ms,
        dialect=last.dialect,
        namespace=last.namespace,
        name=last.name,
        uid=last.uid,
        owner_uid=last.owner_uid,
        phase="Gone",
        attempt=last.attempt,
        trace_id=last.trace_id,
        first_seen_ms=last.first_seen_ms,
    )


def _same(last: Verdict, new: Verdict) -> bool:
    if last.phase != new.phase or last.conditions != new.conditions:
        # The usual case, and cheap to check.
        return False
    return msgspec.structs.replace(new, at_ms=last.at_ms, epoch=last.epoch) == last
