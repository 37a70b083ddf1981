"""Places gangs: queues take turns, each queue's gangs in order, each gang whole or not at all.

A gang that does not fit does not block the gangs behind it, unless its queue is strict: first in,
first out (`dequeueStrategy: fifo`). The verdicts of the gangs behind it name the gang ahead.

When the in-flight limit is reached (`Session.admitted`), the next gang in order waits and blocks
the gangs behind it. So a more urgent gang that arrives later is placed before it, instead of behind
a backlog of decisions.
"""

from collections import Counter
from typing import Final

from services.gang_planner.core.actions.reserve import Reserve
from services.gang_planner.core.allocation import batch, gang_allocation
from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.placement.refusals import Shortfalls
from services.gang_planner.core.queueing import min_resources
from services.gang_planner.core.queueing.fair_share import UNLIMITED, Extras, FairShareDemand, Limit
from services.gang_planner.core.queueing.requested_capacity import RequestedQuota
from services.gang_planner.core.queueing.turns import Turns
from services.gang_planner.core.state.backlog import Backlog, Line
from services.gang_planner.core.state.gangs import Bucket, Gang, OrderKey
from services.gang_planner.core.state.needs import ProvisioningStage
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.queues import QueueTable
from services.gang_planner.core.state.titles import title_of
from shared.model.gang_keys import GangKey

UNREQUESTED: Final = ProvisioningStage.UNREQUESTED
PROVISIONED: Final = ProvisioningStage.PROVISIONED
#: The next gang is tried when at least this part of the in-flight limit is free: each answer of a
#: binder admits a few more pods, and a pass costs the same for few as for many.
_LOOKS: Final = 8


def run(work: CycleContext, *, best_effort: bool = False) -> None:
    """Try every gang that may fit since its last attempt, until the cycle's budget is spent.

    `best_effort` is the action backfill: only gangs whose waiting members are all best-effort, and
    request no resource but a node's pod slot. Otherwise all other gangs.
    """
    state, session = work.state, work.session
    if state.backlog.buckets and session.in_flight:
        work.throttled |= session.admitted * _LOOKS < session.in_flight_max
    if work.throttled:
        return
    if state.backlog.kept_for and state.backlog.forget_kept():
        # Gangs that were refused beside it are tried again.
        state.node_capacity.freed += 1
    active = dict.fromkeys(state.backlog.active(state.node_capacity.freed))
    if len(active) < len(state.backlog.buckets):
        active.update(dict.fromkeys(Reserve(work).candidates(active)))
    if state.holds.by_uid:
        active.update(dict.fromkeys(gang_allocation.outranking(state)))
    # Their quota may suffice since another gang of them is gone.
    active.update(dict.fromkeys(state.backlog.unrequested.values()))
    parked = _strict_queues(state.backlog, state.queues)
    if not active and not state.backlog.held and not parked:
        return
    demand = FairShareDemand(work)
    active.update(dict.fromkeys(demand.released()))
    if parked:
        _line_up(work, parked, active)
    buckets = [bucket for bucket in active if bucket.need.best_effort == best_effort]
    if not state.backlog.provisioned:
        _Pass(work, demand, buckets).run()
        return
    # Nodes were added for these gangs. Other gangs would use them if they happened to be first.
    first = [bucket for bucket in buckets if bucket.need.provisioning is PROVISIONED]
    _Pass(work, demand, first).run()
    kept = gang_allocation.keep_capacity(work)
    _Pass(work, demand, [bucket for bucket in buckets if bucket not in first]).run()
    for statement in kept:
        statement.discard()


