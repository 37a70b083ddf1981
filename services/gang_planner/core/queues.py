"""Queues by name: the object in force, and what their gangs hold.

Two dialects may declare a queue of the same name; Volcano's is in force then, because it is the one
with limits. A queue that exists nowhere has an entry without an object as soon as a gang names it.
`default` needs no object.
"""

from typing import Final

from services.gang_planner.core.columns import ResourceIndex, clamped
from services.gang_planner.core.shapes import ShapeEntry
from shared.model.objects import Queue, Resources

DEFAULT: Final = "default"
_PREFERENCE: Final = {"volcano": 0, "incubator": 1, "sigs": 2}
_BUILT_IN: Final = Queue(uid="", dialect="", name=DEFAULT, resource_version=0)


class QueueEntry:
    """One queue and the amounts that members of its gangs hold, by resource row."""

    def __init__(self, name: str, resources: ResourceIndex) -> None:
        self.name = name
        self.queue: Queue | None = _BUILT_IN if name == DEFAULT else None
        self.used: dict[int, int] = {}
        #: Hard ceiling, by resource row; a resource that it does not name is unlimited.
        self.capability: dict[int, int] = {}
        #: Minima of admitted gangs that have not started, by gang id: they have been promised.
        self._promises: dict[str, dict[int, int]] = {}
        self._promised: dict[int, int] = {}
        self._resources = resources

    @property
    def open(self) -> bool:
        """Whether fresh gangs are admitted."""
        return self.queue is not None and self.queue.state in {"", "Open"}

    @property
    def weight(self) -> int:
        """Its weight, at least 1."""
        return max(1, self.queue.weight) if self.queue is not None else 1

    @property
    def priority(self) -> int:
        """Its priority; higher goes first."""
        return self.queue.priority if self.queue is not None else 0

    def use(self, queue: Queue | None) -> None:
        """Put an object in force, or none."""
        if queue is None and self.name == DEFAULT:
            queue = _BUILT_IN
        self.queue = queue
        self.capability = self.amounts(queue.capability) if queue is not None else {}

    def amounts(self, resources: Resources) -> dict[int, int]:
        """Amounts by resource row."""
        return {self._resources.row(name): clamped(amount) for name, amount in resources}

    def charge(self, shape: ShapeEntry, count: int) -> None:
        """`count` more (or, negative, fewer) members of this shape hold room."""
        used = self.used
        for row, amount in shape.pairs:
            used[row] = used.get(row, 0) + amount * count

    def headroom(self, shape: ShapeEntry, most: int) -> int:
        """How many more members of this shape the ceiling allows, at most `most`."""
        for row, amount in shape.pairs:
            limit = self.capability.get(row)
            if limit is not None:
                most = min(most, (limit - self.used.get(row, 0)) // amount)
        return max(most, 0)

    def promise(self, gang_id: str, amounts: dict[int, int]) -> None:
        """Count a gang's minimum as used for admission, instead of its promise before."""
        for row, amount in self._promises.pop(gang_id, {}).items():
            self._promised[row] -= amount
        if amounts:
            self._promises[gang_id] = amounts
            for row, amount in amounts.items():
                self._promised[row] = self._promised.get(row, 0) + amount

    def excess(self, wanted: dict[int, int], *, promised: bool) -> dict[int, int]:
        """By how much `wanted` more would exceed the ceiling, by row; empty: it would not."""
        over: dict[int, int] = {}
        for row, amount in wanted.items():
            limit = self.capability.get(row)
            if limit is None or amount <= 0:
                continue
            held = self.used.get(row, 0)
            if promised:
                held += self._promised.get(row, 0)
            if held + amount > limit:
                over[row] = held + amount - limit
        return over


class QueueTable:
    """All queues."""

    def __init__(self, resources: ResourceIndex) -> None:
        self._resources = resources
        self.entries: dict[str, QueueEntry] = {}
        self.objects: dict[str, Queue] = {}

    def entry(self, name: str) -> QueueEntry:
        """The entry of a queue, made when it is new."""
        entry = self.entries.get(name)
        if entry is None:
            entry = self.entries[name] = QueueEntry(name, self._resources)
        return entry

    def put(self, queue: Queue) -> QueueEntry:
        """A queue appeared or changed."""
        self.objects[queue.uid] = queue
        return self._choose(queue.name)

    def remove(self, uid: str) -> QueueEntry | None:
        """A queue is gone; returns its entry when it was known."""
        queue = self.objects.pop(uid, None)
        return self._choose(queue.name) if queue is not None else None

    def _choose(self, name: str) -> QueueEntry:
        candidates = [queue for queue in self.objects.values() if queue.name == name]
        entry = self.entry(name)
        entry.use(min(candidates, key=_preference, default=None))
        return entry


def _preference(queue: Queue) -> tuple[int, str, str]:
    return _PREFERENCE.get(queue.dialect, len(_PREFERENCE)), queue.dialect, queue.uid
