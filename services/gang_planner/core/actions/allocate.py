"""Places gangs: queues take turns, each queue's gangs in order, each gang whole or not at all.

A gang that does not fit does not block the gangs behind it, unless its queue is strict.

When the in-flight limit is reached (`Session.admits`), the next gang in order waits and blocks the
gangs behind it. So a more urgent gang that arrives later is placed before it, instead of behind a
backlog of decisions.
"""

from collections import Counter
from typing import Final

from services.gang_planner.core.allocation import batch, gang_allocation, kept_capacity
from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.placement.refusals import Shortfalls
from services.gang_planner.core.queueing import fair_share, min_resources, strict_order
from services.gang_planner.core.queueing.fair_share import (
    UNLIMITED,
    Claims,
    Limit,
)
from services.gang_planner.core.queueing.provisioning import RequestedQuota
from services.gang_planner.core.queueing.turns import Turns
from services.gang_planner.core.queueing.water_filling import Party, whole_shares
from services.gang_planner.core.state.backlog import Line
from services.gang_planner.core.state.gangs import Bucket, Gang
from services.gang_planner.core.state.needs import ProvisioningStage
from shared.model.gang_keys import GangKey

UNREQUESTED: Final = ProvisioningStage.UNREQUESTED
PROVISIONED: Final = ProvisioningStage.PROVISIONED


def run(work: CycleContext, *, best_effort: bool = False) -> None:
    """Try every gang that may fit since its last attempt, until the cycle's budget is spent.

    `best_effort` is the action backfill: only gangs whose waiting members are all best-effort, and
    request no resource but a node's pod slot. Otherwise all other gangs.
    """
    state = work.state
    if work.throttled or (state.backlog.buckets and not work.session.worth_a_look):
        work.throttled = True
        return
    if state.backlog.kept_for:
        kept_capacity.retry_others(state)
    active = dict.fromkeys(state.backlog.active(state.node_capacity.freed))
    if state.holds.by_uid:
        active.update(dict.fromkeys(gang_allocation.outranking(state)))
    # Their quota may suffice since another gang of them is gone.
    active.update(dict.fromkeys(state.backlog.unrequested.values()))
    parked = strict_order.names(state)
    if not active and not state.backlog.held and not parked:
        return
    claims = Claims(work)
    active.update(dict.fromkeys(claims.released()))
    if parked:
        strict_order.line_up(state, parked, active)
    buckets = [one for one in active if one.need.best_effort == best_effort]
    if not state.backlog.provisioned:
        _Pass(work, claims, buckets).run()
        return
    # Nodes were added for these gangs. Other gangs would use them if they happened to be first.
    first = [one for one in buckets if one.need.provisioning is PROVISIONED]
    _Pass(work, claims, first).run()
    kept = kept_capacity.keep(work)
    _Pass(work, claims, [one for one in buckets if one not in first]).run()
    for statement in kept:
        statement.discard()


