"""What a search sees of one node: its devices, and which of them are in use."""

from collections.abc import Container, Sequence
from fractions import Fraction

from services.gang_planner.core.state.claim_ledger import Key
from services.gang_planner.core.state.devices.device_table import Counter, DeviceEntry, Pool
from services.gang_planner.core.state.devices.grants import DeviceGrants
from services.gang_planner.core.state.devices.inventory import Shares
from services.gang_planner.core.state.devices.selection import (
    Device,
    DeviceRequirement,
    SelectorFailure,
)
from services.gang_planner.core.state.devices.vacated import AllocatedDevices


class DevicesOfNode:
    """The devices of one node, and their use by claims in the cluster and by chosen devices."""

    def __init__(
        self,
        grants: DeviceGrants,
        allocated: AllocatedDevices,
        slot: int,
        without: Container[Key] = (),
    ) -> None:
        """The grants must be refreshed. `without`: claims whose chosen devices count as free."""
        self._inventory = grants.inventory
        self._allocated = allocated
        self._grants = grants
        self._without = without
        self._slot, self._node = slot, grants.nodes.names[slot]

    @property
    def unsettled_pool(self) -> str:
        """A pool of the node that is being updated or is invalid; "": none."""
        table, within = self._inventory.table, self._inventory.within
        found = table.unsettled_on.get(self._node, "")
        wide = (pool for reach, pool in table.unsettled_wide if within(reach)[self._slot])
        return found or next(wide, "")

    def matching(self, requirement: DeviceRequirement) -> Sequence[DeviceEntry]:
        """The devices that the requirement may get, whether free or not, in order."""
        matches = self._inventory.matches(requirement)
        local = matches.on.get(self._node, [])
        wide = [one for one in matches.wide if self._inventory.within(one.reach)[self._slot]]
        found = [*local, *wide] if wide else local
        if self._inventory.table.conditional:
            # Pods wait for the conditions of these.
            found = sorted(found, key=lambda one: bool(one.details.binding_conditions))
        return found

    def failure(self, requirement: DeviceRequirement) -> SelectorFailure | None:
        """The first failure of a selector on a device of the node, or of several nodes."""
        failed = self._inventory.matches(requirement).failed_on
        return failed.get(self._node, failed.get(""))

    def is_taken(self, device: Device) -> bool:
        """Whether a claim has the device alone."""
        if device in self._allocated:
            return True
        holder = self._grants.holders.get(device)
        return holder is not None and holder not in self._without

    def shares(self, device: Device) -> Shares | None:
        """What claims have of a shareable device; None: no claim has any of it."""
        allocated = self._inventory.shares(device, self._allocated.vacated.keys())
        lent = self._grants.lent.get(device, ())
        parts = [amounts for key, amounts in lent if key not in self._without]
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
