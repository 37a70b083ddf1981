"""Turns of queues: the queue with the smallest key is next. A queue that places a gang holds more,
so its key grows.

If queues are compared level by level (`Policy.queue_share`), the keys of siblings differ only in
their suffix. Each set of siblings is a heap by suffix, and the sets are a heap by the whole key.
When a queue places a gang, only its suffix and the common prefix of its siblings are compared
again. Otherwise each queue is a set of its own.
"""

import heapq
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from services.gang_planner.core.framework.policy_set import PolicySet
from services.gang_planner.core.state.gangs import OrderKey
from services.gang_planner.core.state.queues import QueueEntry

_Siblings: TypeAlias = list[tuple[OrderKey, QueueEntry]]
"""A heap by the suffix of the key, which is unique among siblings."""


class Turns:
    """The queues with gangs to try.

    Keys only grow while gangs are placed, so a stored key is at most the current one. If the queue
    with the smallest stored key has not changed, its current key is the smallest.
    """

    def __init__(
        self, policies: PolicySet, totals: Sequence[int], queues: Iterable[QueueEntry]
    ) -> None:
        self._policies = policies
        self._totals = totals
        together: dict[object, _Siblings] = {}
        for queue in queues:
            end = policies.queue_order_end(queue)
            together.setdefault(policies.compared_with(queue), []).append((end, queue))
        #: A heap of (key of the first sibling, unique number, siblings).
        self._sets: list[tuple[OrderKey, int, _Siblings]] = []
        for number, siblings in enumerate(together.values()):
            heapq.heapify(siblings)
            self._sets.append((self._key(siblings), number, siblings))
        heapq.heapify(self._sets)

    def first(self) -> QueueEntry | None:
        """The queue with the next turn; None: no queue is left."""
        sets = self._sets
        while sets:
            key, number, siblings = sets[0]
            self._settle(siblings)
            now = self._key(siblings)
            if now == key:
                return siblings[0][1]
            heapq.heapreplace(sets, (now, number, siblings))
        return None

    def stays_first(self) -> bool:
        """Whether the queue that was `first`, and has been charged since, surely keeps the turn."""
        siblings = self._sets[0][2]
        queue = siblings[0][1]
        end = self._policies.queue_order_end(queue)
        if len(siblings) > 1 and min(siblings[1:3])[0] < end:
            return False
        if len(self._sets) == 1:
            return True
        return self._policies.queue_order(queue, self._totals) < min(self._sets[1:3])[0]

    @property
    def alone(self) -> bool:
        """Whether only one queue is left."""
        return len(self._sets) == 1 and len(self._sets[0][2]) == 1

    def drop_first(self) -> None:
        """Remove the queue that was `first`: it has no gang left to try."""
        siblings = self._sets[0][2]
        heapq.heappop(siblings)
        if not siblings:
            heapq.heappop(self._sets)

    def _key(self, siblings: _Siblings) -> OrderKey:
        end, queue = siblings[0]
        return self._policies.queue_order_start(queue, self._totals) + end

    def _settle(self, siblings: _Siblings) -> None:
        """Move the sibling with the smallest current suffix to the front."""
        while True:
            end, queue = siblings[0]
            now = self._policies.queue_order_end(queue)
            if now == end:
                return
            heapq.heapreplace(siblings, (now, queue))
