"""From all queues, the groups in them and the Commands about them to what is to be written.

Pure and level-triggered: the same answer whenever it is asked, however often it was carried out,
and from wherever the carrying out was killed.

* A queue without a state is opened. One that names no parent gets `root`.
* Closing: no longer Open; Closing while unfinished groups are in it, Closed from then on. What is
  below it closes with it and is marked (annotation closed-by-parent).
* A marked queue opens when its parent does. A Command that opens a queue below one that is not open
  marks it, and so comes true as soon as it can. A Command that closes a marked queue unmarks it.
* `root` is never closed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from shared.kinds.queue import ROOT_QUEUE, QueueState

#: States in which a queue takes new groups.
_OPEN: Final = frozenset({"Open", ""})


class QueueSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A queue as it is stored."""

    name: str
    uid: str
    parent: str = ""
    state: QueueState | str = ""
    #: The annotation closed-by-parent; None without.
    mark: str | None = None
    #: Quantities by resource; None when none has been written.
    allocated: Mapping[str, str] | None = None


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A Command about a queue."""

    action: str
    queue: str
    #: UID of the queue that is meant.
    uid: str


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be written of one queue; None: leave it."""

    name: str
    uid: str
    parent: str | None = None
    mark: str | None = None
    state: str | None = None
    #: Whole; resources that are gone are not in it.
    allocated: Mapping[str, str] | None = None
    #: It was open and is not any more: worth an Event.
    closes: bool = False


class _Queue:
    """One queue on its way from what it is to what it is to be."""

    def __init__(self, seen: QueueSeen) -> None:
        self.seen = seen
        self.parent = seen.parent or ("" if seen.name == ROOT_QUEUE else ROOT_QUEUE)
        self.closed = seen.state not in _OPEN
        self.mark = seen.mark

    def open(self) -> None:
        self.closed = False
        self.mark = "false"

    def close(self, *, by_parent: bool) -> None:
        self.closed = True
        if by_parent:
            self.mark = "true"
        elif self.mark == "true":
            self.mark = "false"


def plan(
    queues: Iterable[QueueSeen],
    groups: Mapping[str, int],
    orders: Sequence[Order],
    allocated: Mapping[str, Mapping[str, str]] | None,
) -> list[Change]:
    """Every queue that is not as it should be, by name.

    Args:
        queues: All that there are.
        groups: Unfinished PodGroups by queue.
        orders: Commands in the order in which they were given.
        allocated: What each queue's groups hold; None: not known now.
    """
    table = {seen.name: _Queue(seen) for seen in queues}
    below: dict[str, list[str]] = {}
    for name, queue in sorted(table.items()):
        below.setdefault(queue.parent, []).append(name)
    _settle(table, below)
    for order in orders:
        meant = table.get(order.queue)
        # Made again under its name, the queue is not the one that was meant.
        if meant is not None and order.uid in ("", meant.seen.uid):
            _obey(order.action, meant, table)
            _settle(table, below)
    changes = (
        _difference(queue, groups.get(name, 0), allocated) for name, queue in sorted(table.items())
    )
    return [change for change in changes if change is not None]


def _obey(action: str, queue: _Queue, table: Mapping[str, _Queue]) -> None:
    parent = table.get(queue.parent)
    if action == "OpenQueue":
        if parent is not None and parent.closed:
            if queue.closed:
                queue.mark = "true"
        else:
            queue.open()
    elif action == "CloseQueue" and queue.seen.name != ROOT_QUEUE:
        queue.close(by_parent=False)


def _settle(table: Mapping[str, _Queue], below: Mapping[str, Sequence[str]]) -> None:
    """Have children follow their parents, from the top down.

    What hangs below nothing that exists, or in a circle of parents, follows no parent.
    """
    tops = [name for name, queue in table.items() if queue.parent not in table]
    waiting = sorted(tops, reverse=True)
    while waiting:
        name = waiting.pop()
        parent = table.get(table[name].parent)
        _follow(table[name], parent)
        waiting.extend(below.get(name, ()))


def _follow(queue: _Queue, parent: _Queue | None) -> None:
    if parent is not None and parent.closed:
        if not queue.closed:
            queue.close(by_parent=True)
    elif queue.mark == "true":
        queue.open()


def _difference(
    queue: _Queue, groups: int, allocated: Mapping[str, Mapping[str, str]] | None
) -> Change | None:
    seen = queue.seen
    state = ("Closing" if groups else "Closed") if queue.closed else "Open"
    held = _held(seen, allocated)
    change = Change(
        name=seen.name,
        uid=seen.uid,
        parent=queue.parent if queue.parent != seen.parent else None,
        mark=queue.mark if queue.mark != seen.mark else None,
        state=state if state != seen.state else None,
        allocated=held if held != seen.allocated else None,
        closes=queue.closed and seen.state in _OPEN,
    )
    unchanged = change.parent is None and change.mark is None and change.state is None
    return None if unchanged and change.allocated is None else change


def _held(
    seen: QueueSeen, allocated: Mapping[str, Mapping[str, str]] | None
) -> Mapping[str, str] | None:
    """What status.allocated should say: always something, which old CRDs require."""
    nothing = {"cpu": "0", "memory": "0"}
    if allocated is None:
        return nothing if seen.allocated is None else seen.allocated
    return {**nothing, **allocated.get(seen.name, {})}
