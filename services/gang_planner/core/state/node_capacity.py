"""Free capacity of nodes: the only place where capacity is taken and released.

`free` = allocatable - pods on the node - reservations (`reservations`). It may be negative if
foreign pods overcommit a node. `freed` counts events after which a refused gang might fit: released
capacity, or a changed node. A gang that was refused at a count is not tried again until the count
changes.
"""

import numpy as np

from services.gang_planner.core.state.columns import ChangeLog, Grid, Ints
from services.gang_planner.core.state.devices.ledger import Devices
from services.gang_planner.core.state.host_ports import PortTable
from services.gang_planner.core.state.inter_pod.counts import DomainTable, PairCounts
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from services.gang_planner.core.state.storage.disks import Disks
from services.gang_planner.core.state.storage.ledger import Storage
from services.gang_planner.core.state.topology.table import TopologyTable
from shared.model.invariants import InvariantViolation


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
        self.topology = topology or TopologyTable(nodes, tables.hypernodes)
        self.free = Grid()
        self.ports = PortTable()
        #: Counts of pods for inter-pod rules.
        self.pairs = PairCounts(DomainTable(nodes))
        self.storage = Storage(tables, nodes)
        self.devices = Devices(tables, nodes)
        self.disks = Disks()
        #: Slots whose free amounts or ports changed.
        self.changes = ChangeLog()
        self.freed = 0

    def take(self, slot: int, shape: ShapeEntry) -> None:
        """Take capacity for one pod of the shape, or for a reservation of its size, on a node."""
        self.fit_cells()
        cells = self.free.cells
        for row, amount in shape.pairs:
            cells[row, slot] -= amount
        if shape.shape.host_ports:
            self.ports.take(slot, shape.shape.host_ports)
        if shape.attached:
            self._take_claims(slot, 1, shape)
        if shape.tallies:
            self.pairs.add(slot, shape.tallies, 1)
            self.freed += self.pairs.attracts(shape.profile)
        self.changes.add(slot)

    def give(self, slot: int, shape: ShapeEntry) -> None:
        """Undo one `take`."""
        cells = self.free.cells
        for row, amount in shape.pairs:
            cells[row, slot] += amount
        if shape.shape.host_ports:
            self.ports.give(slot, shape.shape.host_ports)
        if shape.attached:
            self._give_claims(slot, 1, shape)
        if shape.tallies:
            self.pairs.add(slot, shape.tallies, -1)
        self.changes.add(slot)
        self.freed += 1

    def take_many(self, slots: Ints, counts: Ints, shape: ShapeEntry) -> None:
        """Take capacity for `counts[i]` pods of the shape on `slots[i]`; slots are distinct."""
        self.fit_cells()
        self.free.cells[np.ix_(shape.rows, slots)] -= shape.column * counts
        self._change_others(slots, counts, shape, taking=True)

    def give_many(self, slots: Ints, counts: Ints, shape: ShapeEntry) -> None:
        """Undo one `take_many` of an attempt; `freed` stays unchanged."""
        self.free.cells[np.ix_(shape.rows, slots)] += shape.column * counts
        self._change_others(slots, counts, shape, taking=False)

    def exchange(self, slot: int, before: ShapeEntry, after: ShapeEntry) -> None:
        """Recount a pod under another entry with the same shape and a different profile."""
        if before.encoded != after.encoded:
            raise InvariantViolation(f"node in slot {slot}", "its pod was exchanged with another")
        self.pairs.add(slot, before.tallies, -1)
        self.pairs.add(slot, after.tallies, 1)

    def claims_version(self, shape: ShapeEntry) -> tuple[int, ...]:
        """A version that changes whenever a filter's result for the shape's claims may have changed
        on any node.
        """
        version: tuple[int, ...] = ()
        if shape.shape.claims:
            version += self.storage.version(shape)
        if shape.shape.device_claims:
            version += self.devices.version(shape)
        return version

    def one_by_one(self, shape: ShapeEntry) -> bool:
        """Whether one placed pod of the shape changes the nodes of the next: a claim has no volume
        or devices yet, or admits only one pod.
        """
        if not shape.attached:
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
        found: Ints = (free * parts // np.maximum(shape.column, 1)).min(axis=0)
        return np.maximum(found, 0)

    def fit_cells(self) -> None:
        """Grow the cells to all known resources and slots. Callers call it before they read or
        write the cells.
        """
        self.free.ensure(len(self.nodes.resources.names), self.nodes.size)

    def _change_others(self, slots: Ints, counts: Ints, shape: ShapeEntry, *, taking: bool) -> None:
        listed: list[int] = slots.tolist()
        if shape.shape.host_ports:
            change = self.ports.take if taking else self.ports.give
            for slot, count in zip(listed, counts.tolist(), strict=True):
                change(slot, shape.shape.host_ports, count)
        if shape.attached:
            attach = self._take_claims if taking else self._give_claims
            for slot, count in zip(listed, counts.tolist(), strict=True):
                attach(slot, count, shape)
        if shape.tallies:
            sign = 1 if taking else -1
            for slot, count in zip(listed, counts.tolist(), strict=True):
                self.pairs.add(slot, shape.tallies, sign * count)
        self.changes.extend(listed)

    def _take_claims(self, slot: int, count: int, shape: ShapeEntry) -> None:
        if shape.shape.claims:
            self.changes.extend(self.storage.take(slot, shape, count))
        if shape.shape.device_claims:
            self.devices.take(slot, shape, count)
        if shape.shape.disks:
            self.disks.take(slot, shape.shape.disks, count)

    def _give_claims(self, slot: int, count: int, shape: ShapeEntry) -> None:
        if shape.shape.claims:
            self.changes.extend(self.storage.give(slot, shape, count))
        if shape.shape.device_claims:
            self.devices.give(shape, count)
        if shape.shape.disks:
            self.disks.take(slot, shape.shape.disks, -count)
