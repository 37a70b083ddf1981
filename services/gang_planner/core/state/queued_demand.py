"""Number of waiting members by queue and shape, updated incrementally by the backlog."""

from collections.abc import Iterable


class QueuedDemand:
    """Number of waiting members by queue name and shape id; zeros are not stored."""

    def __init__(self) -> None:
        self.by_queue: dict[str, dict[int, int]] = {}
        #: Number of changes so far.
        self.changes = 0

    def add(self, queue: str, wanted: Iterable[tuple[str, int, int]], gangs: int) -> None:
        """Add the demand of `gangs` gangs (negative: remove), each (role, shape id, members)."""
        self.changes += 1
        counts = self.by_queue.setdefault(queue, {})
        for _, shape_id, members in wanted:
            count = counts.get(shape_id, 0) + members * gangs
            if count:
                counts[shape_id] = count
            else:
                del counts[shape_id]
        if not counts:
            del self.by_queue[queue]
