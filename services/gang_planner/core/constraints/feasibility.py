"""How many pods of a shape fit on each node, cached per shape and updated where capacity changed.

`Fits` combines the `Masks` of the node filters with the capacity filters on one `NodeCapacity`. Per
shape it keeps the position in the change log at which the counts were valid, and the versions of
the shape's claims.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from services.gang_planner.core.constraints.filters import (
    CLAIM_FILTERS,
    CapacityFilter,
)
from services.gang_planner.core.constraints.inter_pod.rules import PairRules, PairView
from services.gang_planner.core.constraints.masks import Masks
from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from shared.model.invariants import required

#: Number of cached shapes. Beyond it the whole cache is dropped, which is rare and only costs time.
_CACHED_MAX = 4096
#: What it costs to count a shape once, in node columns.
_COUNT: Final = 2_000
#: The same of a shape with claims: each of its filters works its answer out again (a millisecond).
_COUNT_CLAIMS: Final = 40_000
#: The same of each inter-pod rule that applies to it, beyond the number that real shapes have.
_COUNT_RULE: Final = 200
_RULES_FREE: Final = 64


@dataclass(eq=False, slots=True)
class _Fit:
    counts: Ints
    position: int
    masked_at: int
    claims: tuple[object, ...]
    total: int | None = None


class Fits:
    """How many more pods of a shape each node of one node capacity table holds.

    For a shape with inter-pod rules, counts are upper bounds that hold whatever is placed first;
    `takes` returns whether a node accepts the next pod now.
    """

    def __init__(
        self,
        node_capacity: NodeCapacity,
        masks: Masks,
        filters: Sequence[CapacityFilter],
        pairs: PairRules | None = None,
    ) -> None:
        self.node_capacity = node_capacity
        self.masks = masks
        self.filters = tuple(filters)
        self.pairs = pairs
        self._cache: dict[Hashable, _Fit] = {}

    def cost(self, shape: ShapeEntry) -> int:
        """What it costs to count a shape, beside the nodes, in node columns."""
        if shape.alike:
            cost = _COUNT * len(shape.alike)
        else:
            cost = _COUNT_CLAIMS if shape.attached else _COUNT
        ruled = self._ruled(shape)
        rules = 0 if ruled is None else ruled[0].count(ruled[1])
        return cost + _COUNT_RULE * max(rules - _RULES_FREE, 0)

    def counts(self, shape: ShapeEntry) -> Ints:
        """One count per slot; 0 where a filter excludes the shape. Callers must not write to it."""
        counts = self._current(shape).counts
        ruled = self._ruled(shape)
        return counts if ruled is None else counts * ruled[0].ceiling(ruled[1])

    def total(self, shape: ShapeEntry) -> int:
        """How many pods of the shape fit on all nodes; an upper bound for a shape with inter-pod
        rules.
        """
        fit = self._current(shape)
        ruled = self._ruled(shape)
        if ruled is not None:
            rules, view = ruled
            return rules.total(view, fit.counts * rules.ceiling(view))
        if fit.total is None:
            fit.total = int(fit.counts.sum())
        return fit.total

    def takes(self, shape: ShapeEntry, slot: int) -> bool:
        """Whether the node accepts one pod of the shape now."""
        if self._current(shape).counts[slot] <= 0:
            return False
        ruled = self._ruled(shape)
        return ruled is None or bool(ruled[0].allowed(ruled[1])[slot])

    def reasons(self, shape: ShapeEntry) -> Counter[str]:
        """Why nodes hold no pod of the shape: reason text -> number of nodes."""
        self.node_capacity.fit_cells()
        remaining, counts = self.masks.reasons(shape)
        for capacity_filter in self.filters:
            if capacity_filter.name in CLAIM_FILTERS and not shape.attached:
                continue
            slots = np.flatnonzero(remaining)
            full = slots[capacity_filter.capacity(shape, self.node_capacity, slots) == 0]
            if len(full):
                counts.update(capacity_filter.reasons(shape, self.node_capacity, full))
                remaining[full] = False
        ruled = self._ruled(shape)
        if ruled is not None:
            counts.update(ruled[0].reasons(ruled[1], remaining))
        return counts

    def _ruled(self, shape: ShapeEntry) -> tuple[PairRules, PairView] | None:
        """The inter-pod rules and the shape's view of them; None if none applies."""
        if not shape.pairwise or self.pairs is None:
            return None
        view = self.pairs.view(shape)
        return (self.pairs, view) if view is not None else None

    def _current(self, shape: ShapeEntry) -> _Fit:
        self.node_capacity.fit_cells()
        fit = self._cache.get(shape.counted)
        masked_at = self.masks.nodes.changes.position
        claims = self.node_capacity.claims_version(shape) if shape.attached else ()
        # Last, because reading claims adds the nodes whose devices have changed.
        position = self.node_capacity.changes.position
        if fit is not None and fit.masked_at == masked_at and fit.claims == claims:
            if fit.position == position:
                return fit
            changed = self.node_capacity.changes.since(fit.position, max(16, len(fit.counts) // 4))
            if changed is not None:
                mask = self.masks.mask(shape)
                fit.counts[changed] = self._judge(shape, changed) * mask[changed]
                fit.position = position
                fit.total = None
                return fit
        if len(self._cache) >= _CACHED_MAX:
            self._cache.clear()
        mask = self.masks.mask(shape)
        counts = self._judge(shape, slice(0, self.node_capacity.nodes.size)) * mask
        fit = self._cache[shape.counted] = _Fit(counts, position, masked_at, claims)
        return fit

    def _judge(self, shape: ShapeEntry, slots: slice | Ints) -> Ints:
        least: Ints | None = None
        for capacity_filter in self.filters:
            if capacity_filter.name == "NodePorts" and not shape.shape.host_ports:
                continue
            if capacity_filter.name in CLAIM_FILTERS and not shape.attached:
                continue
            capacity = capacity_filter.capacity(shape, self.node_capacity, slots)
            least = capacity if least is None else np.minimum(least, capacity)
        return required(least, "node filters", "none of them counts free capacity")
