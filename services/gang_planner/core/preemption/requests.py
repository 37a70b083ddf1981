"""Decides evictions for gangs that were refused, gang after gang in their order.

The search for victims is repeated only after a change that may let the gang in: capacity that was
freed, members that were placed, deserved amounts of queues, the end of a pod's protection. So the
result does not depend on how often the search was made.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from services.gang_planner.core.allocation.decision import assign_members, bindings_of
from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.framework.admission import AdmissionView
from services.gang_planner.core.framework.eviction_rules import Kind, Preemptor
from services.gang_planner.core.placement.session import in_turns
from services.gang_planner.core.preemption.candidates import VictimCandidates
from services.gang_planner.core.preemption.search import VICTIMS_MAX, FoundVictims, VictimSearch
from services.gang_planner.core.preemption.tracking import ANSWER_MS
from services.gang_planner.core.preemption.units import Unit
from services.gang_planner.core.queueing import fair_share
from services.gang_planner.core.state.decision_sizes import (
    ENTRIES_BYTES_MAX,
    binding_bytes,
    victim_bytes,
)
from services.gang_planner.core.state.gang_table import GangTable
from services.gang_planner.core.state.gangs import Bucket, Gang, Member, OrderKey
from services.gang_planner.core.state.member_states import task_priority
from services.gang_planner.core.state.needs import FailedSearch, Need
from services.gang_planner.core.state.preemptions import Preemptions
from services.gang_planner.core.state.queues import QueueTable
from shared.contracts.decisions import EvictionDecision, Victim
from shared.contracts.identity import gang_trace_id
from shared.contracts.pending_reasons import PendingReason
from shared.model.gang_keys import scope_of
from shared.model.invariants import required

#: Refusals that evictions could cure.
_CURABLE: Final = frozenset(
    {
        PendingReason.NOT_ENOUGH_RESOURCES,
        PendingReason.NOT_ENOUGH_QUOTA,
        PendingReason.SEARCH_BUDGET_EXCEEDED,
        PendingReason.WOULD_DELAY,
    }
)
#: Preemptions open at a time for gangs of one namespace: each reserves capacity that no gang can
#: use yet, until its victims have left.
_OPEN_MAX: Final = 16
#: Room for those of other namespaces while the users of one have victims that take long to leave:
#: so many more are open, with so many more victims.
_OPEN_OF_OTHERS: Final = 4
_VICTIMS_OF_OTHERS: Final = 500
_REASONS: Final[dict[Kind, str]] = {"preempt": "Preempted", "reclaim": "Reclaimed"}


def run(work: CycleContext, kind: Kind, *, whole: bool) -> None:
    """Evict pods for every refused gang that fits without them, until the cycle's budget is spent.

    Args:
        work: This cycle.
        kind: Pods of gangs with lower priority in the same queue (preempt), or of queues that hold
            more than they deserve (reclaim).
        whole: `gangpreempt` and `gangreclaim`: whole gangs may be evicted, even where the policy
            `gang` protects their quorum (its flags `enablePreemptable`, `enableReclaimable`).
    """
    run = _Run(work, kind, whole=whole)
    buckets = {bucket.entries[0][2]: bucket for bucket in run.buckets()}
    for first in in_turns(work.session, buckets):
        bucket = buckets[first]
        while bucket.entries and not work.session.exhausted and run.evict_for(bucket):
            pass
        if bucket.entries:
            run.note_due(bucket)
    work.reservations.lift()


class _Run:
    def __init__(self, work: CycleContext, kind: Kind, *, whole: bool) -> None:
        self._work = work
        self._kind: Kind = kind
        self._action = f"gang{kind}" if whole else kind
        #: Members of a gang may be evicted for more important members of it.
        self._swaps = kind == "preempt" and not whole
        rules = work.session.policies.victims(kind)
        self._rules = rules.for_gangs if whole else rules
        self._lowest: dict[str, int] = {}
        self._deserved: tuple[object, ...] = ()
        self._candidates: VictimCandidates | None = None

    def buckets(self) -> list[Bucket]:
        """Buckets whose first gang may find victims, in the order of gangs."""
        work = self._work
        refused = [
            bucket
            for bucket in work.state.backlog.buckets.values()
            # A gang that waits for binders has not been tried since capacity was freed.
            if bucket.reason in _CURABLE
            # No pod is evicted for a gang whose capacity is requested.
            and bucket.need.provisioning is None
            and (not work.throttled or bucket.refused_at == work.state.node_capacity.freed)
        ]
        if not refused:
            return []
        if self._kind == "preempt":
            self._lowest = _lowest_priorities(work.state.gangs)
        else:
            # Deserved amounts are those of the last cycle that computed them; a replay leaves some
            # cycles out.
            fair_share.share_out(work.state, work.session, work.state.backlog.demand)
            self._deserved = _deserved(work.state.queues)
        promising: list[Bucket] = []
        for bucket in refused:
            if self._may_find(bucket):
                promising.append(bucket)
            else:
                self._set_due(bucket, due=False)
        return sorted(promising, key=self._place)

    def evict_for(self, bucket: Bucket) -> bool:
        """Search for the bucket's first gang; False: nothing is decided for it."""
        work, gang = self._work, bucket.entries[0][2]
        if not self._may_find(bucket) or not _may_preempt(work, gang):
            return False
        mark = self._mark(gang)
        if self._candidates is None:
            self._candidates = VictimCandidates(work, self._rules)
        preemptor = Preemptor(gang, self._kind, work.now_ms)
        work.reservations.show(gang, work.now_ms, evicts=True)
        eligible_ms, chosen = 0, None
        if self._may_take(bucket):
            eligible_ms = self._candidates.eligible_ms(preemptor)
            search = VictimSearch(work, preemptor, bucket.need, self._rules, self._candidates)
            chosen = search.run()
            bucket.budget_exceeded |= search.budget_exceeded
        if chosen is None and self._swaps:
            chosen = self._swapped(preemptor, bucket.need, self._candidates)
        if eligible_ms:
            work.timers.set(eligible_ms, gang)
        act = _decision(work, gang, self._kind, chosen) if chosen is not None else None
        if chosen is None or act is None or not chosen.victims:
            bucket.failed_searches[self._action] = FailedSearch(mark, eligible_ms or None)
            return False
        _record(work, gang, act, chosen.victims)
        self._candidates.evicted(chosen.victims)
        return True

    def note_due(self, bucket: Bucket) -> None:
        """Record whether only a limit of this cycle delays the first search for the bucket. A
        search that has failed counts until another one finds victims, so that verdicts do not
        change to and fro.
        """
        gang = bucket.entries[0][2]
        first = self._action not in bucket.failed_searches
        due = first and self._may_find(bucket) and _is_entitled(self._work, gang)
        self._set_due(bucket, due=due)

    def _set_due(self, bucket: Bucket, *, due: bool) -> None:
        if due == (self._action in bucket.searches_due):
            return
        bucket.searches_due ^= {self._action}
        # Autoscalers act on the verdicts of these gangs, depending on whether a search is due.
        gangs = self._work.state.gangs
        gangs.to_republish.update((key, gang) for _, key, gang in bucket.entries)

    def _may_find(self, bucket: Bucket) -> bool:
        gang = bucket.entries[0][2]
        if not self._may_take(bucket) and not (self._swaps and _may_swap(gang, bucket.need)):
            return False
        failed = bucket.failed_searches.get(self._action)
        if failed is None or failed.mark != self._mark(gang):
            return True
        return failed.retry_ms is not None and failed.retry_ms <= self._work.now_ms

    def _may_take(self, bucket: Bucket) -> bool:
        """Whether its need and the priorities allow it to evict pods of other gangs. Members above
        a declared minimum preempt no pod.
        """
        need = bucket.need
        above_minimum = not (need.quorum or need.lacking or need.one_by_one)
        if self._kind == "preempt" and above_minimum:
            return False
        return self._outranks(bucket.entries[0][2])

    def _outranks(self, gang: Gang) -> bool:
        """Whether priorities allow it to evict pods of any gang in its queue."""
        if self._kind == "reclaim" or "priority" not in self._rules.entitles:
            return True
        return gang.priority > self._lowest.get(gang.queue.name, gang.priority)

    def _swapped(
        self, preemptor: Preemptor, need: Need, candidates: VictimCandidates
    ) -> FoundVictims | None:
        """Members of the gang to evict for more important members of it."""
        rules = self._rules.for_gangs
        for wanted, units in _swaps(preemptor.gang, need, candidates):
            search = VictimSearch(self._work, preemptor, wanted, rules, candidates, units)
            if (chosen := search.run()) is not None:
                return chosen
        return None

    def _mark(self, gang: Gang) -> tuple[object, ...]:
        """Everything that a search depends on, except the ends of protections."""
        state = self._work.state
        stirred = state.preemptions.stirred
        return state.node_capacity.freed, stirred, gang.key, gang.priority, self._deserved

    def _place(self, bucket: Bucket) -> tuple[OrderKey, OrderKey]:
        first = bucket.entries[0][2]
        policies, totals = self._work.session.policies, self._work.session.totals
        order = policies.ranked(first, policies.order(first))
        return policies.queue_order(first.queue, totals), order


