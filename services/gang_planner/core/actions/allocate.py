"""Places gangs: queue after queue by turns, gang after gang in order, each whole or not at all.

A gang that does not fit does not block those behind it, unless its queue is strict. Gangs of
nothing but best-effort pods are left to backfill.
"""

from services.gang_planner.core import alike, restoring, sharing, strict_queues
from services.gang_planner.core.backlog import Bucket, Line
from services.gang_planner.core.cycle import CycleWork
from services.gang_planner.core.extras import Extras
from services.gang_planner.core.gangs import Gang
from services.gang_planner.core.sharing import UNLIMITED, Claims, Limit
from services.gang_planner.core.shortfalls import Shortfalls
from services.gang_planner.core.turns import Turns


def run(work: CycleWork) -> None:
    """Try every gang that something changed for, until the cycle's budget is spent."""
    place_line(work, best_effort=False)


def place_line(work: CycleWork, *, best_effort: bool) -> None:
    """Place the gangs of one kind in line."""
    state = work.state
    active = dict.fromkeys(state.backlog.active(state.ground.freed))
    active.update(dict.fromkeys(restoring.outranking(state)))
    parked = strict_queues.names(state)
    if not active and not state.backlog.held and not parked:
        return
    claims = Claims(work)
    active.update(dict.fromkeys(claims.released()))
    strict_queues.line_up(state, parked, active)
    _Pass(work, claims, [one for one in active if one.need.best_effort == best_effort]).run()


class _Pass:
    """One pass over the buckets in line."""

    def __init__(self, work: CycleWork, claims: Claims, buckets: list[Bucket]) -> None:
        self._work = work
        self._claims = claims
        self._line = Line(buckets)
        entry = work.state.queues.entry
        self._turns = Turns(
            work.session.policies, work.session.totals, map(entry, self._line.queues())
        )
        self._extras = Extras(work, self._line)
        self._shortfalls = Shortfalls(work.state, work.session, buckets)

    def run(self) -> None:
        """Give queues their turns until nobody is left in line."""
        line, session = self._line, self._work.session
        while (queue := self._turns.first()) is not None:
            if session.exhausted:
                return
            self._give_turn(queue.name)
            if not line.holds(queue.name):
                self._turns.drop_first()

    def _give_turn(self, queue: str) -> None:
        line = self._line
        index, bucket, gang = line.head(queue)
        if self._shortfalls.remains(bucket):
            self._refuse(bucket, gang, UNLIMITED)
            return
        limit = self._limit(bucket, gang)
        if limit is None:
            # All room is others' part of it: tried again when something is freed.
            refuse(self._work, bucket)
            return
        if limit is UNLIMITED and self._place_alike(bucket):
            self._claims.placed(gang.queue)
            line.put_back(index)
            return
        if not self._surely_refused(bucket, gang, limit) and place(self._work, gang, limit):
            self._claims.placed(gang.queue)
            line.put_back(index)
            return
        self._refuse(bucket, gang, limit)

    def _refuse(self, bucket: Bucket, gang: Gang, limit: Limit) -> None:
        """The bucket's first gang does not fit now."""
        refuse(self._work, bucket, limit)
        self._claims.judge(bucket)
        if gang.queue.strict:
            strict_queues.park(self._work.state, self._line.drop(gang.queue.name), gang)

    def _place_alike(self, bucket: Bucket) -> bool:
        """Place the bucket's gangs that come one after the other at once; False: one by one."""
        work, need = self._work, bucket.need
        if len(bucket.entries) < 2 or not alike.suits(work.session, need):
            return False
        queue = bucket.entries[0][2].queue
        most = min(work.session.bindings_left // need.quorum + 1, len(bucket.entries))
        most = self._claims.unlimited(queue, need, most)
        if most > 1 and not self._turns.alone:
            most = alike.turns_kept(work, queue, need, most, self._turns)
        if most < 2:
            return False
        gangs = self._line.alike(bucket, most)
        return alike.place(work, bucket, gangs) > 0

    def _limit(self, bucket: Bucket, gang: Gang) -> Limit | None:
        """What fairness allows the gang: quorums first, then extras in equal parts; None: nothing
        before others had theirs.
        """
        limit = self._claims.limit(gang.queue, bucket.need)
        if len(self._work.state.backlog.buckets) == 1 and len(bucket.entries) == 1:
            # Nobody else waits. Whether the others are in line depends on when they were tried
            # last, of which a replay knows less.
            return limit
        most = self._extras.most(bucket, gang)
        if most is None:
            return limit
        if most <= 0:
            return None
        if limit.members_max is not None:
            most = min(most, limit.members_max)
        return limit._replace(members_max=most)

    def _surely_refused(self, bucket: Bucket, gang: Gang, limit: Limit) -> bool:
        """What needs no look at the nodes: a ceiling that keeps a quorum of one shape out, or
        claims on every node.
        """
        need = bucket.need
        if sharing.leaves_nothing(self._work, limit):
            return True
        if not need.quorum or len(need.wanted) != 1:
            return False
        return bool(gang.queue.excess(need.amounts(self._work.state.shapes), promised=False))


def place(work: CycleWork, gang: Gang, limit: Limit = UNLIMITED) -> bool:
    """Place one gang of the backlog within what fairness allows it; False: it does not fit."""
    placed = restoring.attempt(work, gang, limit)
    if placed is None:
        return False
    restoring.decide(work, gang, placed)
    return True


def refuse(work: CycleWork, bucket: Bucket, limit: Limit = UNLIMITED) -> None:
    """Nothing of the bucket fits until something is freed, or nobody claims what it would take."""
    state = work.state
    queue = state.queues.entry(bucket.need.queue)
    before = bucket.reason
    short = bool(queue.excess(bucket.need.amounts(state.shapes), promised=False))
    held = not short and limit.withheld is not None and sharing.fits_otherwise(work, bucket)
    state.backlog.refuse(
        bucket,
        state.ground.freed,
        short_of_quota=short or held,
        held_by=limit.claimants if held else (),
    )
    if before != bucket.reason:
        for _, _, gang in bucket.entries:
            state.gangs.touch(gang)
