"""The queues of Volcano's dialect as admission sees them: by name, with their parents and children.

A queue without parent is a child of `root`, as Volcano's queue controller will write it. `root` and
`default` exist even where they have no object.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from shared.model.objects import Queue

ROOT: Final = "root"
DEFAULT: Final = "default"
#: Levels below which no queue may hang (Volcano's --max-queue-depth).
DEPTH_MAX: Final = 5


class QueueTree:
    """An immutable view of the queues at one moment."""

    def __init__(self, queues: Iterable[Queue]) -> None:
        self._by_name = {queue.name: queue for queue in queues}
        self._children: dict[str, list[str]] = defaultdict(list)
        for queue in sorted(self._by_name.values(), key=lambda queue: queue.name):
            if queue.name != ROOT:
                self._children[queue.parent or ROOT].append(queue.name)

    def get(self, name: str) -> Queue | None:
        """The queue of that name, if it exists."""
        return self._by_name.get(name)

    def exists(self, name: str) -> bool:
        """Whether a gang or a queue may name it."""
        return name in self._by_name or name in {ROOT, DEFAULT}

    def names(self) -> set[str]:
        """Every queue that may be named."""
        return self._by_name.keys() | {ROOT, DEFAULT}

    def children(self, name: str, *, without: str = "") -> list[Queue]:
        """The queues directly below `name`, sorted by name, `without` left out."""
        return [self._by_name[child] for child in self._children.get(name, ()) if child != without]

    def ancestors(self, parent: str) -> Iterator[Queue]:
        """`parent`, its parent and so on, nearest first, `root` left out. Ends in a cycle and at a
        queue that does not exist.
        """
        seen: set[str] = set()
        while parent not in {"", ROOT} and parent not in seen:
            seen.add(parent)
            queue = self._by_name.get(parent)
            if queue is None:
                return
            yield queue
            parent = queue.parent

    def objection(self, name: str, what: str) -> str:
        """Why a `what` ("job", "PodGroup") cannot be submitted to a queue; "" when it can.

        A state that has not been written yet counts as Open: a queue may be used before any
        controller has looked at it. (Volcano refuses it then; where its controller runs, the state
        is there within milliseconds.)
        """
        queue = self._by_name.get(name)
        if queue is not None and queue.state not in {"", "Open"}:
            return (
                f"can only submit {what} to queue with state `Open`, "
                f"queue `{name}` status is `{queue.state}`"
            )
        return ""
