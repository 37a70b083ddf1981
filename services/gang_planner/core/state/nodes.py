"""The nodes: names, allocatable amounts, labels, taints, images and conditions.

A node has a column (a *slot*) while it exists or any pod or reservation is accounted on it. Pods
may name a node that the watcher has not published yet, or no longer publishes. Such a *phantom* has
a slot without allocatable amounts, so that accounting needs no special case. Decisions never depend
on slot numbers, which follow the order of arrival: ties are broken by name (`rank`).
"""

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import numpy as np

from services.gang_planner.core.state.columns import (
    Bools,
    ChangeLog,
    Grid,
    Ints,
    ResourceIndex,
    clamped,
    grown,
)
from services.gang_planner.core.state.node_labels import LabelColumns
from services.gang_planner.core.state.taints import TaintSets, is_leaving
from shared.model.invariants import InvariantViolation
from shared.model.objects import Node, Requirement

#: Number of cached requests per resource.
_REQUESTS_MAX = 256
#: Number of cached arrays that are computed from all nodes.
_DERIVED_MAX = 256
_NOWHERE: Final[Mapping[int, int]] = {}


class ImageTable:
    """Images that nodes report in their status."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[int, int]] = {}

    @property
    def any(self) -> bool:
        return bool(self._by_name)

    def put(self, slot: int, before: Node | None, after: Node | None) -> None:
        """Update the images of a slot after its node appeared, changed or left."""
        old = before.images if before is not None else ()
        new = after.images if after is not None else ()
        if old == new:
            return
        for name, _ in old:
            slots = self._by_name.get(name, {})
            slots.pop(slot, None)
            if not slots:
                self._by_name.pop(name, None)
        for name, size_bytes in new:
            self._by_name.setdefault(name, {})[slot] = size_bytes

    def of(self, name: str) -> Mapping[int, int]:
        """Slot -> bytes of the image, for all nodes that have it."""
        return self._by_name.get(name, _NOWHERE)


class Units:
    """Allocatable amounts of one resource, divided into pieces.

    The computation of shares multiplies pieces by `whole`; with amounts in bytes, the product could
    exceed 64 bits.
    """

    def __init__(self, allocatable: Ints, whole: int) -> None:
        self._whole = whole
        amounts = np.maximum(allocatable, 1)
        #: Amount of one piece, and number of pieces, per node.
        self.unit: Ints = np.maximum(amounts // whole, 1)
        self.pieces: Ints = amounts // self.unit
        #: 1 if the node has the resource, else 0.
        self.some: Ints = (allocatable > 0).astype(np.int64)
        self._taken: dict[int, Ints] = {}

    def taken(self, request: int) -> Ints:
        """Share of each node that a request takes, 0 to `whole`."""
        share = self._taken.get(request)
        if share is None:
            if len(self._taken) >= _REQUESTS_MAX:
                self._taken.clear()
            pieces = np.minimum(request // self.unit, self.pieces)
            share = self._taken[request] = pieces * self._whole // self.pieces * self.some
        return share


class NodeTable:
    """Static properties of nodes, by slot; `node_capacity.NodeCapacity` has the free amounts."""

    def __init__(self, resources: ResourceIndex) -> None:
        self.resources = resources
        self.allocatable = Grid()
        #: The part of `allocatable` that devices provide in place of a device plugin, as
        #: `extended_resources` counts them.
        self.by_devices = Grid()
        #: Resource row -> words about the DeviceClass that has the resource.
        self.device_classes: dict[int, str] = {}
        self.labels = LabelColumns()
        self.taints = TaintSets()
        self.images = ImageTable()
        self.names: list[str] = []
        self.objects: list[Node | None] = []
        self.exists: Bools = np.zeros(64, dtype=np.bool_)
        self.ready: Bools = np.zeros(64, dtype=np.bool_)
        self.unschedulable: Bools = np.zeros(64, dtype=np.bool_)
        self.taint_set: Ints = np.zeros(64, dtype=np.int64)
        #: Slots of nodes that an autoscaler drains and then removes.
        self.leaving: set[int] = set()
        #: Slots of existing nodes that are not ready.
        self.unready: set[int] = set()
        #: Slots with any change except that of free amounts.
        self.changes = ChangeLog()
        self.by_uid: dict[str, int] = {}
        self._slots: dict[str, int] = {}
        self._spare: list[int] = []
        self._rank: Ints | None = None
        self._units: dict[int, Units] = {}
        self._units_at: int | None = None
        self._derived: dict[object, Ints] = {}
        self._derived_at: int | None = None
        self._totals: list[int] = []
        self._totals_at: int | None = None
        #: Number of existing nodes.
        self.count = 0
        #: Length of the longest node name so far, for the upper bound of a binding's size.
        self.name_bytes_max = 0

    @property
    def size(self) -> int:
        """Number of slots, including those of phantoms and spare slots."""
        return len(self.names)

    def slot(self, name: str) -> int:
        """Slot of a node by name; an unknown name becomes a phantom."""
        slot = self._slots.get(name)
        if slot is not None:
            return slot
        slot = self._spare.pop() if self._spare else len(self.names)
        if slot == len(self.names):
            self.names.append("")
            self.objects.append(None)
            self._grow(slot + 1)
        self.names[slot] = name
        self.name_bytes_max = max(self.name_bytes_max, len(name))
        self._slots[name] = slot
        self._rank = None
        self.changes.add(slot)
        return slot

    def find(self, name: str) -> int | None:
        """Slot of a node or phantom; None if the name is unknown."""
        return self._slots.get(name)

    def only(self, name: str) -> Bools:
        """One flag per slot: whether it is the node of this name."""
        mask: Bools = np.zeros(self.size, dtype=np.bool_)
        slot = self._slots.get(name)
        if slot is not None:
            mask[slot] = True
        return mask

    def holding(self, requirement: Requirement) -> Bools:
        """One flag per slot: whether the requirement holds on its labels."""
        return self.labels.matches(requirement, requirement.key, self.objects, slice(0, self.size))

    def slots_of(self, names: Iterable[str]) -> Ints:
        """Slots of the nodes and phantoms with these names, as far as they are known."""
        slots = [self._slots.get(name) for name in names]
        return np.array([slot for slot in slots if slot is not None], dtype=np.int64)

    def has_plugin_of(self, resource: str, slot: int) -> bool:
        """Whether the node's own status has an amount of the resource."""
        row = self.resources.find(resource)
        if row is None:
            return False
        self._ensure(self.size)
        return bool(self.allocatable.cells[row, slot] > self.by_devices.cells[row, slot])

    def put(self, node: Node) -> int:
        """Store a new or changed node; returns its slot."""
        slot = self.slot(node.name)
        before = self.objects[slot]
        if before is not None and before.uid != node.uid:
            self.by_uid.pop(before.uid, None)
        self.by_uid[node.uid] = slot
        self._store(slot, node)
        return slot

    def remove(self, slot: int) -> None:
        """Remove a node; its slot remains as a phantom until `drop_phantom`."""
        before = self.objects[slot]
        if before is not None:
            self.by_uid.pop(before.uid, None)
        self._store(slot, None)

    def in_service(self) -> "NodeTable":
        """The same nodes as if all of them were ready, uncordoned and complete, for questions about
        what they could hold: itself if they are. Only filters may read it, and none may write.
        """
        taints = self.taints.in_service()
        marked = np.array(
            [now != then for now, then in zip(self.taints.sets, taints.sets, strict=True)]
        )
        size = self.size
        out = ~self.ready[:size] | self.unschedulable[:size] | marked[self.taint_set[:size]]
        if not bool((out & self.exists[:size]).any()):
            return self
        table = copy.copy(self)
        table.ready = self.exists
        table.unschedulable = np.zeros_like(self.unschedulable)
        table.taints = taints
        return table

    def drop_phantom(self, slot: int) -> None:
        """Release the slot of a phantom. The caller ensures that nothing is accounted on it."""
        if self.objects[slot] is not None:
            raise InvariantViolation(f"node {self.names[slot]}", "still exists")
        del self._slots[self.names[slot]]
        self.names[slot] = ""
        self._spare.append(slot)
        self._rank = None

    def rank(self) -> Ints:
        """Position of each slot in the order of names, which breaks ties."""
        if self._rank is None:
            order = sorted(range(self.size), key=self.names.__getitem__)
            rank = np.empty(self.size, dtype=np.int64)
            rank[order] = np.arange(self.size)
            self._rank = rank
        return self._rank

    def totals(self) -> list[int]:
        """What all nodes have, by resource row, cached until a node changes. Read-only."""
        if self._totals_at != self.changes.position:
            self._totals_at = self.changes.position
            self._totals = self.allocatable.cells[:, : self.size].sum(axis=1).tolist()
        return self._totals

    def units(self, row: int, whole: int) -> Units:
        """Allocatable amounts of a resource row as pieces; cached until a node changes."""
        if self._units_at != self.changes.position:
            self._units.clear()
            self._units_at = self.changes.position
        units = self._units.get(row)
        if units is None:
            self.allocatable.ensure(row + 1, self.size)
            units = self._units[row] = Units(self.allocatable.cells[row, : self.size], whole)
        return units

    def derived(self, key: object, make: Callable[[], Ints]) -> Ints:
        """The read-only result of `make`, one number per slot, cached until a node changes."""
        if self._derived_at != self.changes.position or len(self._derived) >= _DERIVED_MAX:
            self._derived.clear()
            self._derived_at = self.changes.position
        array = self._derived.get(key)
        if array is None:
            array = self._derived[key] = make()
        return array

    def _store(self, slot: int, node: Node | None) -> None:
        self.count += (node is not None) - (self.objects[slot] is not None)
        self.images.put(slot, self.objects[slot], node)
        self.objects[slot] = node
        self.exists[slot] = node is not None
        self.ready[slot] = node is not None and node.ready
        self.unschedulable[slot] = node is not None and node.unschedulable
        self.taint_set[slot] = self.taints.intern(node.taints) if node is not None else 0
        for slots, among in (
            (self.leaving, node is not None and is_leaving(node.taints)),
            (self.unready, node is not None and not node.ready),
        ):
            if among:
                slots.add(slot)
            else:
                slots.discard(slot)
        amounts = node.allocatable if node is not None else ()
        rows = [(self.resources.row(name), clamped(amount)) for name, amount in amounts]
        self._ensure(slot + 1)
        self.allocatable.cells[:, slot] = 0
        self.by_devices.cells[:, slot] = 0
        for row, amount in rows:
            self.allocatable.cells[row, slot] = amount
        self.labels.put(slot, node)
        self.changes.add(slot)

    def _grow(self, size: int) -> None:
        self.exists = grown(self.exists, size)
        self.ready = grown(self.ready, size)
        self.unschedulable = grown(self.unschedulable, size)
        self.taint_set = grown(self.taint_set, size)
        self._ensure(size)

    def _ensure(self, size: int) -> None:
        rows = len(self.resources.names)
        self.allocatable.ensure(rows, size)
        self.by_devices.ensure(rows, size)
