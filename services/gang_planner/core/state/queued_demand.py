"""What waits to be placed, by queue and shape: kept up by the backlog, so that no reader has to add
it up.
"""

from collections.abc import Iterable


class QueuedDemand:
    """Waiting members by queue name and shape id; nothing is kept of what is zero."""

    def __init__(self) -> None:
        self.by_queue: dict[str, dict[int, int]] = {}
        #: Grows with every change.
        self.changes = 0

    def add(self, queue: str, wanted: Iterable[tuple[str, int, int]], gangs: int) -> None:
        """`gangs` more (negative: fewer) gangs of the queue want (role, shape id, members) each."""
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
