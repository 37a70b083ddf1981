"""Admits the groups in the admission queue: phase Pending -> Inqueue.

Operators wait for this phase before they create pods. The policies vote (see `admission`): quotas
can refuse a group, missing free capacity only affects the order. A refused group does not block the
next one, unless its queue is strict.
"""

import heapq
from typing import TYPE_CHECKING

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.framework.admission import AdmissionView, count_votes
from services.gang_planner.core.state.backlog import AdmissionBucket
from services.gang_planner.core.state.gangs import Gang, OrderKey

if TYPE_CHECKING:
    from shared.model.gang_keys import GangKey


def run(work: CycleContext) -> None:
    """Admit groups by the order of queues, then by the order of groups in each queue."""
    state = work.state
    now = (state.node_capacity.freed, state.queues.withdrawn, state.queues.changes)
    active = [
        bucket
        for bucket in state.gangs.admission_queue.buckets.values()
        if work.admit_all or bucket.queue.strict or bucket.refused_at != now
    ]
    if active:
        _Round(work, now).run(active)


class _Round:
    """One pass over the groups that may be admitted."""

    def __init__(self, work: CycleContext, now: tuple[int, ...]) -> None:
        self._work = work
        self._now = now
        self._policies = work.session.policies
        self._view = AdmissionView(
            work.state, work.session.totals, work.now_ms, self._policies.without_room
        )
        self._blocked: set[str] = set()

    def run(self, buckets: list[AdmissionBucket]) -> None:
        """Try the heads of these buckets in order."""
        totals = self._work.session.totals
        turns = {
            name: self._policies.queue_order(self._work.state.queues.entry(name), totals)
            for name in dict.fromkeys(bucket.queue.name for bucket in buckets)
        }
        heap: list[tuple[OrderKey, OrderKey, GangKey, int]] = []
        for index, bucket in enumerate(buckets):
            order, key, gang = bucket.entries[0]
            if self._policies.users_rank is not None:
                order = self._policies.ranked(gang, order)
            heap.append((turns[bucket.queue.name], order, key, index))
        heapq.heapify(heap)
        while heap:
            turn, _, _, index = heapq.heappop(heap)
            bucket = buckets[index]
            if bucket.queue.name in self._blocked:
                continue
            if self._try(bucket) and bucket.entries:
                order, key, gang = bucket.entries[0]
                if self._policies.users_rank is not None:
                    order = self._policies.ranked(gang, order)
                heapq.heappush(heap, (turn, order, key, index))

    def _try(self, bucket: AdmissionBucket) -> bool:
        """Admit the bucket's first group, or mark the bucket as refused."""
        gang = bucket.entries[0][2]
        voters = self._policies.voters
        if self._work.admit_all or (
            bucket.refused_at != self._now and count_votes(voters, gang, self._view)
        ):
            self._admit(gang)
            return True
        if bucket.refused_at != self._now:
            bucket.refused_at = self._now
            self._look_again(bucket)
        if bucket.queue.strict:
            self._blocked.add(bucket.queue.name)
        return False

    def _admit(self, gang: Gang) -> None:
        self._view.admit(gang, self._view.minimum(gang))
        self._work.state.gangs.admit(gang)

    def _look_again(self, bucket: AdmissionBucket) -> None:
        """Set timers to assess the bucket's groups again when they are overdue."""
        for _, _, gang in bucket.entries:
            due_ms = self._policies.due_ms(gang)
            if due_ms > self._work.now_ms:
                self._work.timers.set(due_ms, gang)