def _may_swap(gang: Gang, need: Need) -> bool:
    """Whether the gang's own members may be evicted for it: a cheap check that excludes most
    gangs.
    """
    return not need.quorum and gang.history.started and gang.bound > gang.min_member


def _swaps(
    gang: Gang, need: Need, candidates: VictimCandidates
) -> Iterator[tuple[Need, list[Unit]]]:
    """The most important waiting members of a gang that has started, and less important ones above
    its minima that may be evicted for them: the least harmful first.

    The pods that its controller creates for the victims wait: they are less important than their
    replacements, so the exchange ends.
    """
    if need.quorum or need.structure is not None or not gang.history.started:
        return
    groups = [
        (role, shape_id, _priorities(gang.waiting[role, shape_id].values()))
        for role, shape_id, _ in need.wanted
    ]
    top = max(max(priorities) for _, _, priorities in groups)
    placed = _priorities(member for member in gang.members.values() if member.slot is not None)
    if min(placed, default=top) >= top:
        return
    wanted = Need(
        queue=need.queue,
        quorum=0,
        minima=(),
        wanted=tuple(
            (role, shape_id, priorities.count(top))
            for role, shape_id, priorities in groups
            if top in priorities
        ),
        best_effort=False,
        attached=need.attached,
        avoid=need.avoid,
    )
    units = [unit for unit in candidates.within(gang) if unit.importance < top]
    for level in sorted({unit.importance for unit in units}):
        yield wanted, [unit for unit in units if unit.importance <= level]


