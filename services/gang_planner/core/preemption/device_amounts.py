"""Devices as amounts, so that victims are estimated by the devices that they free.

Each pool of devices that a plain problem requests from is a row beside those of resources: what a
pod needs of it, how many are free on each node, and how many each unit of eviction frees. Two pools
may have devices in common; then the estimate is too high, and the proof decides.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from services.gang_planner.core.preemption.units import Unit
from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.devices.ledger import Devices
from services.gang_planner.core.state.devices.vacated import ClaimConsumers
from services.gang_planner.core.state.pod_shapes import ShapeEntry

if TYPE_CHECKING:
    from services.gang_planner.core.state.devices.plain_devices import Pool
    from services.gang_planner.core.state.devices.selection import Device

Pairs: TypeAlias = tuple[tuple[int, int], ...]
"""Rows, and what one pod takes of each."""


class DeviceAmounts:
    """The pools of a gang's shapes. Their rows are negative."""

    def __init__(
        self, devices: Devices, consumers: ClaimConsumers | None, shapes: Iterable[ShapeEntry]
    ) -> None:
        """`consumers`: without pods that have left; None: the gang has no claims."""
        self._devices = devices
        self._consumers = consumers
        self._pools: dict[int, Pool] = {}
        self._rows: dict[object, int] = {}
        #: Slot and rows of each device.
        self._places: dict[Device, tuple[int, list[int]]] = {}
        #: What evicting a pod alone frees, by its UID.
        self._of_pod: dict[str, dict[int, int]] = {}
        self._pairs: dict[object, Pairs] = {}
        for shape in shapes if consumers is not None else ():
            if shape.shape.device_claims:
                self._add(shape)

    def pairs(self, shape: ShapeEntry) -> Pairs:
        """What one pod of the shape takes of resources and pools."""
        return (*shape.pairs, *self._pairs.get(shape.counted, ()))

    def free(self, row: int) -> Ints:
        """How many devices of a pool are free now, by slot."""
        return self._devices.free_in(self._pools[row])

    def enter(self, units: Iterable[Unit]) -> None:
        """Add what units free to their amounts."""
        if not self._pools or self._consumers is None:
            return
        for unit in units:
            for amounts in unit.freed.values():
                for row in [row for row in amounts if row < 0]:
                    del amounts[row]
            for slot, row, number in self._freed([one.pod.uid for one in unit.members]):
                amounts = unit.freed.setdefault(slot, {})
                amounts[row] = amounts.get(row, 0) + number

    def of_pod(self, uid: str) -> dict[int, int]:
        """How many devices of each pool the eviction of a pod alone frees."""
        found = self._of_pod.get(uid)
        if found is None:
            found = self._of_pod[uid] = {}
            for _, row, number in self._freed([uid]):
                found[row] = found.get(row, 0) + number
        return found

    def _add(self, shape: ShapeEntry) -> None:
        pairs: list[tuple[int, int]] = []
        for pool in self._devices.pools(shape):
            row = self._rows.setdefault(pool.wanted, -1 - len(self._rows))
            pairs.append((row, pool.number))
            if row in self._pools:
                continue
            self._pools[row] = pool
            for slot, devices in self._devices.by_slot(pool):
                for device in devices:
                    self._places.setdefault(device, (slot, []))[1].append(row)
        self._pairs[shape.counted] = tuple(pairs)

    def _freed(self, uids: Sequence[str]) -> Iterable[tuple[int, int, int]]:
        """(slot, row, 1) for each device that is free when these pods have left."""
        if self._consumers is None or not self._pools:
            return
        for claim in self._consumers.last_of(uids):
            for device in claim.allocated:
                slot, rows = self._places.get(device, (0, ()))
                for row in rows:
                    yield slot, row, 1


def free_amounts(cells: Ints, pairs: Pairs, devices: DeviceAmounts, size: int) -> Ints:
    """Free amounts of the rows of these pairs, by slot."""
    found = [cells[row, :size] if row >= 0 else devices.free(row)[:size] for row, _ in pairs]
    return np.array(found, dtype=np.int64).reshape(len(pairs), size)
