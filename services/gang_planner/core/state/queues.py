"""Queues by name: the object in force, its place in the tree, and what its gangs hold.

Two dialects may declare a queue of the same name; the one of the smallest precedence is in force
then: Volcano's, because it is the one with limits. A queue that exists nowhere has an entry without
an object as soon as a gang names it. `default` needs no object.

Parents count only while the configuration asks for a hierarchy. A queue's amounts are then those of
its whole subtree, and what is taken from it is taken from all its ancestors. `root` is implied: it
is no queue's parent here unless it exists and limits something. A parent that does not exist and a
cycle make no tree: such a queue stands at the top, its `fault` says why, and no gang is admitted to
it.
"""

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple, Protocol

from services.gang_planner.core.state.columns import ResourceIndex, clamped
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from shared.dialects.discovery import precedence_of
from shared.model.gang_keys import GangKey
from shared.model.objects import Queue, Resources

DEFAULT: Final = "default"
ROOT: Final = "root"
_OPEN: Final = frozenset({"", "Open"})
_BUILT_IN: Final = Queue(uid="", dialect="", name=DEFAULT, resource_version=0)


class Fault(NamedTuple):
    """What is wrong with a queue's place in the tree."""

    reason: Literal["QueueParentMissing", "QueueCycle", "QueueNotLeaf"]
    #: A queue and the parent that it lacks; the queues of the cycle, from the first to itself; the
    #: queue that has others below it.
    queues: tuple[str, ...]


class Shortage(NamedTuple):
    """A limit that is too low for what is wanted."""

    #: Name of the queue whose limit it is: the gang's own or an ancestor.
    queue: str
    #: By how much, by resource row.
    over: dict[int, int]
    #: Part of it is what other queues are guaranteed, not the capability.
    reserved: bool


class Holder(Protocol):
    """A gang that holds capacity charged to a queue."""

    @property
    def key(self) -> GangKey:
        """That of the gang."""
        ...


