"""Asks for room on behalf of gangs that were refused, gang after gang in their order, and decides
the evictions that make it.

A gang that was refused asks again only when something has changed that could let it in: room that
was freed, members that were placed, what queues deserve, an instant at which a pod's protection
ends. So what a search found does not depend on how often it was made.
"""

from typing import TYPE_CHECKING, Final

from services.gang_planner.core.allocation.decision import assign_members
from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.framework.admission import AdmissionView
from services.gang_planner.core.framework.eviction_rules import Asks, Kind
from services.gang_planner.core.preemption.candidates import VictimCandidates
from services.gang_planner.core.preemption.search import VICTIMS_MAX, FoundVictims, Search
from services.gang_planner.core.preemption.tracking import ANSWER_MS
from services.gang_planner.core.preemption.victim_swap import swaps
from services.gang_planner.core.queueing import fair_share
from services.gang_planner.core.state.needs import FailedSearch
from services.gang_planner.core.state.preemptions import PREEMPTING
from shared.contracts.decisions import Binding, EvictionDecision, Victim
from shared.contracts.identity import gang_trace_id

if TYPE_CHECKING:
    from services.gang_planner.core.state.gangs import Bucket, Gang, OrderKey
    from services.gang_planner.core.state.needs import Need

#: Refusals that evictions could cure.
_WITHOUT_ROOM: Final = frozenset({"NotEnoughResources", "NotEnoughQuota", "SearchBudgetExceeded"})
#: Preemptions that are open at a time: each reserves capacity that no gang can use yet.
_OPEN_MAX: Final = 16
_REASONS: Final[dict[Kind, str]] = {"preempt": "Preempted", "reclaim": "Reclaimed"}


def ask(work: CycleContext, kind: Kind, *, whole: bool) -> None:
    """Ask for every gang whose bucket was refused, until the cycle's budget is spent.

    Args:
        work: This cycle.
        kind: Which pods it may evict.
        whole: The action takes whole gangs, whatever protects a gang's quorum.
    """
    asking = _Asking(work, kind, whole=whole)
    for bucket in asking.buckets():
        while bucket.entries and not work.session.exhausted and asking.ask_for(bucket):
            pass


