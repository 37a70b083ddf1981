"""How many volumes of a driver a node still takes: CSINode's limits against the volumes that pods
there use, and those that are attached although no pod uses them any more.

A volume counts once per node, however many pods use it; a claim that has none yet, or one that is
not in the cluster state yet, counts under its own name for the driver that makes it, as in
kube-scheduler.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import numpy as np

from services.gang_planner.core.state.columns import Bools, Ints, grown_ints
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from services.gang_planner.core.state.storage.demand import Key, class_of, fully_bound

Handle: TypeAlias = tuple[str, str]
"""Driver, and what identifies the volume to it."""

_UNLIMITED: Final = 2**31
_NONE: Final[frozenset[Handle]] = frozenset()


class Attachments:
    """Volumes in use per node and driver, kept up to date node by node."""

    def __init__(self, tables: ReferenceObjects, nodes: NodeTable) -> None:
        self._tables = tables
        self._nodes = nodes
        #: Pods per claim, of each node that has any.
        self._users: dict[int, dict[Key, int]] = {}
        self._dirty: dict[int, None] = {}
        #: Distinct volumes by driver, one count per slot; only drivers that have a limit anywhere.
        self._counts: dict[str, Ints] = {}
        self._limits: dict[str, Ints] = {}
        self._seen: tuple[int, ...] = ()
        #: Volumes by slot that VolumeAttachments name, and the tables' state that they are of.
        self._attached: dict[int, frozenset[Handle]] = {}
        self._attached_at: tuple[int, ...] = ()
        self._moves = 0

    def copy(self) -> "Attachments":
        """An independent count of the same pods."""
        other = Attachments(self._tables, self._nodes)
        other._users = {slot: dict(keys) for slot, keys in self._users.items()}
        other._attached, other._attached_at = self._attached, self._attached_at
        return other

    @property
    def moves(self) -> int:
        """Moves when VolumeAttachments change what a node takes. Those of volumes that pods on the
        node use change nothing, and they are nearly all.
        """
        self._look_at_attachments()
        return self._moves

    def change(self, slot: int, key: Key, count: int) -> None:
        """So many more pods on the node use the claim; fewer, if negative."""
        keys = self._users.setdefault(slot, {})
        keys[key] = keys.get(key, 0) + count
        if not keys[key]:
            del keys[key]
            if not keys:
                del self._users[slot]
        self._dirty[slot] = None

    def full(self, keys: list[Key], uses: Mapping[Key, Iterable[int]]) -> Bools | None:
        """Slots of nodes that cannot take all of these claims' volumes any more; None: none is.

        Args:
            keys: the claims of one shape.
            uses: the slots in which claims are used already: what is there is not attached again.
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
        found: dict[int, set[Handle]] = {}
        for one in attachments.values():
            slot = nodes.find(one.node)
            volume = tables.volumes.by_name.get(("", one.volume))
            if slot is not None and volume is not None and volume.driver and one.driver:
                found.setdefault(slot, set()).add((one.driver, volume.handle))
        before, self._attached = (
            self._attached,
            {slot: frozenset(handles) for slot, handles in found.items()},
        )
        for slot in before.keys() | self._attached.keys():
            if before.get(slot) != self._attached.get(slot):
                self._dirty[slot] = None
                used = {self._handle(key) for key in self._users.get(slot, ())}
                changed = before.get(slot, _NONE) ^ self._attached.get(slot, _NONE)
                self._moves += not changed <= used

    def _look_at_limits(self) -> None:
        """Read the limits again when they, or what claims are bound to, changed."""
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
        for one in tables.csi_nodes.values():
            slot = nodes.find(one.name)
            for limit in one.drivers if slot is not None else ():
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
            self._counts[driver] = grown_ints(counts, self._nodes.size)
        for slot in self._dirty:
            handles = {self._handle(key) for key in self._users.get(slot, ())}
            handles |= self._attached.get(slot, _NONE)
            for driver, counts in self._counts.items():
                counts[slot] = sum(one is not None and one[0] == driver for one in handles)
        self._dirty.clear()

    def _handle(self, key: Key) -> Handle | None:
        """What the claim's volume is to its driver; None: it is none of a driver's."""
        claim = self._tables.claims.by_name.get(key)
        if claim is None:
            return None
        bound = fully_bound(claim)
        volume = self._tables.volumes.by_name.get(("", claim.volume_name)) if bound else None
        if volume is not None:
            return (volume.driver, volume.handle) if volume.driver else None
        found = class_of(claim, self._tables)
        return (found.provisioner, f"{key[0]}/{key[1]}") if found is not None else None
