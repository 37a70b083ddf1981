"""Devices that are chosen for claims, and the view of one node's devices for a search."""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from services.gang_planner.core.state.claim_ledger import Key
from services.gang_planner.core.state.columns import ChangeLog
from services.gang_planner.core.state.devices.allocation_search import Pick
from services.gang_planner.core.state.devices.device_table import Counter, DeviceEntry, Pool
from services.gang_planner.core.state.devices.inventory import Inventory, Shares
from services.gang_planner.core.state.devices.selection import (
    Device,
    DeviceRequirement,
    SelectorFailure,
)
from services.gang_planner.core.state.devices.vacated import StillAllocated, VacatedDevices

_Amounts: TypeAlias = tuple[tuple[str, Fraction], ...]


class ChosenDevices:
    """Devices chosen for claims that have none allocated."""

    def __init__(self) -> None:
        #: Devices that claims have alone.
        self._holders: dict[Device, Key] = {}
        #: Shareable device -> parts of it, by claim.
        self._lent: dict[Device, list[tuple[Key, _Amounts]]] = {}
        #: Slots of nodes on which devices were chosen or released.
        self.changes = ChangeLog()
        #: Increases when such a device is not on one node only.
        self.wide_changes = 0

    def copy(self) -> "ChosenDevices":
        """The same choices, with a log of its own."""
        return self.without(())

    def without(self, keys: Collection[Key]) -> "ChosenDevices":
        """A copy without the devices of these claims."""
        other = ChosenDevices()
        other._holders = {one: key for one, key in self._holders.items() if key not in keys}
        for device, parts in self._lent.items():
            left = [part for part in parts if part[0] not in keys]
            if left:
                other._lent[device] = left
        return other

    @property
    def whole(self) -> Container[Device]:
        """The devices that claims have alone."""
        return self._holders

    def is_taken(self, device: Device) -> bool:
        """Whether a claim has the device alone."""
        return device in self._holders

    def parts(self, device: Device) -> Sequence[_Amounts]:
        """What claims have of a shareable device."""
        return [amounts for _, amounts in self._lent.get(device, ())]

    def holders(self, picks: Iterable[Pick]) -> list[Key]:
        """The claims that have devices which the picks need alone."""
        found = (
            self._holders.get(one.device) for one in picks if not one.admin and one.consumed is None
        )
        return [key for key in found if key is not None]

    def hold(self, key: Key, picks: Iterable[Pick], inventory: Inventory) -> None:
        """Choose devices for a claim."""
        for one in picks:
            if one.consumed is not None:
                self._lent.setdefault(one.device, []).append((key, one.consumed))
            elif not one.admin:
                self._holders[one.device] = key
            self._log(one, inventory)

    def hold_on(self, slot: int, key: Key, picks: Iterable[Pick]) -> None:
        """Choose devices for a claim alone that are all on one node and affect no other."""
        for one in picks:
            self._holders[one.device] = key
        self.changes.add(slot)

    def release(self, key: Key, picks: Iterable[Pick], inventory: Inventory) -> None:
        """Undo `hold`."""
        for one in picks:
            if one.consumed is not None:
                parts = self._lent[one.device]
                parts.remove((key, one.consumed))
                if not parts:
                    del self._lent[one.device]
            elif not one.admin and self._holders.get(one.device) == key:
                del self._holders[one.device]
            self._log(one, inventory)

    def contradiction(self, picks: Mapping[Key, Iterable[Pick]]) -> str:
        """A device that is chosen twice, or not by the claims that have these picks; "": none."""
        whole = [
            (one.device, key)
            for key, found in picks.items()
            for one in found
            if one.consumed is None and not one.admin
        ]
        if sorted(whole) != sorted(self._holders.items()):
            return f"devices {sorted(whole)} are chosen, {sorted(self._holders.items())} count so"
        parts = [
            (one.device, key, one.consumed)
            for key, found in picks.items()
            for one in found
            if one.consumed is not None
        ]
        counted = [(device, *part) for device, found in self._lent.items() for part in found]
        if sorted(parts) != sorted(counted):
            return f"parts {sorted(parts)} are chosen, {sorted(counted)} count as such"
        return ""

    def _log(self, pick: Pick, inventory: Inventory) -> None:
        slot = inventory.slot_of(pick.device)
        if slot is not None:
            self.changes.add(slot)
        else:
            self.wide_changes += 1


class DevicesOfNode:
    """The devices of one node, and their use by claims in the cluster and by chosen devices."""

    def __init__(
        self, inventory: Inventory, chosen: ChosenDevices, slot: int, vacated: VacatedDevices
    ) -> None:
        """The inventory must be refreshed."""
        self._inventory = inventory
        self._allocated = StillAllocated(inventory.allocated, vacated)
        self._vacated = vacated
        self._chosen = chosen
        self._slot = slot

    @property
    def unsettled_pool(self) -> str:
        """A pool of the node that is being updated or is invalid; "": none."""
        return self._inventory.unsettled_pool(self._slot)

    def matching(self, requirement: DeviceRequirement) -> Sequence[DeviceEntry]:
        """The devices that the requirement may get, whether free or not, in order."""
        return self._inventory.matching(requirement, self._slot)

    def failure(self, requirement: DeviceRequirement) -> SelectorFailure | None:
        """The first failure of a selector of the requirement on a device of the node."""
        return self._inventory.failure(requirement, self._slot)

    def is_taken(self, device: Device) -> bool:
        """Whether a claim has the device alone."""
        return device in self._allocated or self._chosen.is_taken(device)

    def shares(self, device: Device) -> Shares | None:
        """What claims have of a shareable device; None: no claim has any of it."""
        allocated = self._inventory.shares(device, self._vacated.claims)
        parts = self._chosen.parts(device)
        if not parts:
            return allocated
        total = dict(allocated or {})
        for amounts in parts:
            for name, amount in amounts:
                total[name] = total.get(name, Fraction(0)) + amount
        return total

    def counters(self, pool: Pool) -> dict[Counter, Fraction]:
        """The pool's counters less what devices in use consume."""
        table = self._inventory.table
        left = dict(table.counters.get(pool, {}))
        for entry in table.consumers.get(pool, ()):
            if self.is_taken(entry.id) or self.shares(entry.id) is not None:
                for counter, amount in entry.consumes:
                    left[counter] -= amount
        return left
