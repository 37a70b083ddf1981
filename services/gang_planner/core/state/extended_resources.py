"""Extended resources that devices serve (`devices.extended`), in the tables of nodes and pods.

* A node without a device plugin for a resource has as much of it as it has devices of the
  resource's class. So amounts, totals and bounds need no second notion; the ledger of devices
  decides which ones are free.
* A pod that requests such a resource gets a shape of its own, because devices belong to one pod.
"""

from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from services.gang_planner.core.state.columns import Ints, clamped
from services.gang_planner.core.state.devices.capacity import consumption
from services.gang_planner.core.state.devices.demand import class_objection
from services.gang_planner.core.state.devices.device_table import DeviceEntry
from services.gang_planner.core.state.devices.extended import requirement_of
from services.gang_planner.core.state.devices.inventory import Inventory
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.model.devices import CLASS_RESOURCE_PREFIX, DeviceClass
from shared.model.objects import Pod, PodDevices, Shape

#: Number of pods that one device serves which can be shared without limit.
_SHARES_MAX: Final = 128
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Shape).decode


class ExtendedResources:
    """The part of one cluster state."""

    def __init__(self, node_capacity: NodeCapacity, tables: ReferenceObjects) -> None:
        self._node_capacity = node_capacity
        self._tables = tables
        self._classes = node_capacity.devices.classes
        #: UID -> shape of the pod as the watcher sent it, of pods with a shape of their own.
        self._shared: dict[str, bytes] = {}
        #: `changes` of the classes that the shapes of all pods agree with.
        self._shaped_at = 0
        #: Versions of what amounts depend on, and the position in the log of nodes.
        self._counted_at: tuple[int, ...] = ()
        self._position = 0
        #: Resource row -> devices of its class.
        self._counts: dict[int, _Count] = {}

    # --------------------------------------------------------------------- pods

    def count_for(self, pods: Iterable[Pod]) -> None:
        """`count_devices`, also of the classes that only these hypothetical pods request."""
        for pod in pods:
            for container in pod.extended:
                for name, _, _ in container.requests:
                    if self._classes.find(name) is not None:
                        self._node_capacity.nodes.resources.row(name)
        self.count_devices()

    def follow(self, pod: Pod) -> Pod:
        """`shaped` for a pod of the cluster state, until it is forgotten."""
        shaped = self.shaped(pod)
        if shaped is pod:
            self._shared.pop(pod.uid, None)
        else:
            self._shared[pod.uid] = pod.shape
        return shaped

    def shaped(self, pod: Pod) -> Pod:
        """The pod with a shape of its own, if it requests a resource that a class has."""
        if not pod.extended or not self._has_class(pod):
            return pod
        try:
            shape = _decode(pod.shape)
        except (msgspec.DecodeError, msgspec.ValidationError):
            return pod
        for name, _ in shape.requests:
            # `count_devices` counts resources that have a row.
            self._node_capacity.nodes.resources.row(name)
        devices = PodDevices(pod_uid=pod.uid, containers=pod.extended)
        own = msgspec.structs.replace(
            shape, device_claims=(*shape.device_claims, devices), namespace=pod.namespace
        )
        return msgspec.structs.replace(pod, shape=_encode(own))

    def unshaped(self, pod: Pod) -> Pod:
        """The pod with the shape that the watcher sent."""
        shape = self._shared.get(pod.uid)
        return pod if shape is None else msgspec.structs.replace(pod, shape=shape)

    def forget(self, pod_uid: str) -> None:
        """Drop what is known of a pod that is gone."""
        self._shared.pop(pod_uid, None)

    def classes_changed(self) -> bool:
        """Whether classes have changed since the last call, so that pods may need other shapes."""
        changes = self._tables.device_classes.changes
        changed, self._shaped_at = self._shaped_at != changes, changes
        return changed

    def _has_class(self, pod: Pod) -> bool:
        find = self._classes.find
        return any(find(name) for container in pod.extended for name, _, _ in container.requests)

    # ------------------------------------------------------------------- amounts

    def count_devices(self) -> None:
        """Update the amounts of nodes without a device plugin."""
        tables, nodes = self._tables, self._node_capacity.nodes
        if not tables.device_classes and not self._counts:
            return
        versions = (
            tables.device_classes.changes,
            tables.resource_slices.changes,
            len(nodes.resources.names),
        )
        slots: Ints | None = None
        if versions == self._counted_at:
            slots = nodes.changes.since(self._position, max(16, nodes.size // 4))
        else:
            self._counted_at = versions
            self._read_classes()
        if slots is None:
            slots = np.arange(nodes.size, dtype=np.int64)
        if len(slots) and self._counts:
            self._apply(slots)
        self._position = nodes.changes.position

    def _read_classes(self) -> None:
        nodes = self._node_capacity.nodes
        names = set(self._classes.named())
        names.update(
            name for name in nodes.resources.names if name.startswith(CLASS_RESOURCE_PREFIX)
        )
        before = self._counts
        self._counts = {}
        nodes.device_classes = {}
        for name in sorted(names):
            device_class = self._classes.find(name)
            if device_class is not None:
                row = nodes.resources.row(name)
                inventory = self._node_capacity.devices.inventory()
                self._counts[row], nodes.device_classes[row] = _counted(device_class, inventory)
        # Rows whose class is gone are counted a last time, and have nothing.
        for row in before.keys() - self._counts.keys():
            self._counts[row] = _Count()

    def _apply(self, slots: Ints) -> None:
        node_capacity, nodes = self._node_capacity, self._node_capacity.nodes
        node_capacity.fit_cells()
        rows = len(nodes.resources.names)
        nodes.by_devices.ensure(rows, nodes.size)
        nodes.allocatable.ensure(rows, nodes.size)
        allocatable, by_devices = nodes.allocatable.cells, nodes.by_devices.cells
        inventory = node_capacity.devices.inventory()
        changed: dict[int, Ints] = {}
        for row, count in sorted(self._counts.items()):
            plugin = allocatable[row, slots] - by_devices[row, slots]
            number = count.on(inventory, nodes, slots)
            wanted = np.where((plugin == 0) & nodes.exists[slots], number, 0)
            more = wanted - by_devices[row, slots]
            for at in np.flatnonzero(more).tolist():
                delta = changed.setdefault(int(slots[at]), np.zeros(rows, dtype=np.int64))
                delta[row] = more[at]
        for slot, delta in sorted(changed.items()):
            allocatable[:rows, slot] += delta
            by_devices[:rows, slot] += delta
            node_capacity.add_capacity(slot, delta)
            nodes.changes.add(slot)


class _Count:
    """Devices of one class."""

    def __init__(self) -> None:
        #: On nodes that alone can use them.
        self.local: dict[str, int] = {}
        #: Each device that several nodes can use, with its shares.
        self.wide: list[tuple[DeviceEntry, int]] = []

    def on(self, inventory: Inventory, nodes: NodeTable, slots: Ints) -> Ints:
        """The number of devices that each of these nodes can use. The inventory must be
        refreshed.
        """
        listed: list[int] = slots.tolist()
        counts = np.array([self.local.get(nodes.names[slot], 0) for slot in listed], dtype=np.int64)
        for entry, shares in self.wide:
            counts += inventory.within(entry.reach)[slots] * shares
        return counts


def _counted(device_class: DeviceClass, inventory: Inventory) -> tuple[_Count, str]:
    """The devices of a class, and words about it for nodes that have none."""
    count = _Count()
    objection = class_objection(device_class, inventory.selection)
    requirement = requirement_of(device_class)
    if objection or requirement is None:
        return count, objection
    matches = inventory.matches(requirement)
    count.local = {node: sum(map(_shares, entries)) for node, entries in matches.on.items()}
    count.wide = [(entry, _shares(entry)) for entry in matches.wide]
    return count, f"no device of class {device_class.name}"


def _shares(entry: DeviceEntry) -> int:
    """The number of requests without capacities that the device can serve at once."""
    if not entry.details.shareable:
        return 1
    consumed = consumption(entry.id[0], entry.rules or (), {})
    if consumed is None:
        return 0
    shares = [
        int(rule.value / consumed[rule.name]) for rule in entry.rules or () if consumed[rule.name]
    ]
    return clamped(min([*shares, _SHARES_MAX]))