class _Pass:
    """One pass over the active buckets."""

    def __init__(self, work: CycleContext, claims: Claims, buckets: list[Bucket]) -> None:
        self._work = work
        self._claims = claims
        self._line = Line(buckets)
        entry = work.state.queues.entry
        self._turns = Turns(
            work.session.policies, work.session.totals, map(entry, self._line.queues())
        )
        self._together = batch.BatchPlacement(work)
        self._extras = _Extras(work, self._line)
        self._shortfalls = Shortfalls(work.state, work.session, buckets)
        self._requested: RequestedQuota | None = None
        #: Work on gangs that were refused, by namespace.
        self._spent: Counter[str] = Counter()
        #: Buckets that come last: their namespaces have spent more than is left for all others.
        self._set_aside: list[Bucket] = []

    def run(self) -> None:
        """Give queues turns until no gang is left in line, or the budget is spent."""
        line, session = self._line, self._work.session
        while (queue := self._turns.first()) is not None:
            if session.exhausted or self._work.throttled:
                break
            while not self._give_turn(queue.name):
                # The queue's use has not changed, so it is still first in turn.
                if session.exhausted or self._work.throttled or not line.holds(queue.name):
                    break
            if not line.holds(queue.name):
                self._turns.drop_first()
        self._together.place()
        if self._set_aside and not session.exhausted and not self._work.throttled:
            _Pass(self._work, self._claims, self._set_aside).run()

    def _give_turn(self, queue: str) -> bool:
        """Try a queue's next gang. False: it was not placed; unless it waits for the in-flight
        limit, or for the gangs of other namespaces, its bucket is refused.
        """
        line, session = self._line, self._work.session
        index, bucket, gang = line.head(queue)
        if not gang.queue.strict and self._has_spent_enough(bucket):
            self._set_aside.append(bucket)
            return False
        if bucket.need.provisioning is UNREQUESTED:
            return self._request(index, bucket, gang)
        shortfall = bucket.shortfall
        if shortfall is not None and self._shortfalls.remains(bucket, shortfall):
            self._refuse(bucket, gang, UNLIMITED)
            return False
        if self._kept_out(bucket, gang):
            self._refuse(bucket, gang, UNLIMITED, short=True)
            return False
        if not session.admits(bucket.need.least) and self._waits(bucket, gang):
            self._work.throttled = True
            return False
        limit = self._limit(bucket, gang)
        if limit is UNLIMITED:
            most = self._claims.unlimited(gang.queue, bucket.need, len(bucket.entries))
            if self._together.gather(bucket, line, self._turns, most):
                self._claims.placed(gang.queue)
                line.put_back(index)
                return True
        # The code below reads node capacity, so gathered gangs are placed first.
        self._together.place()
        fair = self._with_extras(bucket, gang, limit)
        if fair is None:
            # The free capacity is for the quorums of other gangs: retried when capacity is freed.
            gang_allocation.refuse(self._work, bucket)
            return False
        some = not fair_share.leaves_nothing(self._work, fair)
        work_left = session.work_left
        if some and gang_allocation.place_gang(self._work, gang, fair):
            self._claims.placed(gang.queue)
            line.put_back(index)
            return True
        self._spent[gang.namespace] += work_left - session.work_left
        self._refuse(bucket, gang, fair)
        return False

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

    def _waits(self, bucket: Bucket, gang: Gang) -> bool:
        """Whether the gang fits and only the in-flight limit delays it. A gang that does not fit
        anyway does not block the gangs behind it.
        """
        self._together.place()
        limit = self._limit(bucket, gang)
        fair = self._with_extras(bucket, gang, limit)
        if fair is None or fair_share.leaves_nothing(self._work, fair):
            return False
        return gang_allocation.would_fit(self._work, gang, fair)

    def _limit(self, bucket: Bucket, gang: Gang) -> Limit:
        """The limit by fairness. Nodes that were added for a gang are not left to other queues."""
        if bucket.need.provisioning is PROVISIONED:
            return UNLIMITED
        return self._claims.limit(gang.queue, bucket.need)

    def _refuse(
        self, bucket: Bucket, gang: Gang, limit: Limit, *, short: bool | None = None
    ) -> None:
        """Refuse the bucket, whose first gang does not fit now."""
        gang_allocation.refuse(self._work, bucket, limit, short=short)
        self._claims.judge(bucket)
        bucket.minimum_unattainable = bool(bucket.need.reserved) and self._never(bucket, gang)
        if gang.queue.strict and not bucket.minimum_unattainable:
            strict_order.park(self._work.state, self._line.drop(gang.queue.name), gang)

    def _never(self, bucket: Bucket, gang: Gang) -> bool:
        """Whether its `minResources` can never be met. Such a gang does not block other gangs in a
        strict queue, and the promises of its bucket's admissions are dropped.
        """
        if min_resources.unattainable(self._work.session, gang.queue, bucket.need) is None:
            return False
        for _, _, one in bucket.entries:
            one.queue.promise(one.gang_id, {})
        return True

    def _with_extras(self, bucket: Bucket, gang: Gang, limit: Limit) -> Limit | None:
        """The limit by fairness, lowered for extra members: all quorums come before extra members,
        which are shared equally. None: the gang may place no members before other gangs.
        """
        need, session = bucket.need, self._work.session
        most = None
        # Extras are unlimited only if no other gang waits. The backlog is read, not the line: the
        # line depends on earlier attempts, which a replay does not know completely.
        if len(self._work.state.backlog.buckets) != 1 or len(bucket.entries) != 1:
            most = self._extras.most(bucket, gang)
        if session.admitted < need.members:
            # Members above the minimum may be placed after binders have answered for other pods.
            admitted = max(session.admitted, need.least)
            most = admitted if most is None else min(most, admitted)
        if most is None:
            return limit
        if most <= 0:
            return None
        if limit.members_max is not None:
            most = min(most, limit.members_max)
        return limit._replace(members_max=most)

    def _kept_out(self, bucket: Bucket, gang: Gang) -> bool:
        """Whether a queue's ceiling refuses a quorum of one shape, without a search for nodes."""
        need = bucket.need
        if not need.quorum or len(need.wanted) != 1:
            return False
        if not gang.queue.exceeded_by(need.amounts(self._work.state.shapes)):
            return False
        if self._together.waiting and self._claims.limit(gang.queue, need).withheld is not None:
            # Place gathered gangs before any gang with withheld nodes. Their nodes depend on this
            # order, and recordings contain those nodes.
            self._together.place()
        return True


