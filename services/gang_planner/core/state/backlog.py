"""Gangs that wait to be placed, in buckets of interchangeable gangs; and groups that wait for their
admission.

Gangs with the same *signature* (queue, and needed members by shape) all fit or all do not fit. A
refused bucket is not tried again before capacity is freed: ten thousand equal gangs cost one
attempt, and an unrelated pod costs none.

The admission queue has groups whose pods are created only after the enqueue action admits them.
Groups that get the same votes in every cluster state share a bucket.
"""

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from services.gang_planner.core.state.gangs import Bucket, Gang, OrderKey
from services.gang_planner.core.state.needs import Claimant, Need, ProvisioningStage
from services.gang_planner.core.state.queued_demand import QueuedDemand
from services.gang_planner.core.state.queues import QueueEntry
from shared.model.gang_keys import GangKey
from shared.model.invariants import InvariantViolation

if TYPE_CHECKING:
    from services.gang_planner.core.state.past_use import AccountKey


class Backlog:
    """All buckets, and their queued demand."""

    def __init__(self) -> None:
        self.buckets: dict[tuple[object, ...], Bucket] = {}
        #: Buckets without a refusal since their creation or the last freed capacity.
        self.fresh: dict[tuple[object, ...], Bucket] = {}
        #: `NodeCapacity.freed` when all buckets were last tried.
        self.swept_at: int | None = None
        #: Waiting members, by queue and shape.
        self.demand = QueuedDemand()
        #: Buckets that were refused in favour of claimants.
        self.held: dict[tuple[object, ...], Bucket] = {}
        #: Gangs that were not refused wait for the in-flight limit.
        self.throttled = False
        #: Buckets of started gangs that lack members.
        self.lacking: dict[tuple[object, ...], Bucket] = {}
        #: Buckets of gangs whose ProvisioningRequests are not open, and of those whose requests are
        #: provisioned.
        self.unrequested: dict[tuple[object, ...], Bucket] = {}
        self.provisioned: dict[tuple[object, ...], Bucket] = {}
        #: Provisioned gangs for which capacity was kept in the last pass over other gangs.
        self.kept_for: set[GangKey] = set()
        #: Number of buckets of each user whose past use counts, by queue and user.
        self.users: dict[AccountKey, int] = {}
        #: What gangs need that wait only for an outcome. They are in no bucket.
        self.awaiting: dict[GangKey, Need] = {}

    def put(self, gang: Gang, need: Need, order: OrderKey) -> None:
        """Add a gang, or update its need and its position in the order."""
        signature = need.signature
        if gang.bucket is not None:
            known = gang.bucket.need
            if (known is need or known.signature == signature) and gang.order == order:
                return
            self.take(gang)
        elif self.awaiting:
            self.take(gang)
        bucket = self.buckets.get(signature)
        if bucket is None:
            bucket = self.buckets[signature] = self.fresh[signature] = Bucket(need)
            if need.lacking:
                self.lacking[signature] = bucket
            if need.provisioning is not None:
                is_open = need.provisioning is ProvisioningStage.PROVISIONED
                (self.provisioned if is_open else self.unrequested)[signature] = bucket
            if need.user is not None:
                self._count_user(need, 1)
        gang.bucket = bucket
        gang.order = order
        # Keys are unique, so gangs are never compared. Most gangs are added in order.
        entries, entry = bucket.entries, (order, gang.key, gang)
        if not entries or entries[-1] < entry:
            entries.append(entry)
        else:
            insort(entries, entry)
        if not bucket.unsatisfiable:
            self.demand.add(need.queue, need.wanted, 1)

    def _count_user(self, need: Need, buckets: int) -> None:
        key = need.queue, need.user
        count = self.users[key] = self.users.get(key, 0) + buckets
        if not count:
            del self.users[key]

    def count(self, gang: Gang, need: Need) -> None:
        """Count the need of a gang that waits only for the outcome of its decision as demand,
        without trying the gang. Otherwise other queues would get its share in the meantime.
        """
        self.take(gang)
        self.awaiting[gang.key] = need
        self.demand.add(need.queue, need.wanted, 1)

    def take(self, gang: Gang) -> None:
        """Remove a gang and its demand; no effect if it is not in the backlog."""
        if self.awaiting and (counted := self.awaiting.pop(gang.key, None)) is not None:
            self.demand.add(counted.queue, counted.wanted, -1)
        bucket = gang.bucket
        if bucket is None:
            return
        gang.bucket = None
        at = bisect_left(bucket.entries, (gang.order, gang.key))
        if bucket.entries[at][2] is not gang:
            raise InvariantViolation(gang.full_name, "is not in its bucket")
        del bucket.entries[at]
        self._taken(bucket, 1)

    def take_first(self, bucket: Bucket, gangs: int) -> None:
        for _, _, gang in islice(bucket.entries, gangs):
            gang.bucket = None
        del bucket.entries[:gangs]
        self._taken(bucket, gangs)

    def _taken(self, bucket: Bucket, gangs: int) -> None:
        if not bucket.unsatisfiable:
            self.demand.add(bucket.need.queue, bucket.need.wanted, -gangs)
        if not bucket.entries:
            signature = bucket.need.signature
            del self.buckets[signature]
            parts = self.fresh, self.held, self.lacking, self.unrequested, self.provisioned
            for buckets in parts:
                buckets.pop(signature, None)
            if bucket.need.user is not None:
                self._count_user(bucket.need, -1)

    def refuse(
        self,
        bucket: Bucket,
        freed: int,
        *,
        short_of_quota: bool,
        claimants: tuple[Claimant, ...] = (),
        beside: bool = False,
    ) -> None:
        """Refuse all gangs of a bucket until something is freed, or until its claimants change."""
        signature = bucket.need.signature
        bucket.refused_at = freed
        bucket.short_of_quota = short_of_quota
        bucket.blocked_by = None
        if not beside:
            bucket.would_delay = None
        bucket.claimants = claimants
        if claimants:
            self.held[signature] = bucket
            bucket.explained_at = None
        else:
            self.held.pop(signature, None)
        self.fresh.pop(signature, None)

    def park(self, bucket: Bucket, blocked_by: str) -> None:
        """Refuse all gangs of a bucket while the gang `blocked_by` is ahead of them."""
        bucket.blocked_by = blocked_by
        self.fresh.pop(bucket.need.signature, None)

    def judge(self, bucket: Bucket, nodes_at: int, *, unsatisfiable: bool) -> None:
        """Record whether a bucket's gangs could fit as of `nodes_at`: else they are no demand."""
        bucket.judged_at = nodes_at
        if bucket.unsatisfiable != unsatisfiable:
            bucket.unsatisfiable = unsatisfiable
            gangs = len(bucket.entries)
            self.demand.add(
                bucket.need.queue, bucket.need.wanted, -gangs if unsatisfiable else gangs
            )

    def forget_kept(self) -> bool:
        """Keep capacity for no gang that no longer waits; whether it was kept for one."""
        waiting = {key for bucket in self.provisioned.values() for _, key, _ in bucket.entries}
        gone = self.kept_for - waiting
        self.kept_for -= gone
        return bool(gone)

    def active(self, freed: int) -> list[Bucket]:
        """The buckets to try: all if capacity was freed since the last sweep, else fresh ones."""
        if freed != self.swept_at:
            self.swept_at = freed
            self.fresh = dict(self.buckets)
        return list(self.fresh.values())


