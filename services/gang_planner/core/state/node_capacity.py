"""Free capacity of nodes: the only place where capacity is taken and released.

`free` = allocatable - pods on the node - reservations (`reservations`). It may be negative if
foreign pods overcommit a node. `freed` counts events after which a refused gang might fit: released
capacity, or a changed node. A gang that was refused at a count is not tried again until the count
changes.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from services.gang_planner.core.state.columns import Bools, ChangeLog, Grid, Ints
from services.gang_planner.core.state.devices.allocation_search import Problem
from services.gang_planner.core.state.devices.ledger import Devices
from services.gang_planner.core.state.inter_pod.counts import DomainTable, PairCounts
from services.gang_planner.core.state.node_uses import disks, host_ports
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from services.gang_planner.core.state.storage.ledger import Storage
from services.gang_planner.core.state.topology.table import TopologyTable
from shared.model.invariants import InvariantViolation

Alike: TypeAlias = tuple[bytes, Problem]
"""A shape without claims, and the needs of these."""

#: Up to this number of changed nodes, sums are updated; beyond it, they are computed again.
_CHANGED_MAX: Final = 1_024


class NodeCapacity:
    """Free amounts and host ports of all nodes, and claims in use."""

    def __init__(
        self,
        nodes: NodeTable,
        reference_objects: ReferenceObjects | None = None,
        topology: TopologyTable | None = None,
    ) -> None:
        """Use the `topology` of another node capacity of the same nodes; None: make a new one."""
        tables = ReferenceObjects() if reference_objects is None else reference_objects
        self.nodes = nodes
        #: The topology domains of the nodes.
        self.topology = topology or TopologyTable(nodes, tables.hypernodes, tables.topologies)
        self.free = Grid()
        self.ports = host_ports()
        #: Counts of pods for inter-pod rules.
        self.pairs = PairCounts(DomainTable(nodes))
        self.storage = Storage(tables, nodes)
        self.devices = Devices(tables, nodes)
        self.disks = disks()
        #: Slots whose free amounts or ports changed.
        self.changes = ChangeLog()
        self.freed = 0

    def take(self, slot: int, shape: ShapeEntry) -> None:
        """Take capacity for one pod of the shape, or for a reservation of its size, on a node."""
        self.fit_cells()
        cells = self.free.cells
        for row, amount in shape.pairs:
            cells[row, slot] -= amount
        if shape.beyond_amounts:
            self._count(slot, 1, shape)
            self.freed += self.pairs.attracts(shape.profile)
        self.changes.add(slot)

    def give(self, slot: int, shape: ShapeEntry) -> None:
        cells = self.free.cells
        for row, amount in shape.pairs:
            cells[row, slot] += amount
        if shape.beyond_amounts:
            self._count(slot, -1, shape)
        self.changes.add(slot)
        self.freed += 1

    def take_many(self, slots: Ints, counts: Ints, shape: ShapeEntry) -> None:
        """Take capacity for `counts[i]` pods of the shape on `slots[i]`; slots are distinct.

        A shape that stands for others (`ShapeEntry.alike`) has the shape of each of these pods, in
        the order of slots.
        """
        self.fit_cells()
        self.free.cells[np.ix_(shape.rows, slots)] -= shape.column * counts
        self._count_many(slots, counts, shape)

    def give_many(self, slots: Ints, counts: Ints, shape: ShapeEntry) -> None:
        """Undo one `take_many` of an attempt; `freed` stays unchanged."""
        self.free.cells[np.ix_(shape.rows, slots)] += shape.column * counts
        self._count_many(slots, -counts, shape)

    def exchange(self, slot: int, before: ShapeEntry, after: ShapeEntry) -> None:
        """Recount a pod under another entry with the same shape and a different profile."""
        if before.encoded != after.encoded:
            raise InvariantViolation(f"node in slot {slot}", "its pod was exchanged with another")
        self.pairs.add(slot, before.tallies, -1)
        self.pairs.add(slot, after.tallies, 1)

    def claims_version(self, shape: ShapeEntry) -> tuple[object, ...]:
        """A version that changes whenever a filter's result for the shape's claims may change,
        except on nodes that are among the newest `changes`.
        """
        version: tuple[object, ...] = ()
        if shape.shape.claims:
            self.changes.extend(self.storage.changed_slots())
            version += self.storage.version(shape)
        if shape.shape.device_claims:
            self.changes.extend(self.devices.changed_slots())
            version += self.devices.version(shape)
        return version

    def claims_known_up_to(self, version: int, pods: int) -> None:
        """Release what was kept for claims that CLUSTER would show at this resourceVersion."""
        slots = self.devices.grants.known_up_to(version, pods)
        self.changes.extend(slots)
        self.freed += bool(slots)

    def alike(self, shapes: Sequence[ShapeEntry]) -> list[Alike | None]:
        """For each of these shapes something equal for shapes that differ only in the names of
        their claims, so that each node serves one pod like the next until it is full: the shape
        without claims, and their needs. None: the shape is unlike any other.
        """
        kinds: list[Alike | None] = []
        last: Alike = (b"", ())
        for shape in shapes:
            needs = self.devices.plain_needs(shape) if shape.devices_only else None
            # One object for shapes that follow each other: looked up once for all.
            if needs is not None and (needs != last[1] or shape.rated != last[0]):
                last = shape.rated, needs
            kinds.append(None if needs is None else last)
        return kinds

    def one_by_one(self, shape: ShapeEntry) -> bool:
        """Whether one placed pod of the shape changes the nodes of the next: a claim has no volume
        or devices yet, or admits only one pod.
        """
        if not shape.attached or shape.alike:
            return False
        volumes = self.storage.demand(shape)
        return bool(volumes.delayed or volumes.exclusive or self.devices.demand(shape).open)

    def add_capacity(self, slot: int, delta: Ints) -> None:
        """Account for a change of a node's allocatable amounts by `delta`, one number per row."""
        self.fit_cells()
        self.free.cells[: len(delta), slot] += delta
        self.changes.add(slot)
        self.freed += 1

    def emptied(self) -> "NodeCapacity":
        """The same nodes without any pods and reservations, to check what could ever fit."""
        self.fit_cells()
        node_capacity = NodeCapacity(self.nodes, self.storage.tables, self.topology)
        node_capacity.free = self.nodes.allocatable.copy()
        node_capacity.free.ensure(*self.free.cells.shape)
        node_capacity.devices = self.devices.unused()
        return node_capacity

    def copy(self) -> "NodeCapacity":
        """An independent copy with the same free capacity, to check what fits now."""
        self.fit_cells()
        node_capacity = NodeCapacity(self.nodes, self.storage.tables, self.topology)
        node_capacity.free = self.free.copy()
        node_capacity.ports = self.ports.copy()
        node_capacity.pairs = self.pairs.copy()
        node_capacity.storage = self.storage.copy()
        node_capacity.devices = self.devices.copy()
        node_capacity.disks = self.disks.copy()
        return node_capacity

    def capacity_in_parts(self, shape: ShapeEntry, parts: int) -> Ints:
        """Free capacity per node in units of 1/`parts` of a pod of the shape, by amounts only."""
        self.fit_cells()
        free = self.free.cells[shape.rows, : self.nodes.size]
        fitting: Ints = (free * parts // np.maximum(shape.column, 1)).min(axis=0)
        return np.maximum(fitting, 0)

    def fit_cells(self) -> None:
        """Grow the cells to all resources and slots, before they are read or written."""
        self.free.ensure(len(self.nodes.resources.names), self.nodes.size)

    def _count_many(self, slots: Ints, counts: Ints, shape: ShapeEntry) -> None:
        listed: list[int] = slots.tolist()
        if shape.alike:
            self._count_alike(slots, counts, shape)
        elif shape.beyond_amounts:
            for slot, count in zip(listed, counts.tolist(), strict=True):
                self._count(slot, count, shape)
        self.changes.extend(listed)

    def _count_alike(self, slots: Ints, counts: Ints, shape: ShapeEntry) -> None:
        """Add the pods that the entry stands for; negative counts: remove them."""
        each: list[int] = np.repeat(slots, np.abs(counts)).tolist()
        if int(counts[0]) > 0:
            self.devices.take_alike(each, shape.alike)
            return
        for slot, member in zip(each, shape.alike, strict=True):
            self.devices.give(slot, member)

    def _count(self, slot: int, count: int, shape: ShapeEntry) -> None:
        """Add `count` pods to everything but the amounts; negative: remove them."""
        if shape.shape.host_ports:
            self.ports.take(slot, shape.shape.host_ports, count)
        if shape.shape.claims:
            change = self.storage.give if count < 0 else self.storage.take
            change(slot, shape, abs(count))
            self.changes.extend(self.storage.changed_slots())
        if shape.shape.device_claims:
            change = self.devices.give if count < 0 else self.devices.take
            change(slot, shape, abs(count))
        if shape.shape.disks:
            self.disks.take(slot, shape.shape.disks, count)
        if shape.tallies:
            self.pairs.add(slot, shape.tallies, count)


class FreeOnUsable:
    """Free amounts on the nodes that gangs can use, cached across cycles by resource row."""

    def __init__(self, node_capacity: NodeCapacity) -> None:
        self._node_capacity = node_capacity
        #: Versions of the sums' input: nodes, number of slots and resources, tolerated taints.
        self._of: tuple[object, ...] = ()
        self._usable: Bools = np.zeros(0, dtype=np.bool_)
        self._free: Ints = np.zeros((0, 0), dtype=np.int64)
        self._sums: Ints = np.zeros(0, dtype=np.int64)
        self._position = 0

    def sums(self, tolerated: Bools) -> list[int]:
        """The sums by resource row. `tolerated`: one flag per set of taints, whether a pod of a
        gang tolerates it.
        """
        node_capacity, nodes = self._node_capacity, self._node_capacity.nodes
        node_capacity.fit_cells()
        rows = len(nodes.resources.names)
        of = nodes.changes.position, nodes.size, rows, tolerated.tobytes()
        changed = (
            node_capacity.changes.since(self._position, _CHANGED_MAX) if of == self._of else None
        )
        self._position = node_capacity.changes.position
        if changed is None:
            self._of = of
            self._usable = self._judge(tolerated)
            free = np.maximum(node_capacity.free.cells[:rows, : nodes.size], 0)
            self._free = free * self._usable
            self._sums = self._free.sum(axis=1)
        elif len(slots := changed):
            free = np.maximum(node_capacity.free.cells[:rows, slots], 0) * self._usable[slots]
            self._sums = self._sums + (free - self._free[:, slots]).sum(axis=1)
            self._free[:, slots] = free
        sums: list[int] = self._sums.tolist()
        return sums

    def _judge(self, tolerated: Bools) -> Bools:
        nodes = self._node_capacity.nodes
        size = nodes.size
        usable: Bools = nodes.exists[:size] & nodes.ready[:size] & ~nodes.unschedulable[:size]
        return usable & tolerated[nodes.taint_set[:size]]