def _priorities(members: Iterable[Member]) -> list[int]:
    return [task_priority(member.pod) for member in members]


def _is_excluded(preemptions: Preemptions, gang: Gang) -> bool:
    """Whether no pod is evicted for the gang while it waits like this."""
    if preemptions.evict_whole(gang):
        return True
    if gang.have() and not gang.history.has_started:
        # Its bound members are completed to a quorum, or released: repair has its own deadline.
        return True
    # No eviction can be proven to help pods whose shapes are not known.
    bucket = required(gang.bucket, gang.full_name, "asks for evictions and does not wait")
    return bool(bucket.need.reserved)


def _is_entitled(work: CycleContext, gang: Gang) -> bool:
    """Whether pods may be evicted for the gang, except for the limits of one cycle. While a failed
    preemption is not tried again, the gang is not.
    """
    if _is_excluded(work.state.preemptions, gang) or gang.history.preempt_after_ms > work.now_ms:
        return False
    return preempts(work.state.gangs, gang) and not _wants_more_than_there_is(work, gang)


def _may_preempt(work: CycleContext, gang: Gang) -> bool:
    state, history = work.state, gang.history
    if _is_excluded(state.preemptions, gang):
        return False
    if gang.key in work.took_over:
        # Evictions precede bindings in a cycle's records: a log that is cut between them would
        # contain two preemptions of one gang. The next cycle evicts for its next members.
        work.timers.set(work.now_ms, gang)
        return False
    if history.preempt_after_ms > work.now_ms:
        work.timers.set(history.preempt_after_ms, gang)
        return False
    if not preempts(state.gangs, gang) or _wants_more_than_there_is(work, gang):
        return False
    acts = [preemption.act for preemption in state.preemptions.opened]
    own = [act for act in acts if act.gang.partition("/")[0] == gang.namespace]
    return (
        len(own) < _OPEN_MAX
        and len(acts) < _OPEN_MAX + _OPEN_OF_OTHERS
        and _victims(own) < VICTIMS_MAX
        and _victims(acts) < VICTIMS_MAX + _VICTIMS_OF_OTHERS
    )


def _victims(acts: Iterable[EvictionDecision]) -> int:
    return sum(len(act.victims) for act in acts)