class _Asking:
    """One run of an action."""

    def __init__(self, work: CycleContext, kind: Kind, *, whole: bool) -> None:
        self._work = work
        self._kind: Kind = kind
        self._action = f"gang{kind}" if whole else kind
        #: Members of a gang may go for others of it.
        self._swaps = kind == "preempt" and not whole
        rules = work.session.policies.victims(kind)
        self._rules = rules.for_gangs if whole else rules
        self._lowest: dict[str, int] = {}
        self._deserved: tuple[object, ...] = ()
        self._candidates: VictimCandidates | None = None

    def buckets(self) -> "list[Bucket]":
        """Buckets whose first gang may find what it has not sought in vain, in the gangs' order."""
        work = self._work
        refused = [
            one
            for one in work.state.backlog.buckets.values()
            # A gang that waits for binders has not tried what was freed since it was refused.
            if one.reason in _WITHOUT_ROOM
            and (not work.throttled or one.refused_at == work.state.node_capacity.freed)
        ]
        if not refused:
            return []
        if self._kind == "preempt":
            self._lowest = _lowest_priorities(work)
        else:
            # What is deserved is of the last cycle that looked, and a replay leaves some of them
            # out.
            fair_share.refresh(work.state, work.session)
            self._deserved = _deserved(work)
        return sorted((one for one in refused if self._may_find(one)), key=self._place)

    def ask_for(self, bucket: "Bucket") -> bool:
        """Search for the bucket's first gang; False: nothing is decided for it."""
        work, gang = self._work, bucket.entries[0][2]
        if not self._may_find(bucket) or not _may_ask(work, gang):
            return False
        mark = self._mark(gang)
        if self._candidates is None:
            self._candidates = VictimCandidates(work, self._rules)
        asks = Asks(gang, self._kind, work.now_ms)
        eligible_ms, found = 0, None
        if self._may_take(bucket):
            eligible_ms = self._candidates.eligible_ms(asks)
            search = Search(work, asks, bucket.need, self._rules, self._candidates)
            found = search.run()
            bucket.budget_exceeded |= search.budget_exceeded
        if found is None and self._swaps:
            found = self._swapped(asks, bucket.need, self._candidates)
        if eligible_ms:
            work.timers.set(eligible_ms, gang)
        if found is None or not found.victims:
            bucket.failed_searches[self._action] = FailedSearch(mark, eligible_ms or None)
            return False
        _decide(work, gang, self._kind, found)
        self._candidates.evicted(found.victims)
        return True

    def _may_find(self, bucket: "Bucket") -> bool:
        gang = bucket.entries[0][2]
        if not self._may_take(bucket) and not (self._swaps and _may_swap(gang, bucket.need)):
            return False
        failed = bucket.failed_searches.get(self._action)
        if failed is None or failed.mark != self._mark(gang):
            return True
        return failed.retry_ms is not None and failed.retry_ms <= self._work.now_ms

    def _may_take(self, bucket: "Bucket") -> bool:
        """Whether other gangs' pods may go for it, as far as its need and priorities say. Members
        above a minimum preempt no pod.
        """
        need = bucket.need
        above_minimum = not (need.quorum or need.lacking)
        if self._kind == "preempt" and above_minimum:
            return False
        return self._outranks(bucket.entries[0][2])

    def _outranks(self, gang: "Gang") -> bool:
        """Whether it may take from anybody in its queue, as far as priorities say."""
        if self._kind == "reclaim" or "priority" not in self._rules.entitles:
            return True
        return gang.priority > self._lowest.get(gang.queue.name, gang.priority)

    def _swapped(
        self, asks: Asks, need: "Need", candidates: VictimCandidates
    ) -> FoundVictims | None:
        """Members of the gang itself that go for others of it."""
        rules = self._rules.for_gangs
        for swap in swaps(asks.gang, need, candidates):
            found = Search(self._work, asks, swap.need, rules, candidates, swap.units).run()
            if found is not None:
                return found
        return None

    def _mark(self, gang: "Gang") -> tuple[object, ...]:
        """All that a search looks at, but for the instants at which protections end."""
        state = self._work.state
        stirred = state.preemptions.stirred
        return state.node_capacity.freed, stirred, gang.key, gang.priority, self._deserved

    def _place(self, bucket: "Bucket") -> "tuple[OrderKey, OrderKey]":
        first = bucket.entries[0][2]
        policies, totals = self._work.session.policies, self._work.session.totals
        return policies.queue_order(first.queue, totals), policies.order(first)


def _may_swap(gang: "Gang", need: "Need") -> bool:
    """Whether the gang's own members might go for others of it: most gangs need no look at them."""
    return not need.quorum and gang.history.started and gang.bound > gang.min_member


def _may_ask(work: CycleContext, gang: "Gang") -> bool:
    state, history = work.state, gang.history
    if gang.have() and not history.started:
        # What is bound of it is made whole, or released: it has a deadline of its own.
        return False
    assert gang.bucket is not None
    if gang.bucket.need.reserved:
        # No eviction can be proven to make room for pods whose shapes are not known.
        return False
    if gang.key in work.took_over:
        # Evictions stand before bindings in a cycle's records: a log that is cut between them would
        # contain two preemptions of one gang. It asks for its next members in the next cycle.
        work.timers.set(work.now_ms, gang)
        return False
    if history.preempt_after_ms > work.now_ms:
        work.timers.set(history.preempt_after_ms, gang)
        return False
    if not preempts(work, gang) or _wants_more_than_there_is(work, gang):
        return False
    opened = state.preemptions.opened
    in_flight = sum(len(one.act.victims) for one in opened)
    return len(opened) < _OPEN_MAX and in_flight < VICTIMS_MAX