class _Extras:
    """Shares free capacity fairly among extra members: while other gangs wait, a gang gets its
    quorum first, and the rest goes to members above quorums in equal parts.

    Gangs of one queue that wait with extras of one shape share the nodes that fit it, so that all
    of them come to have the same number of members as far as possible.
    """

    def __init__(self, work: CycleContext, line: Line) -> None:
        self._work = work
        self._line = line
        #: Parts by queue and shape, worked out when the first gang asks.
        self._parts: dict[tuple[str, int], dict[GangKey, int]] = {}

    def most(self, bucket: Bucket, gang: Gang) -> int | None:
        """How many members the gang may place now; None: any number.

        Its bucket is no longer in line. Members that a started gang lacks of its minima are not
        extras.
        """
        need = bucket.need
        if need.structure is not None:
            return None
        if need.quorum:
            return need.quorum if need.members > need.quorum else None
        if len(need.wanted) != 1 or need.best_effort:
            return None
        ((_, shape_id, wanted),) = need.wanted
        if wanted == 1:
            return None
        key = (need.queue, shape_id)
        parts = self._parts.get(key)
        if parts is None:
            in_line = [bucket, *self._line.buckets_of(need.queue)]
            parts = self._parts[key] = self._share(shape_id, in_line)
        part = parts.get(gang.key)
        return None if part is None else max(part, need.lacking)

    def _share(self, shape_id: int, in_line: list[Bucket]) -> dict[GangKey, int]:
        #: Gang, members that wait, and how many of them are not extras.
        gangs: list[tuple[Gang, int, int]] = []
        for one in in_line:
            need = one.need
            if need.quorum or need.structure is not None or len(need.wanted) != 1:
                continue
            ((_, wanted_shape, wanted),) = need.wanted
            if wanted_shape == shape_id:
                lacking = min(need.lacking, wanted)
                gangs += [(gang, wanted, lacking) for _, _, gang in one.entries]
        if len(gangs) < 2:
            return {}
        fitting = self._work.session.total(self._work.state.shapes.entries[shape_id])
        if fitting >= sum(wanted for _, wanted, _ in gangs):
            return {}
        # Members whose pods are gone do not count: a part is one of pods.
        have = [gang.have() - gang.run.succeeded for gang, _, _ in gangs]
        parties = [
            Party(1, count + lacking, count + wanted)
            for count, (_, wanted, lacking) in zip(have, gangs, strict=True)
        ]
        total = fitting + sum(have)
        shares = whole_shares(total, parties)
        # Members are whole: the first gangs in line that still want one get those left over.
        rising = [at for at, party in enumerate(parties) if shares[at] < party.most]
        rising.sort(key=lambda at: shares[at])
        for at in rising[: max(total - sum(shares), 0)]:
            shares[at] += 1
        return {
            gang.key: share - count
            for (gang, _, _), share, count in zip(gangs, shares, have, strict=True)
        }
