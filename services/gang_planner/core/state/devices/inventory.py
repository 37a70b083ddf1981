"""The devices on nodes, and which of them are free.

Only the slices of a pool's newest generation count, and only if all of them exist and no two name
the same device. Devices that do not belong to one node (network-attached) are not allocated.
"""

from collections.abc import Collection, Iterable
from typing import Final

import numpy as np

from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.devices.selection import (
    Device,
    DeviceRequirement,
    Selection,
    SelectorFailure,
)
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.model.reference_objects import DeviceDetails, ResourceSlice

#: Number of requirements whose devices are cached.
_REQUIREMENTS_MAX: Final = 1_024
_NO_DETAILS: Final = DeviceDetails()


class Matches:
    """The devices that a requirement may get, whether free or not."""

    def __init__(self) -> None:
        self.devices: set[Device] = set()
        #: Node -> devices, in order.
        self.on: dict[str, list[Device]] = {}
        #: Nodes with devices on which a selector failed, and the first failure.
        self.failed_on: dict[str, SelectorFailure] = {}


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
        self._details: dict[Device, DeviceDetails] = {}
        #: All devices, in order.
        self._devices: list[Device] = []
        self._allocated: set[Device] = set()
        self.selection = Selection()
        self._matches: dict[DeviceRequirement, Matches] = {}

    @property
    def stamp(self) -> tuple[int, ...]:
        """A version that changes with slices, claims and nodes."""
        tables = self._tables
        return (
            tables.resource_slices.changes,
            tables.resource_claims.changes,
            self._nodes.changes.position,
        )

    def free(self, requirement: DeviceRequirement) -> Ints:
        """Per slot, the number of suitable devices that no claim in the cluster has."""
        counts = np.zeros(self._nodes.size, dtype=np.int64)
        for node, devices in self.matches(requirement).on.items():
            slot = self._nodes.find(node)
            if slot is not None:
                counts[slot] = _count_free(devices, self._allocated)
        return counts

    def matches(self, requirement: DeviceRequirement) -> Matches:
        """The devices that the requirement may get."""
        self._refresh()
        found = self._matches.get(requirement)
        if found is None:
            if len(self._matches) >= _REQUIREMENTS_MAX:
                self._matches.clear()
            found = self._matches[requirement] = self._match(requirement)
        return found

    def overlap(self, one: DeviceRequirement, other: DeviceRequirement) -> bool:
        """Whether a device may serve both."""
        return not self.matches(one).devices.isdisjoint(self.matches(other).devices)

    def slot_of(self, device: Device) -> int | None:
        """Slot of the device's node; None: the device or its node is unknown."""
        self._refresh()
        home = self._homes.get(device)
        return self._nodes.find(home) if home is not None else None

    def is_allocated(self, device: Device) -> bool:
        self._refresh()
        return device in self._allocated

    def available(
        self, requirement: DeviceRequirement, slot: int, taken: Collection[Device]
    ) -> list[Device]:
        """The free devices on a node that the requirement may get and that are not in `taken`."""
        on_node = self.matches(requirement).on.get(self._nodes.names[slot], ())
        return [one for one in on_node if one not in self._allocated and one not in taken]

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

    def _match(self, requirement: DeviceRequirement) -> Matches:
        found = Matches()
        for device in self._devices:
            node = self._homes[device]
            outcome = self.selection.matches(
                requirement, device, self._details.get(device, _NO_DETAILS)
            )
            if isinstance(outcome, SelectorFailure):
                found.failed_on.setdefault(node, outcome)
            elif outcome:
                found.devices.add(device)
                found.on.setdefault(node, []).append(device)
        return found

    def _read_slices(self) -> None:
        pools: dict[tuple[str, str], list[ResourceSlice]] = {}
        for one in self._tables.resource_slices.values():
            slices = pools.setdefault((one.driver, one.pool), [])
            if slices and one.generation > slices[0].generation:
                slices.clear()
            if not slices or one.generation == slices[0].generation:
                slices.append(one)
        self._homes, self._details = {}, {}
        for slices in pools.values():
            for one in slices if _is_whole(slices) else ():
                names = [(one.driver, one.pool, name) for name in one.devices]
                if one.node:
                    self._homes.update(dict.fromkeys(names, one.node))
                    self._details.update(zip(names, one.details, strict=False))
        self._devices = sorted(self._homes, key=_natural)
        self._matches.clear()
        self.selection.forget_devices()


def _is_whole(slices: list[ResourceSlice]) -> bool:
    """Whether the pool is complete: it is not while its driver updates the slices."""
    names = [name for one in slices for name in one.devices]
    return slices[0].pool_slices in {0, len(slices)} and len(names) == len(set(names))


def _count_free(devices: Iterable[Device], allocated: set[Device]) -> int:
    return sum(device not in allocated for device in devices)


def _natural(device: Device) -> tuple[str, str, int, str]:
    """Sort key: gpu-2 before gpu-10."""
    return device[0], device[1], len(device[2]), device[2]
