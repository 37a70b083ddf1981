"""The writes to all queues, planned from the queues, their groups and the Commands about them.
Pure.

It is level-triggered: the plan depends on the stored state only, also after a controller was killed
between two writes.

* A queue without a state is opened. One that names no parent gets `root`.
* A closed queue is Closing while it has unfinished groups, then Closed. Its descendants close with
  it and are marked (annotation closed-by-parent).
* A marked queue opens with its parent. A Command that opens a queue below a closed one marks it, so
  that it opens with its parent. A Command that closes a marked queue removes the mark.
* `root` is never closed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from shared.kinds.command import Command
from shared.kinds.queue import CLOSED_BY_PARENT, ROOT_QUEUE, Queue

#: States in which a queue takes new groups.
_OPEN: Final = frozenset({"Open", ""})


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The writes to one queue; None: this field stays."""

    name: str
    uid: str
    parent: str | None = None
    mark: str | None = None
    state: str | None = None
    #: All quantities; absent resources are to be removed.
    allocated: Mapping[str, str] | None = None
    #: Whether the queue changes from open to another state, which an Event reports.
    closes: bool = False


class _Queue:
    """One queue while it is planned."""

    def __init__(self, stored: Queue) -> None:
        self.stored = stored
        self.name = stored.metadata.name
        self.parent = stored.spec.parent or ("" if self.name == ROOT_QUEUE else ROOT_QUEUE)
        self.closed = stored.status.state not in _OPEN
        self.mark = self.stored_mark = stored.metadata.annotations.get(CLOSED_BY_PARENT)

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
    queues: Iterable[Queue],
    groups: Mapping[str, int],
    commands: Iterable[Command],
    allocated: Mapping[str, Mapping[str, str]] | None,
) -> list[Change]:
    """The queues that have to change, ordered by name.

    `groups` is the number of unfinished PodGroups by queue. Commands come the oldest first. Without
    `allocated`, the quantities allocated to each queue's groups are unknown.
    """
    table = {stored.metadata.name: _Queue(stored) for stored in queues}
    below: dict[str, list[str]] = {}
    for name, queue in sorted(table.items()):
        below.setdefault(queue.parent, []).append(name)
    _follow_parents(table, below)
    for command in commands:
        target = command.target
        named = table.get(target.name) if target is not None else None
        # A queue that was created again under its name is not the target.
        if target and named is not None and target.uid in ("", named.stored.metadata.uid):
            _carry_out(command.action, named, table)
            _follow_parents(table, below)
    changes = (
        _difference(queue, groups.get(name, 0), allocated) for name, queue in sorted(table.items())
    )
    return [change for change in changes if change is not None]


def _carry_out(action: str, queue: _Queue, table: Mapping[str, _Queue]) -> None:
    parent = table.get(queue.parent)
    if action == "OpenQueue":
        if parent is not None and parent.closed:
            if queue.closed:
                queue.mark = "true"
        else:
            queue.open()
    elif action == "CloseQueue" and queue.name != ROOT_QUEUE:
        queue.close(by_parent=False)


def _follow_parents(table: Mapping[str, _Queue], below: Mapping[str, Sequence[str]]) -> None:
    """Open and close children with their parents, from the top down.

    A queue whose parent does not exist, or that is its own ancestor, follows no parent.
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
    stored = queue.stored
    state = ("Closing" if groups else "Closed") if queue.closed else "Open"
    known = stored.status.allocated
    written = None if known is None else {key: str(value) for key, value in known.items()}
    held = _held(queue.name, written, allocated)
    change = Change(
        name=queue.name,
        uid=stored.metadata.uid,
        parent=queue.parent if queue.parent != stored.spec.parent else None,
        mark=queue.mark if queue.mark != queue.stored_mark else None,
        state=state if state != stored.status.state else None,
        allocated=held if held != written else None,
        closes=queue.closed and stored.status.state in _OPEN,
    )
    unchanged = change.parent is None and change.mark is None and change.state is None
    return None if unchanged and change.allocated is None else change


def _held(
    name: str, written: Mapping[str, str] | None, allocated: Mapping[str, Mapping[str, str]] | None
) -> Mapping[str, str]:
    """The value of status.allocated, never empty, as old CRDs require."""
    nothing = {"cpu": "0", "memory": "0"}
    if allocated is None:
        return nothing if written is None else written
    return {**nothing, **allocated.get(name, {})}