def preempts(work: CycleContext, gang: "Gang") -> bool:
    """Whether its priority class and its pods want others to be evicted for them."""
    name = gang.group.priority_class if gang.group is not None else ""
    found = work.state.gangs.priority_classes.get(name)
    if found is not None and not found.preempts:
        return False
    waiting = (member for members in gang.waiting.values() for member in members.values())
    return all(member.pod.preempts for member in waiting)


def _wants_more_than_there_is(work: CycleContext, gang: "Gang") -> bool:
    """Whether it declares to need more than the whole cluster has: no pod is evicted for a gang
    that its user does not expect to run, even where the pods that it has so far would fit.
    """
    session = work.session
    view = AdmissionView(work.state, session.totals, work.now_ms, session.policies.without_room)
    return any(amount > view.total(row) for row, amount in view.node_minimum(gang).items())


def _lowest_priorities(work: CycleContext) -> dict[str, int]:
    """By queue, the lowest priority of a gang that has something bound: most gangs need no search
    to find that they may evict no pod.
    """
    lowest: dict[str, int] = {}
    for gang in work.state.gangs.gangs.values():
        if gang.bound:
            name = gang.queue.name
            lowest[name] = min(lowest.get(name, gang.priority), gang.priority)
    return lowest


def _deserved(work: CycleContext) -> tuple[object, ...]:
    return tuple(
        (name, tuple(sorted(entry.deserved.items())))
        for name, entry in sorted(work.state.queues.entries.items())
        if entry.deserved
    )


def _decide(work: CycleContext, gang: "Gang", kind: Kind, found: FoundVictims) -> None:
    state = work.state
    names = state.nodes.names
    assignments = assign_members(state, gang, found.allocations)
    victims = sorted(found.victims, key=lambda one: (one.pod.namespace, one.pod.name, one.pod.uid))
    attempt = gang.history.attempt
    act = EvictionDecision(
        gang_id=gang.gang_id,
        gang=gang.full_name,
        epoch=state.epoch,
        attempt=attempt,
        victims=tuple(
            Victim(uid=one.pod.uid, namespace=one.pod.namespace, name=one.pod.name)
            for one in victims
        ),
        via="eviction",
        reason=_REASONS[kind],
        why=_why(gang, kind, found),
        bindings=tuple(
            Binding(
                uid=member.pod.uid,
                namespace=member.pod.namespace,
                name=member.pod.name,
                node=names[slot],
            )
            for member, slot in assignments.pairs()
        ),
        trace_id=gang_trace_id(gang.trace_root, attempt + 1),
        first_seen_ms=gang.history.first_seen_ms,
        cycle=work.cycle,
        traceparent=gang.group.traceparent if gang.group is not None else "",
        until_ms=work.now_ms + ANSWER_MS,
    )
    work.decisions.append(act)
    work.session.bindings_left -= len(act.victims)
    state.backlog.take(gang)
    gang.refused = PREEMPTING
    state.preemptions.add(state, act, gang)
    state.gangs.touch(gang)
    for one in victims:
        if one.gang is not None:
            state.gangs.touch(one.gang)


def _why(gang: "Gang", kind: Kind, found: FoundVictims) -> str:
    """Without names: victim and preemptor may be of different namespaces."""
    if all(one.gang is gang for one in found.victims):
        count = len(found.victims)
        members = "1 member that counts" if count == 1 else f"{count} members that count"
        return f"{members} less in the gang itself"
    gangs = {one.gang.key for one in found.victims if one.gang is not None}
    pods = "1 pod" if len(found.victims) == 1 else f"{len(found.victims)} pods"
    words = pods if len(gangs) == 1 else f"{pods} of {len(gangs)} gangs"
    if kind == "reclaim":
        return f"queue {gang.queue.name} reclaims what it deserves: {words}"
    return f"priority {gang.priority} goes first in queue {gang.queue.name}: {words}"
