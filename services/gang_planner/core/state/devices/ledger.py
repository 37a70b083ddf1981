"""The use of ResourceClaims by pods, and the devices chosen for claims without allocated devices.

It is part of a `NodeCapacity`, like `storage.ledger`. When the first pod takes a claim without
devices, devices on its node are chosen; other pods of the claim can only use the same node.

Invariant: no device is chosen for two claims.
"""

from collections.abc import Iterable
from itertools import combinations
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from services.gang_planner.core.state.columns import Bools, Ints, Slots
from services.gang_planner.core.state.devices.demand import (
    DeviceDemand,
    Key,
    Wanted,
    claim_keys,
    demand_of,
)
from services.gang_planner.core.state.devices.inventory import Inventory
from services.gang_planner.core.state.devices.selection import (
    Device,
    DeviceRequirement,
    assign,
    described,
    quoted,
)
from services.gang_planner.core.state.node_terms import matching_any
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.model.reference_objects import ResourceClaim

Open: TypeAlias = tuple[ResourceClaim, tuple[Wanted, ...]]
"""A claim without devices, and its requests."""

#: Number of cached demands.
_DEMANDS_MAX: Final = 65_536
#: Number of requirements whose free devices are counted.
_COUNTED_MAX: Final = 256


class Grant(NamedTuple):
    """Devices chosen for a claim: (request, device) each."""

    node: str
    claim_uid: str
    devices: tuple[tuple[str, Device], ...]