class _Pass:
    """One pass over the active buckets."""

    def __init__(self, work: CycleContext, demand: FairShareDemand, buckets: list[Bucket]) -> None:
        self._work = work
        self._demand = demand
        policies = work.session.policies
        self._ranks = policies.users_rank is not None
        self._line = Line(buckets, policies.ranked if self._ranks else None)
        self._together = batch.BatchPlacement(work)
        self._extras = Extras(work, self._line)
        self._shortfalls: Shortfalls | None = None
        if any(bucket.shortfall is not None for bucket in buckets):
            self._shortfalls = Shortfalls(work.state.holds, work.session, buckets)
        self._requested: RequestedQuota | None = None
        #: Work on gangs that were refused, by namespace.
        self._spent: Counter[str] = Counter()
        #: Buckets that come last: their namespaces have spent more than is left for all others.
        self._set_aside: list[Bucket] = []
        #: Buckets that were refused while capacity was hidden from them.
        self._beside: list[tuple[Bucket, Limit]] = []
        #: Where past use counts: those of them by queue. Their users may be ahead of the next gang
        #: that gets a reservation.
        self._waved: dict[str, list[Bucket]] = {}
        #: Gangs that were placed and still have their reservations.
        self._used: set[GangKey] = set()

    def run(self) -> None:
        """Give queues turns until no gang is left in line, or the budget is spent."""
        line, session = self._line, self._work.session
        queues = map(self._work.state.queues.entry, line.queues())
        turns = Turns(session.policies, session.totals, queues)
        while (queue := turns.first()) is not None:
            if session.exhausted or self._work.throttled:
                break
            while not self._try_next(turns, queue.name):
                # The queue's use has not changed, so it is still first in turn.
                if session.exhausted or self._work.throttled or not line.holds(queue.name):
                    break
            if self._waved:
                self._try_again(queue.name)
            if not line.holds(queue.name):
                turns.drop_first()
        self._together.place()
        if self._work.state.reserved:
            self._work.reservations.lift()
            Reserve(self._work).judge(self._beside)
        if self._set_aside and not session.exhausted and not self._work.throttled:
            _Pass(self._work, self._demand, self._set_aside).run()

    def _try_next(self, turns: Turns, queue: str) -> bool:
        """Try a queue's next gang. False: it was not placed; unless it waits for the in-flight
        limit, or for the gangs of other namespaces, its bucket is refused.
        """
        line, session = self._line, self._work.session
        index, bucket, gang = line.head(queue)
        if self._work.state.reserved:
            self._see(bucket, gang)
        if not gang.queue.strict and self._has_spent_enough(bucket):
            self._set_aside.append(bucket)
            return False
        if bucket.need.provisioning is UNREQUESTED:
            return self._request(index, bucket, gang)
        if self._cannot_fit(bucket, gang):
            return False
        # A gang above the in-flight limit goes alone.
        early = bucket.need.least > session.admitted and session.in_flight
        if early and self._waits(bucket, gang):
            return False
        limit, gathered = self._limit(bucket, gang), False
        # Gangs behind a reserved one may get a reservation as soon as it is placed.
        if limit is UNLIMITED and gang.key not in self._work.state.reserved:
            most = self._demand.unlimited(gang.queue, bucket.need, len(bucket.entries))
            gathered = self._together.gather(bucket, line, turns, most)
        if not gathered:
            # What follows reads node capacity.
            self._together.place()
            fair = self._extras.lower(limit, bucket, gang)
            if fair is None:
                # The free capacity is for the quorums of other gangs: retried when some is freed.
                gang_allocation.refuse(self._work, bucket)
                return False
            work_left = session.work_left
            full = fair.leaves_nothing(self._work.state.nodes.count)
            if full or not gang_allocation.place_gang(self._work, gang, fair):
                self._spent[gang.namespace] += work_left - session.work_left
                self._refuse(bucket, gang, fair)
                return False
        self._demand.placed(gang.queue)
        line.put_back(index)
        return True

    def _try_again(self, queue: str) -> None:
        """Try buckets of this queue again that were refused beside a reservation which was used
        since, before the next gang gets one.
        """
        reserved = self._work.state.reserved
        used = {key for key, gang in reserved.items() if gang.have()}
        if used <= self._used:
            return
        self._used |= used
        for bucket in self._waved.pop(queue, ()):
            bucket.refused_at = None
            self._work.state.backlog.fresh[bucket.need.signature] = bucket
            self._beside = [each for each in self._beside if each[0] is not bucket]
            self._line.put_back(self._line.index(bucket))

    def _see(self, bucket: Bucket, gang: Gang) -> None:
        """Let the nodes show what the gang may use beside the reservations of other gangs."""
        reservations, now_ms = self._work.reservations, self._work.now_ms
        if not reservations.hides and self._remains(bucket):
            # It does not fit in any case, as most in a full cluster.
            return
        if reservations.would_see(gang, now_ms):
            # Those gathered saw something else.
            self._together.place()
            reservations.show(gang, now_ms)
            if self._shortfalls is not None:
                self._shortfalls.forget()

    def _cannot_fit(self, bucket: Bucket, gang: Gang) -> bool:
        """Whether the gang cannot fit, which no attempt has to show; its bucket is refused then."""
        if self._remains(bucket):
            self._refuse(bucket, gang, UNLIMITED)
            return True
        if self._kept_out(bucket, gang):
            self._refuse(bucket, gang, UNLIMITED, short=True)
            return True
        return False

    def _remains(self, bucket: Bucket) -> bool:
        """Whether the bucket still has its shortfall."""
        shortfall, known = bucket.shortfall, self._shortfalls
        return shortfall is not None and known is not None and known.remains(bucket, shortfall)

    def _waits(self, bucket: Bucket, gang: Gang) -> bool:
        """Whether the gang fits and only the in-flight limit delays it: then it blocks the gangs
        behind it.
        """
        self._together.place()
        fair = self._extras.lower(self._limit(bucket, gang), bucket, gang)
        if fair is None or fair.leaves_nothing(self._work.state.nodes.count):
            return False
        self._work.throttled = gang_allocation.would_fit(self._work, gang, fair)
        return self._work.throttled

    def _has_spent_enough(self, bucket: Bucket) -> bool:
        """Whether each namespace of its gangs has spent more than is left for all others."""
        spent, left = self._spent, self._work.session.work_left
        return all(spent[gang.namespace] > left for _, _, gang in bucket.entries)

    def _request(self, index: int, bucket: Bucket, gang: Gang) -> bool:
        """Open the gang's ProvisioningRequest; False: its quota does not suffice, and its bucket is
        refused.
        """
        if self._requested is None:
            self._requested = RequestedQuota(self._work.state)
        if not self._requested.allows(gang):
            self._refuse(bucket, gang, UNLIMITED, short=True)
            return False
        self._requested.open_request(gang)
        self._line.put_back(index)
        return True

    def _limit(self, bucket: Bucket, gang: Gang) -> Limit:
        """The limit by fairness. Nodes that were added for a gang are not left to other queues."""
        if bucket.need.provisioning is PROVISIONED:
            return UNLIMITED
        return self._demand.limit(gang.queue, bucket.need)

    def _refuse(
        self, bucket: Bucket, gang: Gang, limit: Limit, *, short: bool | None = None
    ) -> None:
        """Refuse the bucket, whose first gang does not fit now."""
        beside = self._work.reservations.hides
        gang_allocation.refuse(self._work, bucket, limit, short=short, beside=beside)
        self._demand.judge(bucket)
        if beside:
            self._beside.append((bucket, limit))
            if self._ranks:
                self._waved.setdefault(bucket.need.queue, []).append(bucket)
        reserve = Reserve(self._work)
        if reserve.wants(bucket):
            self._together.place()
            reserve.reserve(bucket)
        bucket.minimum_unattainable = bool(bucket.need.reserved) and self._never(bucket, gang)
        if gang.queue.strict and not bucket.minimum_unattainable:
            _park(self._work.state, self._line.drop(gang.queue.name), gang)

    def _never(self, bucket: Bucket, gang: Gang) -> bool:
        """Whether its `minResources` can never be met. Such a gang does not block other gangs in a
        strict queue, and the promises of its bucket's admissions are dropped.
        """
        if min_resources.unattainable(self._work.session, gang.queue, bucket.need) is None:
            return False
        for _, _, waiting in bucket.entries:
            waiting.queue.promise(waiting.gang_id, {})
        return True

    def _kept_out(self, bucket: Bucket, gang: Gang) -> bool:
        """Whether a queue's ceiling refuses a quorum of one shape, without a search for nodes."""
        need = bucket.need
        if not need.quorum or len(need.wanted) != 1:
            return False
        if not gang.queue.exceeded_by(need.amounts(self._work.state.shapes)):
            return False
        if self._together.waiting and self._demand.limit(gang.queue, need).withheld is not None:
            # Place gathered gangs before any gang with withheld nodes. Their nodes depend on this
            # order, and recordings contain those nodes.
            self._together.place()
        return True


