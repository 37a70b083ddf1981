"""Queues by name: the object in effect, the position in the tree, and the amounts that its gangs
hold.

Two dialects may declare a queue with the same name; the dialect with the lowest precedence number
is in effect: Volcano's, because its queues have limits. If a gang names a queue that does not
exist, the queue has an entry without an object. `default` needs no object. An entry that has
neither an object nor a gang is removed: users choose the names.

Parents apply only if the configuration enables a hierarchy. A queue's amounts then include its
whole subtree: amounts charged to it are also charged to all its ancestors. `root` is implicit; it
is an ancestor only if it exists and has a capability. A queue whose parent is missing, or that is
in a cycle, is treated as a top-level queue. Its `fault` has the reason, and no gang is admitted to
it.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from services.gang_planner.core.state.columns import ResourceIndex, add_amounts, clamped
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.queue_rules import NO_RULES, USUAL, QueueRules, rules_in
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.reasons import QueueRefusal
from shared.dialects.discovery import precedence_of
from shared.model.gang_keys import GangKey
from shared.model.objects import Queue, Resources, RunLimits

DEFAULT: Final = "default"
ROOT: Final = "root"
_OPEN: Final = frozenset({"", "Open"})
_BUILT_IN: Final = Queue(uid="", dialect="", name=DEFAULT, resource_version=0)


class Shortage(NamedTuple):
    """A queue's limit that is too low for the wanted amounts."""

    #: Name of the queue with the limit: the gang's own queue or an ancestor.
    queue: str
    #: Excess by resource row.
    over: dict[int, int]
    #: Whether guarantees of other queues, not the capability, cause the excess.
    reserved: bool


class Holder(Protocol):
    """A gang that holds capacity charged to a queue."""

    @property
    def key(self) -> GangKey:
        """Key of the gang."""
        ...


