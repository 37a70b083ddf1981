"""Where a shape fits and how often: masks and counts, cached per shape and repaired where nodes
changed.

`Masks` holds the answers of the node filters, which do not depend on what is free; `Fits` adds the
room filters on one `Ground`. Both keep, per shape, the position in a change log up to which their
array is true, and the versions of the filters that have one.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from services.gang_planner.core.filters import (
    CLAIM_FILTERS,
    NodeFilter,
    RoomFilter,
    versioned,
    versions,
)
from services.gang_planner.core.tables.columns import Bools, Ints
from services.gang_planner.core.tables.ground import Ground
from services.gang_planner.core.tables.nodes import NodeTable
from services.gang_planner.core.tables.shapes import ShapeEntry

if TYPE_CHECKING:
    from services.gang_planner.core.pairwise.rules import PairRules, View

#: Shapes whose masks and fits are kept; all are dropped when there are more, which is rare and only
#: costs time.
_CACHED_MAX = 4096


class _Mask:
    __slots__ = ("passing", "position", "versions")

    def __init__(self, passing: Bools, position: int, versions: tuple[int, ...]) -> None:
        self.passing = passing
        self.position = position
        self.versions = versions


class Masks:
    """Which nodes the node filters let a shape use."""

    def __init__(self, nodes: NodeTable, filters: Sequence[NodeFilter]) -> None:
        self.nodes = nodes
        self.filters = tuple(filters)
        self._versioned = versioned(self.filters)
        self._cache: dict[bytes, _Mask] = {}

    def versions(self, shape: ShapeEntry) -> tuple[int, ...]:
        """What the shape's mask depends on beside the nodes."""
        return versions(self._versioned, shape) if self._versioned else ()

    def mask(self, shape: ShapeEntry) -> Bools:
        """One flag per slot; False for slots without a node. Not to be written to."""
        nodes = self.nodes
        current = self.versions(shape)
        mask = self._cache.get(shape.encoded)
        if mask is not None and mask.versions != current:
            mask = None
        if mask is not None and mask.position == nodes.changes.position:
            return mask.passing
        position = nodes.changes.position
        changed = None
        if mask is not None:
            changed = nodes.changes.since(mask.position, max(16, nodes.size // 4))
        if mask is None or changed is None:
            if len(self._cache) >= _CACHED_MAX:
                self._cache.clear()
            mask = _Mask(self._judge(shape, slice(0, nodes.size)), position, current)
            self._cache[shape.encoded] = mask
            return mask.passing
        passing = mask.passing
        if len(passing) < nodes.size:
            passing = np.concatenate([passing, np.zeros(nodes.size - len(passing), dtype=np.bool_)])
        passing[changed] = self._judge(shape, changed)
        mask.passing, mask.position = passing, position
        return passing

    def reasons(self, shape: ShapeEntry) -> tuple[Bools, Counter[str]]:
        """The mask, and why the other nodes refuse: each node counts for the first filter that
        refuses it.
        """
        nodes = self.nodes
        remaining = nodes.exists[: nodes.size].copy()
        found: Counter[str] = Counter()
        for one in self.filters:
            passing = one.passes(shape, nodes, slice(0, nodes.size))
            refused = np.flatnonzero(remaining & ~passing)
            if len(refused):
                found.update(one.reasons(shape, nodes, refused))
                remaining &= passing
        return remaining, found

    def _judge(self, shape: ShapeEntry, slots: slice | Ints) -> Bools:
        passing = self.nodes.exists[slots].copy()
        for one in self.filters:
            passing &= one.passes(shape, self.nodes, slots)
        return passing


class _Fit:
    __slots__ = ("counts", "masked_at", "position", "total", "versions")

    def __init__(
        self, counts: Ints, position: int, masked_at: int, versions: tuple[int, ...]
    ) -> None:
        self.counts = counts
        self.position = position
        self.masked_at = masked_at
        self.versions = versions
        self.total = -1


class Fits:
    """How many more pods of a shape each node of one ground holds.

    Of a shape that rules between pods concern it is as many as it can hold at most, whatever else
    is placed first; whether the next pod may be on a node now says `takes`.
    """

    def __init__(
        self,
        ground: Ground,
        masks: Masks,
        filters: Sequence[RoomFilter],
        pairs: "PairRules | None" = None,
    ) -> None:
        self.ground = ground
        self.masks = masks
        self.filters = tuple(filters)
        self.pairs = pairs
        self._versioned = versioned(self.filters)
        self._cache: dict[bytes, _Fit] = {}

    def counts(self, shape: ShapeEntry) -> Ints:
        """One count per slot, 0 where the shape may not or does not fit. Not to be written to."""
        counts = self._current(shape).counts
        ruled = self._ruled(shape)
        return counts if ruled is None else counts * ruled[0].ceiling(ruled[1])

    def total(self, shape: ShapeEntry) -> int:
        """How many pods of the shape fit, alone on the cluster as it is; of a shape that rules
        between pods concern, at most how many.
        """
        fit = self._current(shape)
        ruled = self._ruled(shape)
        if ruled is not None:
            rules, view = ruled
            return rules.total(view, fit.counts * rules.ceiling(view))
        if fit.total < 0:
            fit.total = int(fit.counts.sum())
        return fit.total

    def takes(self, shape: ShapeEntry, slot: int) -> bool:
        """Whether one pod of the shape may be on the node now."""
        if self._current(shape).counts[slot] <= 0:
            return False
        ruled = self._ruled(shape)
        return ruled is None or bool(ruled[0].allowed(ruled[1])[slot])

    def reasons(self, shape: ShapeEntry) -> Counter[str]:
        """Why nodes hold no pod of this shape: text -> number of nodes."""
        self.ground.fit_cells()
        remaining, found = self.masks.reasons(shape)
        for one in self.filters:
            if one.name in CLAIM_FILTERS and not shape.attached:
                continue
            slots = np.flatnonzero(remaining)
            full = slots[one.capacity(shape, self.ground, slots) == 0]
            if len(full):
                found.update(one.reasons(shape, self.ground, full))
                remaining[full] = False
        ruled = self._ruled(shape)
        if ruled is not None:
            found.update(ruled[0].reasons(ruled[1], remaining))
        return found

    def _ruled(self, shape: ShapeEntry) -> "tuple[PairRules, View] | None":
        """The rules between pods, and what they say of the shape; None: nothing."""
        if not shape.pairwise or self.pairs is None:
            return None
        view = self.pairs.view(shape)
        return (self.pairs, view) if view is not None else None

    def _current(self, shape: ShapeEntry) -> _Fit:
        self.ground.fit_cells()
        fit = self._cache.get(shape.encoded)
        position = self.ground.changes.position
        masked_at = self.masks.nodes.changes.position
        current = self.masks.versions(shape)
        if self._versioned:
            current += versions(self._versioned, shape)
        if shape.attached:
            current += self.ground.claims_version(shape)
        if fit is not None and fit.masked_at == masked_at and fit.versions == current:
            if fit.position == position:
                return fit
            changed = self.ground.changes.since(fit.position, max(16, len(fit.counts) // 4))
            if changed is not None:
                mask = self.masks.mask(shape)
                fit.counts[changed] = self._judge(shape, changed) * mask[changed]
                fit.position = position
                fit.total = -1
                return fit
        if len(self._cache) >= _CACHED_MAX:
            self._cache.clear()
        mask = self.masks.mask(shape)
        counts = self._judge(shape, slice(0, self.ground.nodes.size)) * mask
        fit = self._cache[shape.encoded] = _Fit(counts, position, masked_at, current)
        return fit

    def _judge(self, shape: ShapeEntry, slots: slice | Ints) -> Ints:
        least: Ints | None = None
        for one in self.filters:
            if one.name == "NodePorts" and not shape.shape.host_ports:
                continue
            if one.name in CLAIM_FILTERS and not shape.attached:
                continue
            capacity = one.capacity(shape, self.ground, slots)
            least = capacity if least is None else np.minimum(least, capacity)
        assert least is not None, "a ground is looked at through at least one room filter"
        return least
