"""Whose turn it is: the newest verdict of each gang, ordered by when and how urgent its next write
is.

Keyed by gang: a newer verdict takes the place of an older one, so that what was overtaken is never
written. Bounded by the deliveries that the consumer allows unacknowledged. While a gang is out
(`pop`), no other writer gets it; `put` or `drop` brings it back.

What was overtaken is passed over when its turn comes, which it never does below what is more
urgent: so overtaken items are swept out once they are most of all.
"""

import heapq
from typing import Final, Generic, TypeVar

T = TypeVar("T")

#: So many overtaken items are not worth a sweep.
_OVERTAKEN_MAX: Final = 256


class Agenda(Generic[T]):
    """Entries by gang id."""

    def __init__(self) -> None:
        self._entries: dict[str, T] = {}
        self._version: dict[str, int] = {}
        self._out: set[str] = set()
        #: (due, urgency, version, gang): not due yet. Items whose version is old are passed over.
        self._later: list[tuple[int, int, int, str]] = []
        #: (urgency, due, version, gang): due, the most urgent first.
        self._ready: list[tuple[int, int, int, str]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, gang_id: str) -> T | None:
        """The gang's entry, whether it is out or not."""
        return self._entries.get(gang_id)

    @property
    def scheduled(self) -> int:
        """Items in line, overtaken ones among them."""
        return len(self._later) + len(self._ready)

    def entries(self) -> list[T]:
        """All entries."""
        return list(self._entries.values())

    def offer(self, gang_id: str, entry: T, *, due_ms: int, urgency: int) -> None:
        """Add or replace a gang's entry. One that is out stays out until it is put back."""
        self._entries[gang_id] = entry
        if gang_id not in self._out:
            self._schedule(gang_id, due_ms, urgency)

    def pop(self, now_ms: int) -> str | None:
        """Take out the most urgent gang of those that are due; None: none is."""
        while self._later and self._later[0][0] <= now_ms:
            due_ms, urgency, version, gang_id = heapq.heappop(self._later)
            heapq.heappush(self._ready, (urgency, due_ms, version, gang_id))
        while self._ready:
            _, _, version, gang_id = heapq.heappop(self._ready)
            if self._version.get(gang_id) == version:
                self._out.add(gang_id)
                return gang_id
        return None

    def put(self, gang_id: str, *, due_ms: int, urgency: int) -> None:
        """Bring back a gang that is out, for its next write."""
        self._out.remove(gang_id)
        self._schedule(gang_id, due_ms, urgency)

    def drop(self, gang_id: str) -> None:
        """Forget a gang that is out: there is nothing left to write."""
        self._out.remove(gang_id)
        del self._entries[gang_id]
        del self._version[gang_id]

    def wait_ms(self, now_ms: int) -> int | None:
        """Until the next gang is due: 0 when one is, None when nothing is scheduled."""
        while self._later and self._version.get(self._later[0][3]) != self._later[0][2]:
            heapq.heappop(self._later)
        if self._ready:
            return 0
        return max(0, self._later[0][0] - now_ms) if self._later else None

    def _schedule(self, gang_id: str, due_ms: int, urgency: int) -> None:
        self._count += 1
        self._version[gang_id] = self._count
        heapq.heappush(self._later, (due_ms, urgency, self._count, gang_id))
        if self.scheduled > 2 * len(self._entries) + _OVERTAKEN_MAX:
            self._sweep()

    def _sweep(self) -> None:
        for heap in (self._later, self._ready):
            heap[:] = [item for item in heap if self._version.get(item[3]) == item[2]]
            heapq.heapify(heap)
