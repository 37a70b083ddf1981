"""Which nodes pass the node filters for a shape, cached per shape and updated where nodes changed.

Masks do not depend on free capacity. Each is kept with the position in the nodes' change log at
which it was valid.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from services.gang_planner.core.constraints.filters import NodeFilter
from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry

#: Number of cached shapes. Beyond it the whole cache is dropped, which is rare and only costs time.
_CACHED_MAX = 4096


@dataclass(eq=False, slots=True)
class _Mask:
    passing: Bools
    position: int


class Masks:
    """Masks of the nodes that pass the node filters, per shape."""

    def __init__(self, nodes: NodeTable, filters: Sequence[NodeFilter]) -> None:
        self.nodes = nodes
        self.filters = tuple(filters)
        self._cache: dict[bytes, _Mask] = {}

    def mask(self, shape: ShapeEntry) -> Bools:
        """One flag per slot; False for slots without a node. Callers must not write to it."""
        nodes = self.nodes
        position = nodes.changes.position
        mask = self._cache.get(shape.encoded)
        if mask is not None:
            if mask.position == position:
                return mask.passing
            changed = nodes.changes.since(mask.position, max(16, nodes.size // 4))
            if changed is not None:
                added = nodes.size - len(mask.passing)
                if added > 0:
                    mask.passing = np.append(mask.passing, np.zeros(added, dtype=np.bool_))
                mask.passing[changed] = self._judge(shape, changed)
                mask.position = position
                return mask.passing
        if len(self._cache) >= _CACHED_MAX:
            self._cache.clear()
        passing = self._judge(shape, slice(0, nodes.size))
        self._cache[shape.encoded] = _Mask(passing, position)
        return passing

    def reasons(self, shape: ShapeEntry) -> tuple[Bools, Counter[str]]:
        """The mask, and the reasons of the other nodes: text -> number of nodes. Each node counts
        for the first filter that excludes it.
        """
        nodes = self.nodes
        remaining = nodes.exists[: nodes.size].copy()
        counts: Counter[str] = Counter()
        for node_filter in self.filters:
            passing = node_filter.passes(shape, nodes, slice(0, nodes.size))
            refused = np.flatnonzero(remaining & ~passing)
            if len(refused):
                counts.update(node_filter.reasons(shape, nodes, refused))
                remaining &= passing
        return remaining, counts

    def _judge(self, shape: ShapeEntry, slots: slice | Ints) -> Bools:
        passing = self.nodes.exists[slots].copy()
        for node_filter in self.filters:
            passing &= node_filter.passes(shape, self.nodes, slots)
        return passing
