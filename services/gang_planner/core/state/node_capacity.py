"""What is free: the one place where capacity is taken and given back.

`free` = allocatable - pods on the node - reservations (`reservations`). It may be negative where
foreign pods over-fill a node. `freed` counts events after which something that did not fit might:
capacity given back, a node that changed. What was refused at a count is not tried again until it
moves.
"""

import numpy as np

from services.gang_planner.core.state.columns import ChangeLog, Grid, Ints
from services.gang_planner.core.state.devices.ledger import Devices
from services.gang_planner.core.state.host_ports import PortTable
from services.gang_planner.core.state.inter_pod.counts import PairCounts
from services.gang_planner.core.state.inter_pod.domains import DomainTable
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
        """`topology`: that of another node capacity of the same nodes; None: one of its own."""
        tables = ReferenceObjects() if reference_objects is None else reference_objects
        self.nodes = nodes
        #: Which domains the nodes lie in.
        self.topology = topology or TopologyTable(nodes, tables.hypernodes)
        self.free = Grid()
        self.ports = PortTable()
        #: Which pods are where, as far as terms between pods ask.
        self.pairs = PairCounts(DomainTable(nodes))
        self.storage = Storage(tables, nodes)
        self.devices = Devices(tables, nodes)
        self.disks = Disks()
        #: Columns whose free amounts or ports changed.
        self.changes = ChangeLog()
        self.freed = 0

    def take(self, slot: int, shape: ShapeEntry) -> None:
        """One pod of this shape is on the node, or room for it is kept there."""
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
        """`counts[i]` pods of this shape go to `slots[i]`; slots are distinct."""
        self.fit_cells()
        self.free.cells[np.ix_(shape.rows, slots)] -= shape.column * counts
        self._change_others(slots, counts, shape, taking=True)

    def give_many(self, slots: Ints, counts: Ints, shape: ShapeEntry) -> None:
        """Undo one `take_many`; nothing is `freed`, the world is as it was."""
        self.free.cells[np.ix_(shape.rows, slots)] += shape.column * counts
        self._change_others(slots, counts, shape, taking=False)

    def exchange(self, slot: int, before: ShapeEntry, after: ShapeEntry) -> None:
        """A pod that was taken with one entry counts as another one of the same shape."""
        if before.encoded != after.encoded:
            raise InvariantViolation(f"node in slot {slot}", "its pod was exchanged with another")
        self.pairs.add(slot, before.tallies, -1)
        self.pairs.add(slot, after.tallies, 1)

    def claims_version(self, shape: ShapeEntry) -> tuple[int, ...]:
        """Changes whenever what filters say of the shape's claims may have changed on any node."""
        version: tuple[int, ...] = ()
        if shape.shape.claims:
            version += self.storage.version(shape)
        if shape.shape.device_claims:
            version += self.devices.version(shape)
        return version

    def one_by_one(self, shape: ShapeEntry) -> bool:
        """Whether placing one pod of the shape changes where the next may go: a claim of theirs has
        no volume or devices yet, or is for one pod.
        """
        if not shape.attached:
            return False
        volumes = self.storage.demand(shape)
        return bool(volumes.delayed or volumes.exclusive or self.devices.demand(shape).open)

    def add_capacity(self, slot: int, delta: Ints) -> None:
        """The node's allocatable amounts changed by `delta`, one number per row."""
        self.fit_cells()
        self.free.cells[: len(delta), slot] += delta
        self.changes.add(slot)
        self.freed += 1

    def emptied(self) -> "NodeCapacity":
        """The same nodes with nothing on them: for questions about what could ever fit."""
        self.fit_cells()
        node_capacity = NodeCapacity(self.nodes, self.storage.tables, self.topology)
        node_capacity.free = self.nodes.allocatable.copy()
        node_capacity.free.ensure(*self.free.cells.shape)
        return node_capacity

    def copy(self) -> "NodeCapacity":
        """An independent node capacity with the same room: for questions about now."""
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
        """How many pods of this shape each node has room for, in that part of a pod: finer than
        whole pods, and blind to everything but amounts.
        """
        self.fit_cells()
        free = self.free.cells[shape.rows, : self.nodes.size]
        found: Ints = (free * parts // np.maximum(shape.column, 1)).min(axis=0)
        return np.maximum(found, 0)

    def fit_cells(self) -> None:
        """Make the cells cover every resource and slot known now; called before they are read or
        written.
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