class Line:
    """The gangs of some buckets, by queue and in order, taken one by one.

    The caller chooses the queue of each turn, because the order of queues may change after every
    gang (the queue's share grows). Where past use counts, `ranked` returns a gang's present order:
    what its user holds grows with every gang that is placed, so a bucket's order only grows.
    """

    def __init__(
        self, buckets: list[Bucket], ranked: Callable[[Gang], OrderKey] | None = None
    ) -> None:
        self._heaps: dict[str, list[tuple[OrderKey, GangKey, int]]] = {}
        self._buckets = buckets
        self._ranked = ranked
        for index, bucket in enumerate(buckets):
            order, key, gang = bucket.entries[0]
            if ranked is not None:
                order = ranked(gang)
            self._heaps.setdefault(bucket.need.queue, []).append((order, key, index))
        for heap in self._heaps.values():
            heapq.heapify(heap)

    def queues(self) -> list[str]:
        return list(self._heaps)

    def head(self, queue: str) -> tuple[int, Bucket, Gang]:
        """Take the bucket with a queue's next gang out of the line: its index, it and the gang."""
        heap = self._heaps[queue]
        if self._ranked is not None:
            self._settle(heap, self._ranked)
        _, key, index = heapq.heappop(heap)
        if not heap:
            del self._heaps[queue]
        bucket = self._buckets[index]
        gang = bucket.entries[0][2]
        if gang.key != key:
            raise InvariantViolation(gang.full_name, f"is first in its bucket instead of {key}")
        return index, bucket, gang

    def _settle(
        self, heap: list[tuple[OrderKey, GangKey, int]], ranked: Callable[[Gang], OrderKey]
    ) -> None:
        """Move the bucket with the smallest present order to the front."""
        while True:
            order, key, index = heap[0]
            now = ranked(self._buckets[index].entries[0][2])
            if now == order:
                return
            heapq.heapreplace(heap, (now, key, index))

    def alike(self, bucket: Bucket, most: int) -> list[Gang]:
        """At most `most` first gangs of a bucket that was just taken out of the line, without those
        behind a gang of another bucket of their queue.
        """
        heap = self._heaps.get(bucket.need.queue)
        if heap and self._ranked is not None:
            # The next one changes its user's turn.
            return [bucket.entries[0][2]]
        until = heap[0][:2] if heap else None
        gangs: list[Gang] = []
        for order, key, gang in islice(bucket.entries, most):
            if until is not None and (order, key) > until:
                break
            gangs.append(gang)
        return gangs

    def holds(self, queue: str) -> bool:
        return queue in self._heaps

    def buckets_of(self, queue: str) -> list[Bucket]:
        return [self._buckets[index] for _, _, index in self._heaps.get(queue, ())]

    def drop(self, queue: str) -> list[Bucket]:
        """Remove and return a queue's buckets that are in line."""
        return [self._buckets[index] for _, _, index in self._heaps.pop(queue, ())]

    def index(self, bucket: Bucket) -> int:
        """The index of a bucket that was taken out of the line."""
        return self._buckets.index(bucket)

    def put_back(self, index: int) -> None:
        """Put a bucket back into the line with its next gang, if it has one."""
        bucket = self._buckets[index]
        if not bucket.entries:
            return
        order, key, gang = bucket.entries[0]
        if self._ranked is not None:
            order = self._ranked(gang)
        heapq.heappush(self._heaps.setdefault(bucket.need.queue, []), (order, key, index))


