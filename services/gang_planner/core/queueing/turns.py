"""Turns of queues: of all queues in line the one with the least key is next. A queue that places a
gang holds more, so its key grows.

Where queues are compared level by level (`Policy.queue_share`), the keys of siblings differ only at
the end. Siblings are kept in a heap by that end, and sets of siblings in a heap by the whole key:
when a queue places a gang, only its own end and the common part of its siblings are compared again.
Otherwise each queue is a set of its own.
"""

import heapq
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from services.gang_planner.core.framework.policy_set import PolicySet
from services.gang_planner.core.state.gangs import OrderKey
from services.gang_planner.core.state.queues import QueueEntry

_Siblings: TypeAlias = list[tuple[OrderKey, QueueEntry]]
"""A heap by the end of the key, which no two of them share."""


class Turns:
    """The queues that have a gang in line.

    Keys only grow while gangs are placed, so a key that was read earlier is at most what it is
    now: a queue that is least by such keys, and has not changed, is the least of all.
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
        #: (key of the first, a unique number, siblings): a heap.
        self._sets: list[tuple[OrderKey, int, _Siblings]] = []
        for number, siblings in enumerate(together.values()):
            heapq.heapify(siblings)
            self._sets.append((self._key(siblings), number, siblings))
        heapq.heapify(self._sets)

    def first(self) -> QueueEntry | None:
        """The queue whose turn it is; None: no gang is in line."""
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
        """Whether the queue that was `first`, and has been charged since, surely has the next turn,
        too.
        """
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
        """Whether only one queue is left in line."""
        return len(self._sets) == 1 and len(self._sets[0][2]) == 1

    def drop_first(self) -> None:
        """The queue that was `first` has no gang left in line."""
        siblings = self._sets[0][2]
        heapq.heappop(siblings)
        if not siblings:
            heapq.heappop(self._sets)

    def _key(self, siblings: _Siblings) -> OrderKey:
        end, queue = siblings[0]
        return self._policies.queue_order_start(queue, self._totals) + end

    def _settle(self, siblings: _Siblings) -> None:
        """Bring the least of siblings to the front."""
        while True:
            end, queue = siblings[0]
            now = self._policies.queue_order_end(queue)
            if now == end:
                return
            heapq.heapreplace(siblings, (now, queue))