class Devices:
    """Claims in use on one node capacity."""

    def __init__(self, tables: ReferenceObjects, nodes: NodeTable) -> None:
        self._tables = tables
        self._nodes = nodes
        self._inventory = Inventory(tables, nodes)
        #: Claim -> number of pods on nodes, and of reservations, that use it.
        self.uses: dict[Key, int] = {}
        self._grants: dict[Key, Grant] = {}
        #: Grants of decisions in the log whose reservations are not made yet.
        self._pins: dict[Key, Grant] = {}
        #: Claims whose grants last without users: see `keep`.
        self._kept: set[Key] = set()
        #: Device -> claim, for all grants and pins.
        self._chosen: dict[Device, Key] = {}
        #: Requirement -> number of devices that are neither allocated nor chosen, per slot.
        self._free: dict[DeviceRequirement, Ints] = {}
        self._stamp: tuple[int, ...] = ()
        self._turns: dict[Key, int] = {}
        self._turn = 0
        self._demands: dict[bytes, DeviceDemand] = {}
        self._demands_at = 0

    def copy(self) -> "Devices":
        other = Devices(self._tables, self._nodes)
        # The inventory depends only on the tables, which the copy shares.
        other._inventory = self._inventory
        other.uses = dict(self.uses)
        other._grants, other._pins = dict(self._grants), dict(self._pins)
        other._chosen, other._kept = dict(self._chosen), set(self._kept)
        other._turns, other._turn = dict(self._turns), self._turn
        return other

    def unused(self) -> "Devices":
        """The same devices without claims in use."""
        other = Devices(self._tables, self._nodes)
        other._inventory = self._inventory
        return other

    # ------------------------------------------------------------------- asking

    def version(self, shape: ShapeEntry) -> tuple[int, ...]:
        """A version that changes whenever the results for the shape may change on any node."""
        demand = self.demand(shape)
        if not demand.open:
            return (self._demands_at,)
        turns = sum(self._turns.get(key, 0) for key in claim_keys(shape.shape))
        return (self._demands_at, turns)

    def demand(self, shape: ShapeEntry) -> DeviceDemand:
        tables = self._tables
        changes = (
            tables.resource_claims.changes
            + tables.resource_slices.changes
            + tables.device_classes.changes
        )
        if self._demands_at != changes or len(self._demands) >= _DEMANDS_MAX:
            self._demands_at = changes
            self._demands.clear()
        found = self._demands.get(shape.encoded)
        if found is None:
            found = self._demands[shape.encoded] = demand_of(
                shape.shape, tables, self._inventory.selection
            )
        return found

    def grant(self, key: Key) -> Grant | None:
        """The devices chosen for the claim; None: none, or it has allocated devices by now."""
        found = self._grants.get(key)
        claim = self._tables.resource_claims.by_name.get(key)
        if found is None or claim is None or claim.uid != found.claim_uid or claim.allocated:
            return None
        return found

    def allocations_fit(self, demand: DeviceDemand) -> Bools:
        """One flag per slot: whether the allocated devices of all claims are usable there."""
        mask: Bools = np.ones(self._nodes.size, dtype=np.bool_)
        for claim in demand.allocated:
            if claim.node_affinity is not None:
                mask &= matching_any(claim.node_affinity, self._nodes, slice(0, self._nodes.size))
        return mask

    def devices_fit(self, demand: DeviceDemand, slots: Slots) -> Bools:
        """One flag for each of these slots: whether it has enough devices for all claims without
        devices.
        """
        mask: Bools = np.ones(self._nodes.size, dtype=np.bool_)
        needed: dict[DeviceRequirement, int] = {}
        for claim, requests in demand.open:
            grant = self.grant((claim.namespace, claim.name))
            if grant is not None:
                only = np.zeros(self._nodes.size, dtype=np.bool_)
                slot = self._nodes.find(grant.node)
                if slot is not None:
                    only[slot] = True
                mask &= only
                continue
            for one in requests:
                needed[one.requirement] = needed.get(one.requirement, 0) + one.number
        for requirement, count in needed.items():
            mask &= self._free_devices(requirement) >= count
        mask = mask[slots]
        if any(self._inventory.overlap(*pair) for pair in combinations(needed, 2)):
            # Enough for each may be too few for all.
            every = np.arange(self._nodes.size)[slots]
            for position in np.flatnonzero(mask):
                mask[position] = self._assigned(needed.items(), int(every[position])) is not None
        return mask

    def shortage(self, demand: DeviceDemand, slot: int) -> str:
        """The first request of a claim for which the node has too few devices, as a phrase; "":
        each request alone could be served there.
        """
        for claim, requests in demand.open:
            if self.grant((claim.namespace, claim.name)) is not None:
                continue
            for one in requests:
                if self._free_devices(one.requirement)[slot] >= one.number:
                    continue
                matches = self._inventory.matches(one.requirement)
                name = self._nodes.names[slot]
                failure = matches.failed_on.get(name)
                text = f"request {one.request} of resourceclaim {claim.name}: "
                if failure is not None:
                    return f"{text}selector {quoted(failure.selector)} failed: {failure.cause}"
                return f"{text}too few free devices match {described(one.requirement)}"
        return ""

    # ------------------------------------------------------------------- taking

    def take(self, slot: int, shape: ShapeEntry, count: int = 1) -> None:
        """Count `count` pods or reservations of the shape on a node; choose missing devices."""
        demand = self.demand(shape)
        missing: list[Open] = []
        for claim, requests in demand.open:
            key = (claim.namespace, claim.name)
            before = self._grants.get(key)
            if before is None or before.claim_uid != claim.uid:
                if before is not None:
                    self._release(before.devices)
                pinned = self._pinned(claim, slot)
                if pinned is not None:
                    self._grant(key, pinned)
                else:
                    missing.append((claim, requests))
        # Together, so that no claim takes the only device of another one. A pod that another
        # scheduler bound may use more than there is: then each claim gets what there is for it.
        if missing and not self._choose(missing, slot):
            for one in missing if len(missing) > 1 else ():
                self._choose([one], slot)
        for key in claim_keys(shape.shape):
            self.uses[key] = self.uses.get(key, 0) + count
            self._moved(key)

    def give(self, shape: ShapeEntry, count: int = 1) -> None:
        for key in claim_keys(shape.shape):
            self.uses[key] -= count
            self._moved(key)
            if not self.uses[key]:
                del self.uses[key]
                if key not in self._kept:
                    self._drop_grant(key)

    def keep(self, shape: ShapeEntry) -> None:
        """Keep the devices of a bound pod that leaves its node, until CLUSTER shows that its claim
        has them or is gone.

        The binder allocates devices before it binds the pod. If CLUSTER shows the end of the pod
        first, the devices look free although the claim still has them.
        """
        self._kept.update(key for key in claim_keys(shape.shape) if self.grant(key) is not None)

    def pin(self, key: Key, pin: Grant) -> None:
        """Restore the devices of a decision in the log.

        They apply when the decision's reservation is made, or immediately if a pod on the node
        already uses the claim and the claim has no allocated devices yet. They replace devices that
        the planner chose for a pod that another scheduler bound.
        """
        self.unpin(key)
        slot = self._nodes.find(pin.node) if key in self.uses else None
        if slot is not None:
            self._drop(key)
        for _, device in pin.devices:
            other = self._chosen.get(device)
            if other is not None:
                self._drop(other)
        if slot is not None:
            self._grants[key] = pin
            self._moved(key)
        else:
            self._pins[key] = pin
        self._hold(pin.devices, key)

    def unpin(self, key: Key) -> None:
        """Drop the pin of a claim that no pod will use."""
        pin = self._pins.pop(key, None)
        if pin is not None:
            self._release(pin.devices)

    def contradiction(self) -> str:
        """The first inconsistency, such as a device that is chosen twice; "": none."""
        chosen = (*self._grants.values(), *self._pins.values())
        devices = sorted(device for one in chosen for _, device in one.devices)
        if devices != sorted(self._chosen):
            return f"devices {devices} are chosen, {sorted(self._chosen)} count as such"
        return ""

    # ----------------------------------------------------------------- internal

    def _moved(self, key: Key) -> None:
        self._turn += 1
        self._turns[key] = self._turn

    def _drop(self, key: Key) -> None:
        self._kept.discard(key)
        self._drop_grant(key)
        self.unpin(key)

    def _drop_grant(self, key: Key) -> None:
        grant = self._grants.pop(key, None)
        if grant is not None:
            self._release(grant.devices)
            self._moved(key)

    def _grant(self, key: Key, grant: Grant) -> None:
        self._grants[key] = grant
        self._hold(grant.devices, key)

    def _hold(self, devices: Iterable[tuple[str, Device]], key: Key) -> None:
        for _, device in devices:
            self._chosen[device] = key
            self._count(device, -1)

    def _release(self, devices: Iterable[tuple[str, Device]]) -> None:
        for _, device in devices:
            if self._chosen.pop(device, None) is not None:
                self._count(device, 1)

    def _count(self, device: Device, by: int) -> None:
        if not self._free or self._inventory.is_allocated(device):
            return
        slot = self._inventory.slot_of(device)
        for requirement, free in self._free.items():
            if (
                slot is not None
                and slot < len(free)
                and device in self._inventory.matches(requirement).devices
            ):
                free[slot] += by

    def _free_devices(self, requirement: DeviceRequirement) -> Ints:
        """Per slot, the number of suitable devices that are neither allocated nor chosen."""
        self._look()
        free = self._free.get(requirement)
        if free is None:
            if len(self._free) >= _COUNTED_MAX:
                self._free.clear()
            free = self._free[requirement] = self._inventory.free(requirement)
            matching = self._inventory.matches(requirement).devices
            for device in self._chosen:
                if device in matching and not self._inventory.is_allocated(device):
                    slot = self._inventory.slot_of(device)
                    if slot is not None:
                        free[slot] -= 1
        return free

    def _look(self) -> None:
        """Reset the counts after the tables or nodes changed, and drop choices whose claims have
        allocated devices by now.
        """
        stamp = self._inventory.stamp
        if stamp == self._stamp:
            return
        self._stamp = stamp
        self._free.clear()
        claims = self._tables.resource_claims.by_name
        for key, one in (self._pins | self._grants).items():
            claim = claims.get(key)
            if claim is not None and claim.allocated:
                self._grants.pop(key, None)
                self._pins.pop(key, None)
                self._release(one.devices)
        for key in [one for one in self._kept if self.grant(one) is None]:
            self._kept.remove(key)
            if key not in self.uses:
                self._drop_grant(key)

    def _pinned(self, claim: ResourceClaim, slot: int) -> Grant | None:
        key = claim.namespace, claim.name
        pin = self._pins.get(key)
        if pin is None:
            return None
        self.unpin(key)
        wanted = pin.claim_uid == claim.uid and pin.node == self._nodes.names[slot]
        return pin if wanted else None

    def _choose(self, claims: list[Open], slot: int) -> bool:
        """Choose devices for every request of these claims; False: the node has too few, nothing
        is chosen.
        """
        self._look()
        found = self._assigned(
            [(one.requirement, one.number) for _, requests in claims for one in requests], slot
        )
        if found is None:
            return False
        remaining = iter(found)
        for claim, requests in claims:
            devices = tuple((one.request, device) for one in requests for device in next(remaining))
            grant = Grant(self._nodes.names[slot], claim.uid, devices)
            self._grant((claim.namespace, claim.name), grant)
        return True

    def _assigned(
        self, needed: Iterable[tuple[DeviceRequirement, int]], slot: int
    ) -> list[list[Device]] | None:
        """Free devices of a node for each of these needs; None: it has too few."""
        return assign(
            [
                (number, self._inventory.available(requirement, slot, self._chosen))
                for requirement, number in needed
            ]
        )
