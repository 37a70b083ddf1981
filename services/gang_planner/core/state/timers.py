"""When gangs are assessed again although no record names them."""

import heapq
from typing import TYPE_CHECKING

from services.gang_planner.core.state.gang_table import GangTable
from services.gang_planner.core.state.gangs import Gang

if TYPE_CHECKING:
    from shared.model.gang_keys import GangKey


class Timers:
    """The times at which gangs are assessed again, in milliseconds."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, GangKey]] = []
        self._known: set[tuple[int, GangKey]] = set()

    def set(self, at_ms: int, gang: Gang) -> None:
        """Assess the gang again at this time; repeated calls have no further effect."""
        entry = (at_ms, gang.key)
        if entry not in self._known:
            self._known.add(entry)
            heapq.heappush(self._heap, entry)

    def forget(self) -> None:
        """Discard all times, after the clock was set back."""
        self._heap.clear()
        self._known.clear()

    def due(self, gangs: GangTable, now_ms: int) -> None:
        """Mark every gang whose time has come as changed, and remove these times."""
        while self._heap and self._heap[0][0] <= now_ms:
            entry = heapq.heappop(self._heap)
            self._known.discard(entry)
            gang = gangs.gangs.get(entry[1])
            if gang is not None:
                gangs.touch(gang)

    @property
    def next_ms(self) -> int | None:
        """The earliest time; None: there are none."""
        return self._heap[0][0] if self._heap else None
