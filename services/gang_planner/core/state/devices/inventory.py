"""The devices of all nodes, and which of them claims in the cluster have. One inventory serves all
node capacities of a cluster state.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from fractions import Fraction

import numpy as np

from services.gang_planner.core.state.columns import Bools, ChangeLog, add_amounts
from services.gang_planner.core.state.devices.device_table import DeviceEntry, DeviceTable, Reach
from services.gang_planner.core.state.devices.selection import (
    Device,
    DeviceRequirement,
    NamespaceCache,
    Selection,
    SelectorFailure,
)
from services.gang_planner.core.state.node_terms import matching_any
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.kube.quantities import QuantityError, exact
from shared.model.devices import ResourceClaim, SharedDevice

Shares = dict[str, Fraction]
"""Consumed capacities of a shareable device, by name."""


class Matches:
    """The devices that a requirement may get, whether free or not, in order."""

    def __init__(self) -> None:
        #: Node -> devices that only it can use.
        self.on: dict[str, list[DeviceEntry]] = {}
        #: All other devices.
        self.wide: list[DeviceEntry] = []
        #: Nodes with devices on which a selector failed, and the first failure; "": of a device
        #: that several nodes can use.
        self.failed_on: dict[str, SelectorFailure] = {}


class Inventory:
    """Devices of all nodes, cached until slices, claims or nodes change."""

    def __init__(self, tables: ReferenceObjects, nodes: NodeTable) -> None:
        self._tables = tables
        self._nodes = nodes
        self._slices_at: tuple[int, int] | None = None
        self._claims_at: int | None = None
        self._nodes_at: int | None = None
        self.table = DeviceTable(tables.resource_slices, tables.device_taint_rules)
        #: Devices that claims have alone, with the number of these claims.
        self.allocated: dict[Device, int] = {}
        #: By UID, the claims with devices that are counted in them.
        self._claims: dict[str, ResourceClaim] = {}
        #: Shareable devices, and what claims have of them: each by UID, and all together.
        self._parts: dict[Device, dict[str, Shares]] = {}
        self._shares: dict[Device, Shares] = {}
        self.selection = Selection()
        self._matches: NamespaceCache[DeviceRequirement, Matches] = NamespaceCache()
        self._reaches: dict[Reach, Bools] = {}
        #: Slots of nodes on which devices became free or allocated.
        self.changes = ChangeLog()
        #: Increases when anything changes that is not on one node.
        self.wide_changes = 0

    def refresh(self) -> None:
        """Read the tables, if they changed."""
        tables = self._tables
        slices_at = tables.resource_slices.changes, tables.device_taint_rules.changes
        if self._slices_at != slices_at:
            self._slices_at = slices_at
            self.table = DeviceTable(tables.resource_slices, tables.device_taint_rules, self.table)
            self._matches.clear()
            self._reaches.clear()
            self.selection.forget_all_but(self.table.entries)
            self.wide_changes += 1
        if self._nodes_at != self._nodes.changes.position:
            self._nodes_at = self._nodes.changes.position
            self._reaches.clear()
            self.wide_changes += 1
        claims = tables.resource_claims
        if self._claims_at != claims.changes:
            changed = None if self._claims_at is None else claims.changed_since(self._claims_at)
            self._claims_at = claims.changes
            self._read_claims(changed)

    def matches(self, requirement: DeviceRequirement) -> Matches:
        """The devices that the requirement may get."""
        return self._matches.find(
            requirement.namespace, requirement, lambda: self._match(requirement)
        )

    def within(self, reach: Reach) -> Bools:
        """One flag per slot: whether the node is within reach."""
        mask = self._reaches.get(reach)
        if mask is None:
            size = self._nodes.size
            if reach is None:
                mask = np.ones(size, dtype=np.bool_)
            else:
                mask = matching_any(reach, self._nodes, slice(0, size))
            self._reaches[reach] = mask
        return mask

    def shares(self, device: Device, without: AbstractSet[str] = frozenset()) -> Shares | None:
        """What claims have of a shareable device, except those with these UIDs; None: no claim has
        any of it.
        """
        parts = self._parts.get(device)
        if parts is None or not without or without.isdisjoint(parts):
            return self._shares.get(device)
        left = [part for uid, part in parts.items() if uid not in without]
        return _sum(left) if left else None

    def slot_of(self, device: Device) -> int | None:
        """The only node that is affected by a change of the device; None: there may be others."""
        entry = self.table.entries.get(device)
        return self._nodes.find(entry.node) if entry is not None and not entry.wide else None

    def _read_claims(self, changed: Sequence[ResourceClaim] | None) -> None:
        """Read the claims that changed; None: all."""
        claims = self._tables.resource_claims
        uids = [*self._claims, *claims] if changed is None else [claim.uid for claim in changed]
        touched: dict[Device, None] = {}
        for uid in dict.fromkeys(uids):
            before, now = self._claims.pop(uid, None), claims.get(uid)
            if now is not None and _has_devices(now):
                self._claims[uid] = now
            if _allocation(before) == _allocation(now):
                continue
            for claim, by in ((before, -1), (now, 1)):
                if claim is not None:
                    self._count(claim, by)
                    touched.update(dict.fromkeys(devices_of(claim)))
        for device in touched:
            slot = self.slot_of(device)
            if slot is not None:
                self.changes.add(slot)
            elif device in self.table.entries:
                self.wide_changes += 1

    def _count(self, claim: ResourceClaim, by: int) -> None:
        """Add the devices of a claim, or remove them."""
        for device in claim.allocated:
            # Two claims have one device, if another scheduler made that mistake.
            claims = self.allocated.get(device, 0) + by
            if claims:
                self.allocated[device] = claims
            else:
                del self.allocated[device]
        for share in claim.shares:
            device = share.driver, share.pool, share.device
            parts = self._parts.setdefault(device, {})
            if by > 0:
                add_amounts(parts.setdefault(claim.uid, {}), _amounts(share))
            else:
                parts.pop(claim.uid, None)
            if parts:
                self._shares[device] = _sum(parts.values())
            else:
                del self._parts[device]
                self._shares.pop(device, None)

    def _match(self, requirement: DeviceRequirement) -> Matches:
        matches = Matches()
        for entry in self.table.ordered:
            outcome = self.selection.matches(requirement, entry.id, entry.details)
            if isinstance(outcome, SelectorFailure):
                matches.failed_on.setdefault(entry.node, outcome)
            elif outcome and entry.node:
                matches.on.setdefault(entry.node, []).append(entry)
            elif outcome:
                matches.wide.append(entry)
        return matches


def _has_devices(claim: ResourceClaim) -> bool:
    return bool(claim.allocated or claim.shares)


def _allocation(claim: ResourceClaim | None) -> object:
    return None if claim is None or not _has_devices(claim) else (claim.allocated, claim.shares)


def devices_of(claim: ResourceClaim) -> list[Device]:
    """The devices that a claim has alone or in part."""
    return [*claim.allocated, *((share.driver, share.pool, share.device) for share in claim.shares)]


def _amounts(share: SharedDevice) -> Iterator[tuple[str, Fraction]]:
    for name, text in share.capacity:
        try:
            yield name, exact(text)
        except QuantityError:
            # The API server has checked it.
            continue


def _sum(parts: Iterable[Shares]) -> Shares:
    total: Shares = {}
    for part in parts:
        add_amounts(total, part.items())
    return total