class AdmissionBucket(msgspec.Struct, eq=False):
    """Groups that get the same votes, in their order."""

    signature: tuple[object, ...]
    queue: QueueEntry
    #: Keys are unique, so gangs are never compared.
    entries: list[tuple[OrderKey, GangKey, Gang]] = []
    #: Versions of the voters' input when its first group was refused; (): not tried yet.
    refused_at: tuple[int, ...] = ()


class AdmissionQueue:
    """All groups that wait for admission."""

    def __init__(self) -> None:
        self.buckets: dict[tuple[object, ...], AdmissionBucket] = {}
        self._of: dict[GangKey, tuple[AdmissionBucket, OrderKey]] = {}

    def put(self, gang: Gang, signature: tuple[object, ...], order: OrderKey) -> None:
        """Add a group to the bucket of this signature, or move it there, placed by `order`."""
        known = self._of.get(gang.key)
        if known is not None:
            if known[0].signature == signature and known[1] == order:
                return
            self.take(gang)
        bucket = self.buckets.get(signature)
        if bucket is None:
            bucket = self.buckets[signature] = AdmissionBucket(signature, gang.queue)
        self._of[gang.key] = bucket, order
        insort(bucket.entries, (order, gang.key, gang))

    def take(self, gang: Gang) -> None:
        """Remove a group; no-op if it does not wait."""
        known = self._of.pop(gang.key, None)
        if known is None:
            return
        bucket, order = known
        del bucket.entries[bisect_left(bucket.entries, (order, gang.key))]
        if not bucket.entries:
            del self.buckets[bucket.signature]

    def first(self, queue: QueueEntry) -> Gang | None:
        """The first waiting group of a queue; None: there is none."""
        heads = [bucket.entries[0] for bucket in self.buckets.values() if bucket.queue is queue]
        return min(heads)[2] if heads else None