def _strict_queues(backlog: Backlog, queues: QueueTable) -> list[str]:
    """Names of strict queues with waiting gangs, sorted."""
    waiting = backlog.demand.by_queue
    strict = [name for name, entry in queues.entries.items() if entry.strict]
    return sorted(name for name in strict if name in waiting)


def _line_up(work: CycleContext, queues: list[str], active: dict[Bucket, None]) -> None:
    """Update the buckets to try: of each strict queue all buckets if its first one is to be tried,
    none if the first one was refused.
    """
    state, policies = work.state, work.session.policies

    def place(bucket: Bucket) -> tuple[OrderKey, GangKey]:
        order, key, gang = bucket.entries[0]
        return order if policies.users_rank is None else policies.ranked(gang), key

    lines: dict[tuple[str, bool], list[Bucket]] = {}
    for bucket in state.backlog.buckets.values():
        if bucket.need.queue in queues and not bucket.minimum_unattainable:
            lines.setdefault((bucket.need.queue, bucket.need.best_effort), []).append(bucket)
    for buckets in lines.values():
        first = min(buckets, key=place)
        if first in active or first.blocked_by is not None:
            active.update(dict.fromkeys(buckets))
            continue
        for bucket in buckets:
            active.pop(bucket, None)
        _park(state, [bucket for bucket in buckets if bucket is not first], first.entries[0][2])


def _park(state: State, buckets: list[Bucket], first: Gang) -> None:
    """Refuse the buckets until the first gang of their queue is placed; their verdicts name it."""
    for bucket in buckets:
        before = bucket.reason
        state.backlog.park(bucket, title_of(state, first))
        if before != bucket.reason:
            state.gangs.to_republish.update((key, gang) for _, key, gang in bucket.entries)
