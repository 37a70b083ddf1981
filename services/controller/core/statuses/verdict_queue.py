"""The queue of verdicts to be written: the newest of each gang, ordered by instant and urgency.

A newer verdict of a gang replaces the older one, which is then never written. Its length is bounded
by the number of unacknowledged deliveries that the consumer allows. A gang that was taken (`pop`)
is not given to another writer until `put` or `drop`.

This is no `reconciling.WorkQueue`: writes of one gang have an urgency, and a gang's entry is the
verdict itself with its delivery.

Items of replaced verdicts stay in the heaps and are skipped by `pop`. Below more urgent items they
might never be popped, so they are removed once they are the majority.
"""

import heapq
from typing import Final, Generic, TypeVar

T = TypeVar("T")

#: Fewer items of replaced verdicts are not worth their removal.
_REPLACED_MAX: Final = 256


class VerdictQueue(Generic[T]):
    """One entry per gang id."""

    def __init__(self) -> None:
        self._entries: dict[str, T] = {}
        self._version: dict[str, int] = {}
        self._taken: set[str] = set()
        #: (due, urgency, version, gang): not due yet. Items of an older version are skipped.
        self._later: list[tuple[int, int, int, str]] = []
        #: (urgency, due, version, gang): due; the most urgent first.
        self._ready: list[tuple[int, int, int, str]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, gang_id: str) -> T | None:
        """The gang's entry, taken or not."""
        return self._entries.get(gang_id)

    @property
    def scheduled(self) -> int:
        """Items in both heaps, those of replaced verdicts included."""
        return len(self._later) + len(self._ready)

    def entries(self) -> list[T]:
        return list(self._entries.values())

    def offer(self, gang_id: str, entry: T, *, due_ms: int, urgency: int) -> None:
        """Add or replace a gang's entry. A gang that is taken stays taken until `put` or `drop`."""
        self._entries[gang_id] = entry
        if gang_id not in self._taken:
            self._schedule(gang_id, due_ms, urgency)

    def pop(self, now_ms: int) -> str | None:
        """Take the most urgent gang that is due; None when none is."""
        while self._later and self._later[0][0] <= now_ms:
            due_ms, urgency, version, gang_id = heapq.heappop(self._later)
            heapq.heappush(self._ready, (urgency, due_ms, version, gang_id))
        while self._ready:
            _, _, version, gang_id = heapq.heappop(self._ready)
            if self._version.get(gang_id) == version:
                self._taken.add(gang_id)
                return gang_id
        return None

    def put(self, gang_id: str, *, due_ms: int, urgency: int) -> None:
        """Return a taken gang to the queue, for its next write."""
        self._taken.remove(gang_id)
        self._schedule(gang_id, due_ms, urgency)

    def drop(self, gang_id: str) -> None:
        """Remove a taken gang, which has no further writes."""
        self._taken.remove(gang_id)
        del self._entries[gang_id]
        del self._version[gang_id]

    def wait_ms(self, now_ms: int) -> int | None:
        """Milliseconds until the next gang is due; None when no gang is queued."""
        while self._later and self._version.get(self._later[0][3]) != self._later[0][2]:
            heapq.heappop(self._later)
        if self._ready:
            return 0
        return max(0, self._later[0][0] - now_ms) if self._later else None

    def _schedule(self, gang_id: str, due_ms: int, urgency: int) -> None:
        self._count += 1
        self._version[gang_id] = self._count
        heapq.heappush(self._later, (due_ms, urgency, self._count, gang_id))
        if self.scheduled > 2 * len(self._entries) + _REPLACED_MAX:
            self._remove_replaced()

    def _remove_replaced(self) -> None:
        for heap in (self._later, self._ready):
            heap[:] = [item for item in heap if self._version.get(item[3]) == item[2]]
            heapq.heapify(heap)