def preempts(gangs: GangTable, gang: Gang) -> bool:
    """Whether its group, its priority class and its pods want others to be evicted for them."""
    group = gang.group
    if group is not None and not group.preempts:
        return False
    name = group.priority_class if group is not None else ""
    priority_class = gangs.priority_classes.by_name.get(("", name))
    if priority_class is not None and not priority_class.preempts:
        return False
    waiting = (member for members in gang.waiting.values() for member in members.values())
    return all(member.pod.preempts for member in waiting)


def _wants_more_than_there_is(work: CycleContext, gang: Gang) -> bool:
    """Whether its declared minimum exceeds the whole cluster: no pod is evicted for a gang that
    cannot run as a whole, even where the pods that it has so far would fit.
    """
    session = work.session
    view = AdmissionView(work.state, session.totals, work.now_ms, session.policies.without_room)
    return any(amount > view.total(row) for row, amount in view.node_minimum(gang).items())


def _lowest_priorities(gangs: GangTable) -> dict[str, int]:
    """By queue, the lowest priority of a gang with bound members: it shows for most gangs without a
    search that they may not evict any pod.
    """
    lowest: dict[str, int] = {}
    for gang in gangs.gangs.values():
        if gang.bound:
            name = gang.queue.name
            lowest[name] = min(lowest.get(name, gang.priority), gang.priority)
    return lowest


def _deserved(queues: QueueTable) -> tuple[object, ...]:
    return tuple(
        (name, tuple(sorted(entry.deserved.items())))
        for name, entry in sorted(queues.entries.items())
        if entry.deserved
    )


def _decision(
    work: CycleContext, gang: Gang, kind: Kind, chosen: FoundVictims
) -> EvictionDecision | None:
    """The decision to evict these pods; None if it does not fit into a message, which needs a gang
    of thousands with victims of long names.
    """
    state = work.state
    victims = [
        Victim(uid=victim.pod.uid, namespace=victim.pod.namespace, name=victim.pod.name)
        for victim in sorted(chosen.victims, key=_place_of)
    ]
    assignments = assign_members(state.node_capacity, gang, chosen.allocations)
    bindings = bindings_of(state.nodes.names, assignments)
    if victim_bytes(victims) + binding_bytes(bindings) > ENTRIES_BYTES_MAX:
        return None
    attempt = gang.history.attempt
    return EvictionDecision(
        gang_id=gang.gang_id,
        gang=gang.full_name,
        scope=scope_of(gang.key),
        epoch=state.epoch,
        attempt=attempt,
        victims=tuple(victims),
        via="eviction",
        reason=_REASONS[kind],
        why=_why(gang, kind, chosen),
        bindings=bindings,
        trace_id=gang_trace_id(gang.trace_root, attempt + 1),
        first_seen_ms=gang.history.first_seen_ms,
        cycle=work.cycle,
        traceparent=gang.group.traceparent if gang.group is not None else "",
        until_ms=work.now_ms + ANSWER_MS,
    )


def _record(
    work: CycleContext, gang: Gang, act: EvictionDecision, victims: Iterable[Member]
) -> None:
    """Make the decision: reserve the victims' capacity for the gang."""
    state = work.state
    work.decisions.append(act)
    work.session.bindings_left -= len(act.victims)
    state.backlog.take(gang)
    gang.pending_reason = PendingReason.PREEMPTING
    state.preemptions.add(state, act, gang)
    state.gangs.touch(gang)
    for victim in sorted(victims, key=_place_of):
        if victim.gang is not None:
            state.gangs.touch(victim.gang)


def _place_of(member: Member) -> tuple[str, str, str]:
    """The order of victims in a record, and of the verdicts that follow."""
    return member.pod.namespace, member.pod.name, member.pod.uid


def _why(gang: Gang, kind: Kind, chosen: FoundVictims) -> str:
    """Without names: victim and preemptor may be of different namespaces."""
    if all(victim.gang is gang for victim in chosen.victims):
        count = len(chosen.victims)
        members = "1 less important member" if count == 1 else f"{count} less important members"
        return f"{members} of the gang itself"
    gangs = {victim.gang.key for victim in chosen.victims if victim.gang is not None}
    pods = "1 pod" if len(chosen.victims) == 1 else f"{len(chosen.victims)} pods"
    words = pods if len(gangs) == 1 else f"{pods} of {len(gangs)} gangs"
    if kind == "reclaim":
        return f"queue {gang.queue.name} reclaims its deserved amount: {words}"
    return f"priority {gang.priority} has precedence in queue {gang.queue.name}: {words}"
