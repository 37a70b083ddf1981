"""The unbound volumes that satisfy a claim and the nodes on which they are usable, and the nodes
where a volume can be provisioned.

The rules are those of kube-scheduler's volume binder: class, size, access modes, mode and selector
match, the volume is Available and not being deleted, and its node affinity matches. If a volume
names the claim (`claimRef`), it is the only candidate. The smallest volume is chosen; names break
ties.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.node_terms import SlotsByTerms, matching_any, selected
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from services.gang_planner.core.state.storage.demand import class_of
from shared.model.reference_objects import Claim, StorageCapacity, StorageClass, Volume
from shared.model.terms import selects

_AVAILABLE = "Available"
_NO_PROVISIONER: Final = frozenset({"", "kubernetes.io/no-provisioner"})
#: Number of kinds of claims with cached candidates.
_CANDIDATES_MAX = 1024


class VolumeCandidates:
    """Volumes for one kind of claim, smallest first, and the slots where they are usable."""

    def __init__(self, volumes: list[Volume], nodes: NodeTable, terms: SlotsByTerms) -> None:
        self.volumes = volumes
        self._places = {volume.uid: place for place, volume in enumerate(volumes)}
        every = np.arange(nodes.size, dtype=np.int64)
        slots = [
            every if volume.node_affinity is None else terms.slots(volume.node_affinity)
            for volume in volumes
        ]
        lengths = [len(part) for part in slots]
        self._slots: Ints = np.concatenate(slots) if slots else np.zeros(0, dtype=np.int64)
        #: Index of the volume of each item of `_slots`.
        self._owners: Ints = np.repeat(np.arange(len(volumes), dtype=np.int64), lengths)
        self._size = nodes.size

    def place(self, uid: str) -> int | None:
        """Index of a volume in `volumes`; None: it is not a candidate."""
        return self._places.get(uid)

    def without(self, taken: Iterable[str]) -> Bools:
        """One flag per volume: False if its UID is in `taken`."""
        free: Bools = np.ones(len(self.volumes), dtype=np.bool_)
        for uid in taken:
            place = self._places.get(uid)
            if place is not None:
                free[place] = False
        return free

    def mask(self, free: Bools) -> Bools:
        """One flag per slot: whether a free volume is usable there. `free`: a flag per volume."""
        mask: Bools = np.zeros(self._size, dtype=np.bool_)
        mask[self._slots[free[self._owners]]] = True
        return mask

    def smallest(self, slot: int, free: Bools) -> Volume | None:
        """The smallest free volume that is usable in a slot; None: there is none."""
        owners = self._owners[self._slots == slot]
        owners = owners[free[owners]]
        return self.volumes[int(owners.min())] if len(owners) else None


class AvailableVolumes:
    """All unbound volumes; results are cached until volumes or nodes change."""

    def __init__(self, tables: ReferenceObjects, nodes: NodeTable) -> None:
        self._tables = tables
        self._nodes = nodes
        self.terms = SlotsByTerms(nodes)
        self._volumes_at: int | None = None
        self._nodes_at: int | None = None
        self._free: dict[str, list[Volume]] = {}
        self._prebound: dict[tuple[str, str], Volume] = {}
        self._candidates: dict[tuple[object, ...], VolumeCandidates] = {}

    def candidates(self, claim: Claim) -> VolumeCandidates:
        self._refresh()
        prebound = self._prebound.get((claim.namespace, claim.name))
        if prebound is not None and _is_for(prebound, claim):
            return VolumeCandidates([prebound], self._nodes, self.terms)
        kind = (
            claim.storage_class,
            claim.request_bytes,
            claim.mode,
            claim.access_modes,
            claim.selector,
        )
        candidates = self._candidates.get(kind)
        if candidates is None:
            if len(self._candidates) >= _CANDIDATES_MAX:
                self._candidates.clear()
            listed = self._free.get(claim.storage_class or "", ())
            serving = [volume for volume in listed if _serves(volume, claim)]
            candidates = self._candidates[kind] = VolumeCandidates(serving, self._nodes, self.terms)
        return candidates

    def usable(self, volume: Volume) -> Bools:
        """One flag per slot: whether the volume is usable there."""
        self._refresh()
        if volume.node_affinity is None:
            return np.ones(self._nodes.size, dtype=np.bool_)
        mask: Bools = np.zeros(self._nodes.size, dtype=np.bool_)
        mask[self.terms.slots(volume.node_affinity)] = True
        return mask

    def _refresh(self) -> None:
        volumes = self._tables.volumes
        if self._nodes_at != self._nodes.changes.position:
            self._nodes_at = self._nodes.changes.position
            self._candidates.clear()
        if self._volumes_at == volumes.changes:
            return
        self._volumes_at = volumes.changes
        self._candidates.clear()
        self._prebound.clear()
        self._free = {}
        whole = (volume for volume in volumes.values() if volume.too_large is None)
        for volume in sorted(whole, key=_smallest_first):
            if volume.claim_name:
                key = volume.claim_namespace, volume.claim_name
                self._prebound.setdefault(key, volume)
            elif volume.phase == _AVAILABLE and not volume.deleting:
                self._free.setdefault(volume.storage_class, []).append(volume)


def _smallest_first(volume: Volume) -> tuple[int, str]:
    return volume.capacity_bytes, volume.name


def _is_for(volume: Volume, claim: Claim) -> bool:
    """Whether a volume that names the claim can be bound to it."""
    return (
        volume.claim_uid in {"", claim.uid}
        and not volume.deleting
        and volume.storage_class == claim.storage_class
        and volume.mode == claim.mode
        and volume.capacity_bytes >= claim.request_bytes
    )


def _serves(volume: Volume, claim: Claim) -> bool:
    return (
        volume.capacity_bytes >= claim.request_bytes
        and volume.mode == claim.mode
        and set(claim.access_modes) <= set(volume.access_modes)
        and (claim.selector is None or selects(claim.selector, dict(volume.labels)))
    )


def may_provision(claim: Claim, tables: ReferenceObjects, nodes: NodeTable) -> Bools:
    """One flag per slot: whether the claim's class provisions volumes for the node."""
    storage_class = class_of(claim, tables)
    if storage_class is None or storage_class.provisioner in _NO_PROVISIONER:
        return np.zeros(nodes.size, dtype=np.bool_)
    if not storage_class.allowed_topologies:
        return np.ones(nodes.size, dtype=np.bool_)
    return matching_any(storage_class.allowed_topologies, nodes, slice(0, nodes.size))


def enough_capacity(claim: Claim, tables: ReferenceObjects, nodes: NodeTable) -> Bools:
    """One flag per slot: whether the driver publishes enough capacity for the claim, or none."""
    storage_class = class_of(claim, tables)
    driver = (
        tables.csi_drivers.by_name.get(("", storage_class.provisioner))
        if storage_class is not None
        else None
    )
    if storage_class is None or driver is None or not driver.storage_capacity:
        return np.ones(nodes.size, dtype=np.bool_)
    mask: Bools = np.zeros(nodes.size, dtype=np.bool_)
    for capacity in tables.storage_capacities.values():
        if _offers(capacity, storage_class, claim.request_bytes):
            mask |= selected(capacity.node_topology, nodes)
    return mask


def _offers(capacity: StorageCapacity, storage_class: StorageClass, request_bytes: int) -> bool:
    # If the driver reports the largest possible volume, it is a tighter limit than the capacity.
    most = capacity.capacity_bytes if capacity.volume_bytes_max < 0 else capacity.volume_bytes_max
    return capacity.storage_class == storage_class.name and most >= request_bytes
