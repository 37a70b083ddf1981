"""Devices as amounts, so that victims are estimated by the devices that they free.

The devices that requests of a plain problem select are a row beside those of resources: what a pod
needs of them, how many are free on each node, and how many each unit of eviction frees. Two rows
may have devices in common; then the estimate is too high, and the proof decides.
"""

from collections.abc import Iterable, Iterator
from copy import copy
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from services.gang_planner.core.preemption.units import Unit
from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.devices.ledger import Devices
from services.gang_planner.core.state.devices.vacated import ClaimConsumers
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from shared.model.devices import ResourceClaim

if TYPE_CHECKING:
    from services.gang_planner.core.state.devices.plain_devices import SelectedDevices
    from services.gang_planner.core.state.devices.selection import Device

Pairs: TypeAlias = tuple[tuple[int, int], ...]
"""Rows, and what one pod takes of each."""


class DeviceAmounts:
    """The devices that a gang's shapes select. Their rows are negative."""

    def __init__(
        self, devices: Devices, consumers: ClaimConsumers | None, shapes: Iterable[ShapeEntry]
    ) -> None:
        """`consumers`: without pods that have left; None: the gang has no claims."""
        self._devices = devices
        self._consumers = consumers
        self._selections: dict[int, SelectedDevices] = {}
        self._rows: dict[object, int] = {}
        #: Slot and rows of each device.
        self._places: dict[Device, tuple[int, list[int]]] = {}
        #: What evicting a pod frees at most, by its UID.
        self._of_pod: dict[str, dict[int, int]] = {}
        self._pairs: dict[object, Pairs] = {}
        for shape in shapes if consumers is not None else ():
            if shape.shape.device_claims:
                self._add(shape)

    def pairs(self, shape: ShapeEntry) -> Pairs:
        """What one pod of the shape takes of resources and devices."""
        return (*shape.pairs, *self._pairs.get(shape.counted, ()))

    def free(self, row: int) -> Ints:
        """How many devices of a row are free now, by slot."""
        return self._devices.searches.free_of(self._selections[row])

    def with_devices(self, units: list[Unit]) -> list[Unit]:
        """The units with the devices that they free among their amounts. Units are shared between
        searches, so those that free any are copied.
        """
        if not self._selections or self._consumers is None:
            return units
        return [self._with_devices(unit, self._consumers) for unit in units]

    def of_pod(self, uid: str) -> dict[int, int]:
        """How many devices of each row the eviction of a pod frees at most: those of all its
        claims, as if it were the last pod of each.
        """
        freed = self._of_pod.get(uid)
        if freed is None:
            freed = self._of_pod[uid] = {}
            claims = self._consumers.of_pod(uid) if self._consumers is not None else ()
            for _, row in self._devices_of(claims):
                freed[row] = freed.get(row, 0) + 1
        return freed

    def _add(self, shape: ShapeEntry) -> None:
        pairs: list[tuple[int, int]] = []
        searches = self._devices.searches
        for selected in searches.selections(self._devices.unsolved(self._devices.demand(shape))):
            row = self._rows.setdefault(selected.wanted, -1 - len(self._rows))
            pairs.append((row, selected.number))
            if row in self._selections:
                continue
            self._selections[row] = selected
            for slot, devices in searches.by_slot(selected):
                for device in devices:
                    self._places.setdefault(device, (slot, []))[1].append(row)
        self._pairs[shape.counted] = tuple(pairs)

    def _with_devices(self, unit: Unit, consumers: ClaimConsumers) -> Unit:
        claims = consumers.last_of([member.pod.uid for member in unit.members])
        devices = list(self._devices_of(claims))
        if not devices:
            return unit
        copied = copy(unit)
        copied.freed = {slot: dict(amounts) for slot, amounts in unit.freed.items()}
        for slot, row in devices:
            amounts = copied.freed.setdefault(slot, {})
            amounts[row] = amounts.get(row, 0) + 1
        return copied

    def _devices_of(self, claims: Iterable[ResourceClaim]) -> Iterator[tuple[int, int]]:
        """Slot and row of each device of these claims, once for each row that it is in."""
        for claim in claims:
            for device in claim.allocated:
                slot, rows = self._places.get(device, (0, ()))
                for row in rows:
                    yield slot, row


def free_amounts(cells: Ints, pairs: Pairs, devices: DeviceAmounts, size: int) -> Ints:
    """Free amounts of the rows of these pairs, by slot."""
    amounts = [cells[row, :size] if row >= 0 else devices.free(row)[:size] for row, _ in pairs]
    return np.array(amounts, dtype=np.int64).reshape(len(pairs), size)
