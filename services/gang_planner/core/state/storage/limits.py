"""CSINode's limits per driver on the volumes of a node, counted of those that its pods use and of
those that are still attached.

A volume counts once per node, however many pods use it. A claim without a volume, or whose volume
is not in the cluster state yet, counts under its own name for its provisioner, as in
kube-scheduler.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import numpy as np

from services.gang_planner.core.state.claim_ledger import Key
from services.gang_planner.core.state.columns import Bools, Ints, grown
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from services.gang_planner.core.state.storage.demand import class_of, fully_bound

Handle: TypeAlias = tuple[str, str]
"""Driver, and the volume's identifier in it."""

_UNLIMITED: Final = 2**31
_NONE: Final[frozenset[Handle]] = frozenset()


class Attachments:
    """Number of used volumes per node and driver, updated per changed node."""

    def __init__(self, tables: ReferenceObjects, nodes: NodeTable) -> None:
        self._tables = tables
        self._nodes = nodes
        #: Slot -> claim -> number of pods.
        self._users: dict[int, dict[Key, int]] = {}
        self._dirty: dict[int, None] = {}
        #: Driver -> number of distinct volumes per slot; only for drivers with a limit.
        self._counts: dict[str, Ints] = {}
        self._limits: dict[str, Ints] = {}
        self._seen: tuple[int, ...] = ()
        #: Slot -> volumes in VolumeAttachments, and the versions of their input.
        self._attached: dict[int, frozenset[Handle]] = {}
        self._attached_at: tuple[int, ...] = ()
        self._moves = 0

    def copy(self) -> "Attachments":
        other = Attachments(self._tables, self._nodes)
        other._users = {slot: dict(keys) for slot, keys in self._users.items()}
        other._attached, other._attached_at = self._attached, self._attached_at
        return other

    @property
    def moves(self) -> int:
        """Increases when VolumeAttachments change the number of volumes on a node. Most do not,
        because pods on the node already use their volumes.
        """
        self._look_at_attachments()
        return self._moves

    def change(self, slot: int, keys: Iterable[Key], count: int) -> None:
        """Add `count` pods that use these claims to the node; negative: remove them."""
        users = self._users.setdefault(slot, {})
        for key in keys:
            users[key] = users.get(key, 0) + count
            if not users[key]:
                del users[key]
        if not users:
            del self._users[slot]
        self._dirty[slot] = None

    def full(self, keys: list[Key], uses: Mapping[Key, Iterable[int]]) -> Bools | None:
        """One flag per slot: whether the claims' volumes would exceed a limit; None: none is full.
        `uses`: claim -> slots where it is in use, so that its volume is attached already.
        """
        self._look_at_attachments()
        self._look_at_limits()
        wanted = {key: handle for key in keys if (handle := self._handle(key)) is not None}
        drivers = sorted({driver for driver, _ in wanted.values()} & self._limits.keys())
        if not drivers:
            return None
        self._count()
        full: Bools = np.zeros(self._nodes.size, dtype=np.bool_)
        for driver in drivers:
            mine = {key for key, handle in wanted.items() if handle[0] == driver}
            new = np.full(self._nodes.size, len(mine), dtype=np.int64)
            for key in mine:
                for slot in uses.get(key, ()):
                    new[slot] -= 1
            counts = self._counts[driver][: self._nodes.size]
            full |= (new > 0) & (counts + new > self._limits[driver])
        return full

    def _look_at_attachments(self) -> None:
        tables, nodes = self._tables, self._nodes
        attachments = tables.volume_attachments
        if not attachments.by_name and not self._attached:
            return
        at = (attachments.changes, tables.volumes.changes, nodes.changes.position)
        if at == self._attached_at:
            return
        self._attached_at = at
        handles_on: dict[int, set[Handle]] = {}
        for attachment in attachments.values():
            slot = nodes.find(attachment.node)
            volume = tables.volumes.by_name.get(("", attachment.volume))
            if slot is not None and volume is not None and volume.driver and attachment.driver:
                handles_on.setdefault(slot, set()).add((attachment.driver, volume.handle))
        before, self._attached = (
            self._attached,
            {slot: frozenset(handles) for slot, handles in handles_on.items()},
        )
        for slot in before.keys() | self._attached.keys():
            if before.get(slot) != self._attached.get(slot):
                self._dirty[slot] = None
                used = {self._handle(key) for key in self._users.get(slot, ())}
                changed = before.get(slot, _NONE) ^ self._attached.get(slot, _NONE)
                self._moves += not changed <= used

    def _look_at_limits(self) -> None:
        """Read the limits again after CSINodes, nodes, claims, volumes or classes changed."""
        tables, nodes = self._tables, self._nodes
        seen = (
            tables.csi_nodes.changes,
            nodes.changes.position,
            tables.claims.changes,
            tables.volumes.changes,
            tables.storage_classes.changes,
        )
        if seen == self._seen:
            return
        self._seen = seen
        self._limits.clear()
        self._counts.clear()
        self._dirty.update(dict.fromkeys(self._users))
        self._dirty.update(dict.fromkeys(self._attached))
        for csi_node in tables.csi_nodes.values():
            slot = nodes.find(csi_node.name)
            for limit in csi_node.drivers if slot is not None else ():
                if limit.volumes_max < 0:
                    continue
                limits = self._limits.get(limit.driver)
                if limits is None:
                    limits = np.full(nodes.size, _UNLIMITED, dtype=np.int64)
                    self._limits[limit.driver] = limits
                limits[slot] = limit.volumes_max

    def _count(self) -> None:
        for driver in self._limits:
            counts = self._counts.get(driver, np.zeros(0, dtype=np.int64))
            self._counts[driver] = grown(counts, self._nodes.size)
        for slot in self._dirty:
            handles = {self._handle(key) for key in self._users.get(slot, ())}
            handles |= self._attached.get(slot, _NONE)
            for driver, counts in self._counts.items():
                counts[slot] = sum(handle is not None and handle[0] == driver for handle in handles)
        self._dirty.clear()

    def _handle(self, key: Key) -> Handle | None:
        """Driver and identifier of the claim's volume; None: no CSI driver is involved."""
        claim = self._tables.claims.by_name.get(key)
        if claim is None:
            return None
        bound = fully_bound(claim)
        volume = self._tables.volumes.by_name.get(("", claim.volume_name)) if bound else None
        if volume is not None:
            return (volume.driver, volume.handle) if volume.driver else None
        storage_class = class_of(claim, self._tables)
        return (
            (storage_class.provisioner, f"{key[0]}/{key[1]}") if storage_class is not None else None
        )
