"""The tree of Volcano's queues, by name.

A queue that names no parent is a child of `root`, as the queue controller will write it. `root` and
`default` exist even without an object.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from shared.kinds.queue import DEFAULT_QUEUE, ROOT_QUEUE
from shared.model.objects import Queue

#: The most levels that a tree of queues may have (Volcano's --max-queue-depth).
DEPTH_MAX: Final = 5


class QueueTree:
    """The queues at one moment; immutable."""

    def __init__(self, queues: Iterable[Queue]) -> None:
        self._by_name = {queue.name: queue for queue in queues}
        self._children: dict[str, list[str]] = defaultdict(list)
        for queue in sorted(self._by_name.values(), key=lambda queue: queue.name):
            if queue.name != ROOT_QUEUE:
                self._children[queue.parent or ROOT_QUEUE].append(queue.name)

    def get(self, name: str) -> Queue | None:
        """The queue of that name, if it exists."""
        return self._by_name.get(name)

    def exists(self, name: str) -> bool:
        """Whether a gang or a queue may name it."""
        return name in self._by_name or name in {ROOT_QUEUE, DEFAULT_QUEUE}

    def names(self) -> set[str]:
        """Every queue that may be named."""
        return self._by_name.keys() | {ROOT_QUEUE, DEFAULT_QUEUE}

    def children(self, name: str, *, without: str = "") -> list[Queue]:
        """The queues directly below `name` except `without`, sorted by name."""
        return [self._by_name[child] for child in self._children.get(name, ()) if child != without]

    def ancestors(self, parent: str) -> Iterator[Queue]:
        """`parent`, its parent and so on, nearest first, without `root`. Stops at a cycle and at a
        queue that does not exist.
        """
        seen: set[str] = set()
        while parent not in {"", ROOT_QUEUE} and parent not in seen:
            seen.add(parent)
            queue = self._by_name.get(parent)
            if queue is None:
                return
            yield queue
            parent = queue.parent

    def objection(self, name: str, what: str) -> str:
        """Why an object of kind `what` ("job", "PodGroup") cannot be submitted to a queue; "" when
        it can.

        A queue without a state counts as open: it may be used before a controller has written its
        state. (Volcano refuses it until then; its controller writes the state within milliseconds.)
        """
        queue = self._by_name.get(name)
        if queue is not None and queue.state not in {"", "Open"}:
            return (
                f"can only submit {what} to queue with state `Open`, "
                f"queue `{name}` status is `{queue.state}`"
            )
        return ""
