"""The devices on nodes, and which of them are free.

Only the slices of a pool's newest generation count, and only if all of them exist and no two name
the same device. Devices that do not belong to one node (network-attached) are not allocated.
"""

from collections.abc import Collection, Iterable
from typing import TypeAlias

import numpy as np

from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.model.reference_objects import ResourceSlice

Device: TypeAlias = tuple[str, str, str]
"""Driver, pool and name."""


class Inventory:
    """Devices of all nodes, cached until slices, claims or nodes change."""

    def __init__(self, tables: ReferenceObjects, nodes: NodeTable) -> None:
        self._tables = tables
        self._nodes = nodes
        self._slices_at: int | None = None
        self._claims_at: int | None = None
        self._seen: tuple[int, ...] = ()
        #: Node of each device.
        self._homes: dict[Device, str] = {}
        #: (driver, node) -> devices, in order.
        self._on: dict[tuple[str, str], list[Device]] = {}
        self._allocated: set[Device] = set()
        #: Driver -> number of devices that are not allocated to a claim, per slot.
        self._free: dict[str, Ints] = {}

    @property
    def stamp(self) -> tuple[int, ...]:
        """A version that changes with slices, claims and nodes."""
        tables = self._tables
        return (
            tables.resource_slices.changes,
            tables.resource_claims.changes,
            self._nodes.changes.position,
        )

    def free(self, driver: str) -> Ints:
        """Per slot, the number of the driver's devices that no claim in the cluster has."""
        self._refresh()
        free = self._free.get(driver)
        return free if free is not None else np.zeros(self._nodes.size, dtype=np.int64)

    def slot_of(self, device: Device) -> int | None:
        """Slot of the device's node; None: the device or its node is unknown."""
        self._refresh()
        home = self._homes.get(device)
        return self._nodes.find(home) if home is not None else None

    def is_allocated(self, device: Device) -> bool:
        self._refresh()
        return device in self._allocated

    def pick(self, driver: str, slot: int, count: int, *taken: Collection[Device]) -> list[Device]:
        """The first `count` free devices of a driver on a node that are not in `taken`, or fewer if
        there are not enough.
        """
        self._refresh()
        found: list[Device] = []
        for device in self._on.get((driver, self._nodes.names[slot]), ()):
            if len(found) == count:
                break
            if device not in self._allocated and all(device not in one for one in taken):
                found.append(device)
        return found

    def _refresh(self) -> None:
        if self._seen == self.stamp:
            return
        self._seen = self.stamp
        tables = self._tables
        if self._slices_at != tables.resource_slices.changes:
            self._slices_at = tables.resource_slices.changes
            self._read_slices()
        if self._claims_at != tables.resource_claims.changes:
            self._claims_at = tables.resource_claims.changes
            self._allocated = {
                device for claim in tables.resource_claims.values() for device in claim.allocated
            }
        self._count()

    def _read_slices(self) -> None:
        pools: dict[tuple[str, str], list[ResourceSlice]] = {}
        for one in self._tables.resource_slices.values():
            slices = pools.setdefault((one.driver, one.pool), [])
            if slices and one.generation > slices[0].generation:
                slices.clear()
            if not slices or one.generation == slices[0].generation:
                slices.append(one)
        self._homes = {
            (one.driver, one.pool, name): one.node
            for slices in pools.values()
            if _is_whole(slices)
            for one in slices
            if one.node
            for name in one.devices
        }
        self._on = {}
        for device in sorted(self._homes, key=_natural):
            self._on.setdefault((device[0], self._homes[device]), []).append(device)

    def _count(self) -> None:
        self._free = {}
        for (driver, node), devices in self._on.items():
            slot = self._nodes.find(node)
            if slot is None:
                continue
            counts = self._free.get(driver)
            if counts is None:
                counts = self._free[driver] = np.zeros(self._nodes.size, dtype=np.int64)
            counts[slot] = _count_free(devices, self._allocated)


def _is_whole(slices: list[ResourceSlice]) -> bool:
    """Whether the pool is complete: it is not while its driver updates the slices."""
    names = [name for one in slices for name in one.devices]
    return slices[0].pool_slices in {0, len(slices)} and len(names) == len(set(names))


def _count_free(devices: Iterable[Device], allocated: set[Device]) -> int:
    return sum(device not in allocated for device in devices)


def _natural(device: Device) -> tuple[str, str, int, str]:
    """Sort key: gpu-2 before gpu-10."""
    return device[0], device[1], len(device[2]), device[2]