class QueueEntry:
    """One queue and the amounts that members of its gangs hold, by resource row."""

    def __init__(self, name: str, resources: ResourceIndex) -> None:
        self.name = name
        self.queue: Queue | None = _BUILT_IN if name == DEFAULT else None
        #: What gangs of its subtree hold.
        self.used: dict[int, int] = {}
        #: How often `charge` has changed that: what is worked out of it may be kept meanwhile.
        self.charges = 0
        #: The part of what it declares to deserve that it holds, kept by the policy that asks.
        self.share: tuple[int, dict[int, int], dict[int, int], int] = (-1, {}, {}, 0)
        #: Hard ceiling as declared, by resource row; a resource that it does not name is unlimited.
        self.capability: dict[int, int] = {}
        #: Never reclaimed from it, and kept free for it.
        self.guarantee: dict[int, int] = {}
        #: Deserved amounts as declared.
        self.declared: dict[int, int] = {}
        #: The capability, less what others are guaranteed; `QueueTable.limit` keeps it.
        self.ceiling: dict[int, int] = {}
        #: What it deserves now, by resource row, never below its guarantee; a resource that no
        #: queue has a share of is not in it, and nothing while it shares with no queue.
        #: `queueing.fair_share` keeps it.
        self.deserved: dict[int, int] = {}
        #: Members that wait in its subtree, by shape id. `queueing.fair_share` keeps it.
        self.demand: dict[int, int] = {}
        #: Its own gangs that hold anything.
        self.holders: dict[Holder, None] = {}
        #: How many members of its own gangs hold room, by shape id; nothing is kept of zero.
        self.shapes: dict[int, int] = {}
        #: Itself and its ancestors, nearest first.
        self.chain: tuple[QueueEntry, ...] = (self,)
        self.has_children = False
        self.fault: Fault | None = None
        #: Minima of admitted gangs that have not started, by gang id: they have been promised.
        self.promises: dict[str, dict[int, int]] = {}
        #: Their sum over its subtree.
        self.promised: dict[int, int] = {}
        #: Promises withdrawn so far: gangs that were refused for them may try again.
        self.withdrawn = 0
        self._resources = resources

    @property
    def open(self) -> bool:
        """Whether fresh gangs are admitted."""
        if self.queue is None:
            return False
        for one in self.chain:
            if one.queue is not None and one.queue.state not in _OPEN:
                return False
        return True

    @property
    def weight(self) -> int:
        """Its weight, at least 1."""
        return max(1, self.queue.weight) if self.queue is not None else 1

    @property
    def priority(self) -> int:
        """Its priority; higher goes first."""
        return self.queue.priority if self.queue is not None else 0

    @property
    def strict(self) -> bool:
        """Whether a gang that does not fit blocks those behind it."""
        return self.queue is not None and self.queue.dequeue_strategy == "fifo"

    @property
    def reclaimable(self) -> bool:
        """Whether other queues may reclaim what it has beyond its deserved share."""
        return self.queue is None or self.queue.reclaimable

    @property
    def parent(self) -> "QueueEntry | None":
        """The queue that it is part of, while there is a hierarchy."""
        return self.chain[1] if len(self.chain) > 1 else None

    def use(self, queue: Queue | None) -> None:
        """Put an object in force, or none."""
        if queue is None and self.name == DEFAULT:
            queue = _BUILT_IN
        self.queue = queue
        self.capability = self.amounts(queue.capability) if queue is not None else {}
        self.guarantee = self.amounts(queue.guarantee) if queue is not None else {}
        self.declared = self.amounts(queue.deserved) if queue is not None else {}
        self.ceiling = self.capability

    def amounts(self, resources: Resources) -> dict[int, int]:
        """Amounts by resource row."""
        return {self._resources.row(name): clamped(amount) for name, amount in resources}

    def charge(self, shape: ShapeEntry, count: int) -> None:
        """`count` more (or, negative, fewer) members of this shape hold room."""
        members = self.shapes.get(shape.id, 0) + count
        if members:
            self.shapes[shape.id] = members
        elif count:
            del self.shapes[shape.id]
        for entry in self.chain:
            used = entry.used
            entry.charges += 1
            for row, amount in shape.pairs:
                used[row] = used.get(row, 0) + amount * count

    def headroom(self, shape: ShapeEntry, most: int) -> int:
        """How many more members of this shape the ceilings allow, at most `most`."""
        for entry in self.chain:
            if not entry.ceiling:
                continue
            for row, amount in shape.pairs:
                limit = entry.ceiling.get(row)
                if limit is not None:
                    most = min(most, (limit - entry.used.get(row, 0)) // amount)
        return max(most, 0)

    def promise(self, gang_id: str, amounts: dict[int, int]) -> None:
        """Count a gang's minimum as used for admission, instead of its promise before."""
        before = self.promises.pop(gang_id, None)
        if before is None and not amounts:
            return
        if before:
            self.withdrawn += 1
            self._promise(before, -1)
        if amounts:
            self.promises[gang_id] = amounts
            self._promise(amounts, 1)

    def _promise(self, amounts: dict[int, int], sign: int) -> None:
        for entry in self.chain:
            _add(entry.promised, amounts, sign)

    def exceeded_by(self, wanted: dict[int, int]) -> bool:
        """Whether `wanted` more, by resource row, would exceed a ceiling."""
        for entry in self.chain:
            for row, limit in entry.ceiling.items():
                amount = wanted.get(row, 0)
                if amount > 0 and entry.used.get(row, 0) + amount > limit:
                    return True
        return False

    def excess(self, wanted: dict[int, int], *, promised: bool) -> dict[int, int]:
        """By how much `wanted` more would exceed a ceiling, by row; empty: it would not.

        Args:
            wanted: Amounts by resource row.
            promised: Ask for admission: what is promised counts, and capabilities alone limit. What
                others are guaranteed does not, because nodes may still be brought for it.
        """
        over: dict[int, int] = {}
        for shortage in self.shortages(wanted, promised=promised):
            for row, amount in shortage.over.items():
                over[row] = max(over.get(row, 0), amount)
        return over

    def shortages(self, wanted: dict[int, int], *, promised: bool) -> list[Shortage]:
        """As `excess`, by queue: its own first, then its ancestors'."""
        found: list[Shortage] = []
        for entry in self.chain:
            limits = entry.capability if promised else entry.ceiling
            over: dict[int, int] = {}
            for row, limit in limits.items():
                amount = wanted.get(row, 0)
                if amount <= 0:
                    continue
                held = entry.used.get(row, 0)
                if promised:
                    held += entry.promised.get(row, 0)
                if held + amount > limit:
                    over[row] = held + amount - limit
            if over:
                reserved = any(limits[row] != entry.capability.get(row) for row in over)
                found.append(Shortage(entry.name, over, reserved))
        return found

    def filled_above(self, wanted: dict[int, int]) -> "list[QueueEntry] | None":
        """The queues above it that with `wanted` more would hold more than they deserve: it takes
        only from within them, where what they hold stays the same.

        None: the queue itself does not deserve `wanted` more, or nothing of it is shared.
        """
        filled: list[QueueEntry] = []
        shared = False
        for entry in self.chain:
            for row, amount in wanted.items():
                if amount > 0 and row in entry.deserved:
                    shared = True
                    if entry.used.get(row, 0) + amount > entry.deserved[row]:
                        filled.append(entry)
                        break
        return None if not shared or self in filled else filled

    def scratch(self, *, keep_used: bool) -> "QueueEntry":
        """A copy to try something on: its ancestors are copied with it, its promises are not."""
        copies: list[QueueEntry] = []
        for entry in self.chain:
            copy = QueueEntry(entry.name, self._resources)
            copy.queue = entry.queue
            copy.capability = dict(entry.capability)
            copy.ceiling = dict(entry.ceiling)
            copy.used = dict(entry.used) if keep_used else {}
            copies.append(copy)
        for index, copy in enumerate(copies):
            copy.chain = tuple(copies[index:])
        return copies[0]


class QueueTable:
    """All queues."""

    def __init__(self, resources: ResourceIndex) -> None:
        self._resources = resources
        self.entries: dict[str, QueueEntry] = {}
        self.objects: dict[str, Queue] = {}
        self._declared: dict[str, dict[str, Queue]] = {}
        self._unsettled = False
        #: Whether a queue appeared, went or got another parent since the tree was arranged.
        self._moved = False
        self._hierarchical = False
        #: Grows when a queue, or the shape of the tree, changes.
        self.changes = 0
        self._limited_at: tuple[int, int] = (-1, -1)
        #: What the deserved amounts of all were worked out of, where no reader depends on what
        #: gangs want; (): it does, or nothing is shared. `queueing.fair_share` keeps it.
        self.shared_at: tuple[object, ...] = ()

    @property
    def hierarchical(self) -> bool:
        """Whether parents count."""
        return self._hierarchical

    @property
    def withdrawn(self) -> int:
        """Promises withdrawn so far, of all queues."""
        return sum(entry.withdrawn for entry in self.entries.values())

    def arrange(self, *, hierarchical: bool) -> None:
        """The configuration says whether parents count."""
        if hierarchical != self._hierarchical:
            self._hierarchical = hierarchical
            self._arrange()

    def entry(self, name: str) -> QueueEntry:
        """The entry of a queue, made when it is new."""
        entry = self.entries.get(name)
        if entry is None:
            entry = self.entries[name] = QueueEntry(name, self._resources)
            self.changes += 1
            if self._hierarchical:
                _, ancestors = self._place(entry)
                entry.chain = (entry, *(self.entries[one] for one in ancestors))
        return entry

    def put(self, queue: Queue) -> QueueEntry:
        """A queue appeared or changed; `settle` follows."""
        before = self.objects.get(queue.uid)
        if before is not None and before.name != queue.name:
            self.remove(queue.uid)
        self.objects[queue.uid] = queue
        self._declared.setdefault(queue.name, {})[queue.uid] = queue
        return self._choose(queue.name)

    def remove(self, uid: str) -> QueueEntry | None:
        """A queue is gone; returns its entry when it was known. `settle` follows."""
        queue = self.objects.pop(uid, None)
        if queue is None:
            return None
        del self._declared[queue.name][uid]
        return self._choose(queue.name)

    def settle(self) -> None:
        """All queues of a record are in: give each its place in the tree, if that may have changed.

        2,000 queues arrive in 2,000 records, and each writes its status later: no pass over all
        queues for a record that leaves the tree as it is.
        """
        if self._moved:
            self._arrange()
        elif self._unsettled:
            self.changes += 1
            self._unsettled = False

    def limit(self, nodes_at: int, totals: Callable[[], Sequence[int]]) -> None:
        """Work the ceilings out: no queue may take what other queues are guaranteed.

        Args:
            nodes_at: Position in the nodes' changes: nothing is done while neither nodes nor queues
                changed.
            totals: What the cluster has, by resource row; asked for only where it matters.
        """
        if self._limited_at == (self.changes, nodes_at):
            return
        self._limited_at = (self.changes, nodes_at)
        guaranteed: dict[QueueEntry | None, dict[int, int]] = {}
        for entry in self.entries.values():
            entry.ceiling = entry.capability
            if entry.guarantee:
                _add(guaranteed.setdefault(entry.parent, {}), entry.guarantee, 1)
        if not guaranteed:
            return
        cluster = totals()
        # Parents first: a child's ceiling starts from its parent's.
        for entry in sorted(self.entries.values(), key=lambda one: (len(one.chain), one.name)):
            parent = entry.parent
            ceiling = dict(entry.capability)
            for row, amount in guaranteed.get(parent, {}).items():
                own = entry.guarantee.get(row, 0)
                if amount == own:
                    continue
                has = cluster[row] if row < len(cluster) else 0
                if parent is not None:
                    has = min(has, parent.ceiling.get(row, has))
                most = max(has - (amount - own), own)
                ceiling[row] = min(ceiling.get(row, most), most)
            entry.ceiling = ceiling

    def siblings(self) -> list[tuple[QueueEntry | None, list[QueueEntry]]]:
        """Queues by parent, parents first; None: those at the top. Each level by name."""
        levels: dict[QueueEntry | None, list[QueueEntry]] = {}
        for entry in sorted(self.entries.values(), key=lambda one: (len(one.chain), one.name)):
            levels.setdefault(entry.parent, []).append(entry)
        return list(levels.items())

    def _choose(self, name: str) -> QueueEntry:
        entry = self.entry(name)
        before = self._position(entry)
        entry.use(min(self._declared[name].values(), key=_preference, default=None))
        self._unsettled = True
        # A flat list has no tree: no queue's place, and no fault, depends on another queue.
        self._moved |= self._hierarchical and self._position(entry) != before
        return entry

    @staticmethod
    def _position(entry: QueueEntry) -> tuple[str | None, bool] | None:
        """What places in the tree depend on, of one queue; None: it does not exist."""
        queue = entry.queue
        return None if queue is None else (queue.parent, bool(queue.capability))

    def _arrange(self) -> None:
        """Give every queue its place in the tree, and move what is held with it."""
        self.changes += 1
        self._unsettled = self._moved = False
        places = {entry.name: self._place(entry) for entry in list(self.entries.values())}
        moved = [
            entry
            for entry in self.entries.values()
            if tuple(one.name for one in entry.chain[1:]) != places[entry.name][1]
        ]
        own = self._own() if moved else {}
        for name, (fault, ancestors) in places.items():
            entry = self.entries[name]
            entry.fault = fault
            entry.chain = (entry, *(self.entries[one] for one in ancestors))
            entry.has_children = False
        for entry in self.entries.values():
            for ancestor in entry.chain[1:]:
                ancestor.has_children = True
        for entry in self.entries.values():
            if self._hierarchical and entry.fault is None and entry.has_children:
                entry.fault = Fault("QueueNotLeaf", (entry.name,))
        if moved:
            for entry in self.entries.values():
                entry.used, entry.promised = {}, {}
            for name, (used, promised) in own.items():
                for one in self.entries[name].chain:
                    _add(one.used, used, 1)
                    _add(one.promised, promised, 1)

    def _own(self) -> dict[str, tuple[dict[int, int], dict[int, int]]]:
        """What each queue's own gangs hold and are promised, without those of queues below it."""
        own = {
            name: (dict(entry.used), dict(entry.promised)) for name, entry in self.entries.items()
        }
        for child in self.entries.values():
            if child.parent is not None:
                used, promised = own[child.parent.name]
                _add(used, child.used, -1)
                _add(promised, child.promised, -1)
        return own

    def _place(self, entry: QueueEntry) -> tuple[Fault | None, tuple[str, ...]]:
        """Names of a queue's ancestors, nearest first, or what is wrong with them."""
        names: list[str] = []
        queue = entry.queue if self._hierarchical else None
        while queue is not None and queue.parent and queue.parent != ROOT:
            name = queue.parent
            if name == entry.name or name in names:
                return Fault("QueueCycle", (entry.name, *names, name)), ()
            above = self.entries.get(name)
            if above is None or above.queue is None:
                return Fault("QueueParentMissing", (queue.name, name)), ()
            names.append(name)
            queue = above.queue
        root = self.entries.get(ROOT)
        if (
            self._hierarchical
            and entry.name != ROOT
            and root is not None
            and root.queue is not None
            and root.queue.capability
        ):
            names.append(ROOT)
        return None, tuple(names)


def _add(sums: dict[int, int], amounts: dict[int, int], sign: int) -> None:
    for row, amount in amounts.items():
        sums[row] = sums.get(row, 0) + sign * amount


def _preference(queue: Queue) -> tuple[int, str, str]:
    return precedence_of(queue.dialect), queue.dialect, queue.uid