class QueueEntry:
    """One queue, and the amounts that members of its gangs hold, by resource row."""

    def __init__(self, name: str, resources: ResourceIndex) -> None:
        self.name = name
        self.queue: Queue | None = _BUILT_IN if name == DEFAULT else None
        #: Amounts that gangs of its subtree hold.
        self.used: dict[int, int] = {}
        #: Number of changes of `used` by `charge`; results derived from it are valid while equal.
        self.charges = 0
        #: Cache of the policy `capacity`: charges, used and declared amounts, share.
        self.share: tuple[int | None, dict[int, int], dict[int, int], int] = (None, {}, {}, 0)
        #: Declared hard limit, by resource row; resources that are not in it are unlimited.
        self.capability: dict[int, int] = {}
        #: Declared guarantee: never reclaimed from it, and kept free for it.
        self.guarantee: dict[int, int] = {}
        #: Declared deserved amounts.
        self.declared: dict[int, int] = {}
        #: The effective limit: the capability, reduced by guarantees of other queues. Set by
        #: `QueueTable.limit`.
        self.ceiling: dict[int, int] = {}
        #: Current deserved amounts, by resource row. A resource that no queue declares or demands
        #: is not in it; it is empty while no other queue is active. Set by `queueing.fair_share`.
        self.deserved: dict[int, int] = {}
        #: Its part of what gangs can use now, for the same resources. Set with `deserved`.
        self.fair_share: dict[int, int] = {}
        #: Waiting members in its subtree, by shape id. Set by `queueing.fair_share`.
        self.demand: dict[int, int] = {}
        #: Number of its own gangs. Set by `QueueTable.join` and `leave`.
        self.gangs = 0
        #: Its own gangs that hold capacity.
        self.holders: dict[Holder, None] = {}
        #: Number of members of its own gangs that hold capacity, by shape id; zeros are not stored.
        self.shapes: dict[int, int] = {}
        #: The queue and its ancestors, nearest first.
        self.chain: tuple[QueueEntry, ...] = (self,)
        self.has_children = False
        #: Rules for the runs of its gangs.
        self.run_rules: QueueRules = USUAL
        self.fault: QueueRefusal | None = None
        #: Promises: minima of admitted gangs that have not started, by gang id.
        self.promises: dict[str, dict[int, int]] = {}
        #: Sum of the promises in its subtree.
        self.promised: dict[int, int] = {}
        #: Number of withdrawn promises so far; after a change, refused gangs may try again.
        self.withdrawn = 0
        self._resources = resources

    @property
    def open(self) -> bool:
        """Whether the queue exists, and it and its ancestors admit new gangs."""
        return self.queue is not None and self.closed is None

    @property
    def closed(self) -> "QueueEntry | None":
        """The nearest of the queue and its ancestors that admits no new gangs; None: there is
        none.
        """
        for entry in self.chain:
            if entry.queue is not None and entry.queue.state not in _OPEN:
                return entry
        return None

    @property
    def unused(self) -> bool:
        """Whether it has neither an object nor a gang; `default` always has one."""
        return self.queue is None and not self.gangs

    @property
    def weight(self) -> int:
        """The declared weight, at least 1."""
        return max(1, self.queue.weight) if self.queue is not None else 1

    @property
    def priority(self) -> int:
        return self.queue.priority if self.queue is not None else 0

    @property
    def strict(self) -> bool:
        """Whether a gang that does not fit blocks the gangs behind it."""
        return self.queue is not None and self.queue.dequeue_strategy == "fifo"

    @property
    def reclaimable(self) -> bool:
        """Whether other queues may reclaim its capacity above the deserved amounts."""
        return self.queue is None or self.queue.reclaimable

    @property
    def parent(self) -> "QueueEntry | None":
        return self.chain[1] if len(self.chain) > 1 else None

    def use(self, queue: Queue | None) -> None:
        """Set the object in effect and read its amounts; None: the queue does not exist."""
        if queue is None and self.name == DEFAULT:
            queue = _BUILT_IN
        self.queue = queue
        self.capability = self.amounts(queue.capability) if queue is not None else {}
        self.guarantee = self.amounts(queue.guarantee) if queue is not None else {}
        self.declared = self.amounts(queue.deserved) if queue is not None else {}
        self.ceiling = self.capability

    def find_rules(self) -> None:
        """Read the rules for runs again, in its object and those of its ancestors."""
        objects = (entry.queue for entry in self.chain)
        self.run_rules = rules_in([each.run_limits for each in objects if each is not None])

    def amounts(self, resources: Resources) -> dict[int, int]:
        return {self._resources.row(name): clamped(amount) for name, amount in resources}

    def minimum(self, resources: Resources) -> dict[int, int]:
        """The `minResources` of a group, by resource row."""
        row_of = self._resources.row_of_minimum
        return {row_of(name): clamped(amount) for name, amount in resources}

    def charge(self, shape: ShapeEntry, count: int) -> None:
        """Charge `count` members (negative: uncharge) to the queue and its ancestors."""
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
        """Replace a gang's promise: `amounts` count as used for admission; empty withdraws it."""
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
            add_amounts(entry.promised, amounts.items(), sign)

    def exceeded_by(self, wanted: dict[int, int]) -> bool:
        """Whether adding `wanted`, by resource row, would exceed a ceiling."""
        for entry in self.chain:
            for row, limit in entry.ceiling.items():
                amount = wanted.get(row, 0)
                if amount > 0 and entry.used.get(row, 0) + amount > limit:
                    return True
        return False

    def shortages(self, wanted: dict[int, int], *, promised: bool) -> list[Shortage]:
        """The ceilings that adding `wanted`, by resource row, would exceed: the queue's own first,
        then its ancestors'. For each queue first what exceeds its capability, then what only
        guarantees of other queues leave out.

        `promised`: for admission, promised amounts count as used, and only capabilities limit:
        guarantees of other queues do not, because nodes may be added for them.
        """
        shortages: list[Shortage] = []
        for entry in self.chain:
            limits = entry.capability if promised else entry.ceiling
            of_own: dict[int, int] = {}
            of_others: dict[int, int] = {}
            for row, limit in limits.items():
                amount = wanted.get(row, 0)
                if amount <= 0:
                    continue
                held = entry.used.get(row, 0)
                if promised:
                    held += entry.promised.get(row, 0)
                if held + amount > limit:
                    over = of_own if limit == entry.capability.get(row) else of_others
                    over[row] = held + amount - limit
            if of_own:
                shortages.append(Shortage(entry.name, of_own, reserved=False))
            if of_others:
                shortages.append(Shortage(entry.name, of_others, reserved=True))
        return shortages

    def filled_above(self, wanted: dict[int, int]) -> "list[QueueEntry] | None":
        """The ancestors that, with `wanted` added, would hold more than they deserve. The queue may
        reclaim only from queues inside them, so that their own amounts stay the same.

        None: the queue itself would exceed its deserved amounts, or deserves none of the resources.
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

    def scratch(self, copies: "dict[str, QueueEntry]", *, keep_used: bool) -> "QueueEntry":
        """A copy of the queue and its ancestors for trials, without promises. `copies` has those of
        the same trial by name: what a gang is charged there, its other gangs see.
        """
        for index, entry in reversed(tuple(enumerate(self.chain))):
            if entry.name in copies:
                continue
            copy = QueueEntry(entry.name, self._resources)
            copy.queue = entry.queue
            copy.capability = dict(entry.capability)
            copy.ceiling = dict(entry.ceiling)
            copy.used = dict(entry.used) if keep_used else {}
            copy.chain = (copy, *(copies[each.name] for each in self.chain[index + 1 :]))
            copies[entry.name] = copy
        return copies[self.name]


class QueueTable:
    """All queues."""

    def __init__(self, resources: ResourceIndex) -> None:
        self._resources = resources
        self.entries: dict[str, QueueEntry] = {}
        self.objects: dict[str, Queue] = {}
        self._declared: dict[str, dict[str, Queue]] = {}
        self._unsettled = False
        #: Whether a queue appeared, disappeared or changed its parent since the last `_arrange`.
        self._moved = False
        self._hierarchical = False
        #: Number of changes of queues and of the tree so far.
        self.changes = 0
        #: Withdrawn promises of the entries that were removed.
        self._withdrawn_before = 0
        #: Queues that lost their object or last gang while the tree was out of date.
        self._perhaps_unused: dict[str, None] = {}
        self._limited_at: tuple[int, int] | None = None
        #: Versions of the input of all deserved amounts, if these do not depend on demand; (): they
        #: do, or there are none. Set by `queueing.fair_share`.
        self.shared_at: tuple[object, ...] = ()

    @property
    def withdrawn(self) -> int:
        """Number of withdrawn promises so far, of all queues."""
        return self._withdrawn_before + sum(entry.withdrawn for entry in self.entries.values())

    def arrange(self, *, hierarchical: bool) -> None:
        """Enable or disable parents of queues."""
        if hierarchical != self._hierarchical:
            self._hierarchical = hierarchical
            self._arrange()

    def entry(self, name: str) -> QueueEntry:
        """The entry of a queue; one that is not stored if it has neither an object nor a gang."""
        if name == DEFAULT:
            return self._stored(name)
        return self.entries.get(name) or self._made(name)

    def join(self, name: str) -> QueueEntry:
        """The entry of a queue that has one more gang from now on."""
        entry = self._stored(name)
        entry.gangs += 1
        return entry

    def leave(self, entry: QueueEntry) -> None:
        """Count one gang less, which holds nothing of the queue and has no promise."""
        entry.gangs -= 1
        self._perhaps_unused[entry.name] = None
        # Until `settle`, other entries may still have one without an object as their ancestor.
        if not self._moved:
            self._remove_unused()

    def _made(self, name: str) -> QueueEntry:
        entry = QueueEntry(name, self._resources)
        if self._hierarchical:
            _, ancestors = self._place(entry)
            entry.chain = (entry, *(self.entries[ancestor] for ancestor in ancestors))
            entry.find_rules()
        return entry

    def _stored(self, name: str) -> QueueEntry:
        entry = self.entries.get(name)
        if entry is None:
            entry = self.entries[name] = self._made(name)
            self.changes += 1
            if entry.parent is not None and entry.queue is not None:
                # `default`, which has no record of its own, is a child of `root`.
                self._arrange()
        return entry

    def _remove_unused(self) -> None:
        for name in self._perhaps_unused:
            entry = self.entries.get(name)
            if entry is not None and entry.unused:
                # Not a change: it has no part in any share, limit or tree.
                del self.entries[name]
                self._withdrawn_before += entry.withdrawn
        self._perhaps_unused.clear()

    def put(self, queue: Queue) -> None:
        """Store a new or changed queue. The caller calls `settle` afterwards."""
        before = self.objects.get(queue.uid)
        if before is not None and before.name != queue.name:
            self.remove(queue.uid)
        self.objects[queue.uid] = queue
        self._declared.setdefault(queue.name, {})[queue.uid] = queue
        self._choose(queue.name)

    def remove(self, uid: str) -> None:
        """Remove a queue, if it is known. The caller calls `settle` afterwards."""
        queue = self.objects.pop(uid, None)
        if queue is None:
            return
        del self._declared[queue.name][uid]
        self._choose(queue.name)
        if not self._declared[queue.name]:
            del self._declared[queue.name]
        self._perhaps_unused[queue.name] = None

    def settle(self) -> None:
        """Update the tree after all queues of a record are stored.

        2,000 queues arrive in 2,000 records, followed by updates of their status. Therefore records
        that do not change the tree cause no pass over all queues.
        """
        if self._moved:
            self._arrange()
        elif self._unsettled:
            self.changes += 1
            self._unsettled = False
        self._remove_unused()

    def limit(self, nodes_at: int, totals: Callable[[], Sequence[int]]) -> None:
        """Compute the ceilings, so that no queue can use the guarantees of other queues. No-op if
        neither nodes (`nodes_at`: their change log's position) nor queues changed. `totals` returns
        the cluster's amounts, by resource row; it is called only if needed.
        """
        if self._limited_at == (self.changes, nodes_at):
            return
        self._limited_at = (self.changes, nodes_at)
        guaranteed: dict[QueueEntry | None, dict[int, int]] = {}
        for entry in self.entries.values():
            entry.ceiling = entry.capability
            if entry.guarantee:
                add_amounts(guaranteed.setdefault(entry.parent, {}), entry.guarantee.items())
        if not guaranteed:
            return
        cluster = totals()
        # Parents first: a child's ceiling depends on its parent's.
        for entry in self._from_the_top():
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

    def _from_the_top(self) -> list[QueueEntry]:
        return sorted(self.entries.values(), key=lambda entry: (len(entry.chain), entry.name))

    def siblings(self) -> list[tuple[QueueEntry | None, list[QueueEntry]]]:
        """(parent, children sorted by name), parents first; parent None: top-level queues."""
        levels: dict[QueueEntry | None, list[QueueEntry]] = {}
        for entry in self._from_the_top():
            levels.setdefault(entry.parent, []).append(entry)
        return list(levels.items())

    def _choose(self, name: str) -> None:
        entry = self._stored(name)
        before, limits = self._position(entry), _limits_of(entry)
        entry.use(min(self._declared[name].values(), key=_preference, default=None))
        if _limits_of(entry) != limits:
            for each in self.entries.values():
                each.find_rules()
        self._unsettled = True
        # Without a hierarchy, no queue's position or fault depends on another queue.
        self._moved |= self._hierarchical and self._position(entry) != before

    @staticmethod
    def _position(entry: QueueEntry) -> tuple[str | None, bool] | None:
        """The fields of a queue on which positions in the tree depend; None: it does not exist."""
        queue = entry.queue
        return None if queue is None else (queue.parent, bool(queue.capability))

    def _arrange(self) -> None:
        """Recompute the tree, and the amounts of queues whose ancestors changed."""
        self.changes += 1
        self._unsettled = self._moved = False
        places = {entry.name: self._place(entry) for entry in list(self.entries.values())}
        moved = [
            entry
            for entry in self.entries.values()
            if tuple(above.name for above in entry.chain[1:]) != places[entry.name][1]
        ]
        own = self._own() if moved else {}
        for name, (fault, ancestors) in places.items():
            entry = self.entries[name]
            entry.fault = fault
            entry.chain = (entry, *(self.entries[ancestor] for ancestor in ancestors))
            entry.has_children = False
            entry.find_rules()
        for entry in self.entries.values():
            # A name that gangs have made up takes no right from `root`.
            for ancestor in entry.chain[1:] if entry.queue is not None else ():
                ancestor.has_children = True
        for entry in self.entries.values():
            if self._hierarchical and entry.fault is None and entry.has_children:
                entry.fault = QueueRefusal(PendingReason.QUEUE_NOT_LEAF, (entry.name,))
        if moved:
            for entry in self.entries.values():
                entry.used, entry.promised = {}, {}
            for name, (used, promised) in own.items():
                for above in self.entries[name].chain:
                    add_amounts(above.used, used.items())
                    add_amounts(above.promised, promised.items())

    def _own(self) -> dict[str, tuple[dict[int, int], dict[int, int]]]:
        """(held, promised) amounts of each queue's own gangs, without its subtree."""
        own = {
            name: (dict(entry.used), dict(entry.promised)) for name, entry in self.entries.items()
        }
        for child in self.entries.values():
            if child.parent is not None:
                used, promised = own[child.parent.name]
                add_amounts(used, child.used.items(), -1)
                add_amounts(promised, child.promised.items(), -1)
        return own

    def _place(self, entry: QueueEntry) -> tuple[QueueRefusal | None, tuple[str, ...]]:
        """(fault or None, names of the queue's ancestors, nearest first)."""
        names: list[str] = []
        queue = entry.queue if self._hierarchical else None
        while queue is not None and queue.parent and queue.parent != ROOT:
            name = queue.parent
            if name == entry.name or name in names:
                return QueueRefusal(PendingReason.QUEUE_CYCLE, (entry.name, *names, name)), ()
            above = self.entries.get(name)
            if above is None or above.queue is None:
                return QueueRefusal(PendingReason.QUEUE_PARENT_MISSING, (queue.name, name)), ()
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


def _preference(queue: Queue) -> tuple[int, str, str]:
    return precedence_of(queue.dialect), queue.dialect, queue.uid


def _limits_of(entry: QueueEntry) -> RunLimits:
    return entry.queue.run_limits if entry.queue is not None else NO_RULES
