"""Packs some resources and spreads others, keeps those who do not need a scarce resource off its
nodes, and reserves what the scarce resource's users will need beside it.

Only the resources that a pod asks for count in its score, as in Volcano. Its annotations that
choose a strategy for one pod are not read.
"""

from collections import Counter
from typing import Final

import numpy as np

from services.gang_planner.core.configuring.arguments import Arguments
from services.gang_planner.core.configuring.policy import Policy
from services.gang_planner.core.filters import UNLIMITED, RoomFilter
from services.gang_planner.core.scores import FULL, Candidates, NodeScore
from services.gang_planner.core.tables.columns import Ints, Slots
from services.gang_planner.core.tables.ground import Ground
from services.gang_planner.core.tables.shapes import ShapeEntry

_TYPES: Final = ("LeastAllocated", "MostAllocated")
#: What one unit of `resourceProportion` stands for: a core, a GiB.
_UNITS: Final = {"cpu": 1000, "memory": 1 << 30}


class _Fit:
    """Weighted mean over the resources asked for: used share where packed, free share where
    spread.
    """

    name = "resource-strategy-fit"

    def __init__(self, strategies: dict[str, tuple[bool, int]]) -> None:
        #: Resource (or prefix that ends with "*") -> whether it is packed, weight.
        self._strategies = strategies

    def score(self, nodes: Candidates) -> Ints:
        """See `NodeScore`."""
        return self._mean(nodes, slope=False)

    def slope(self, nodes: Candidates) -> Ints | None:
        """See `NodeScore`."""
        return self._mean(nodes, slope=True)

    def _mean(self, nodes: Candidates, *, slope: bool) -> Ints:
        points: Ints = np.zeros(len(nodes.slots), dtype=np.int64)
        total = 0
        names = nodes.ground.nodes.resources.names
        for row, _ in nodes.shape.pairs:
            strategy = self._strategy(names[row])
            if strategy is None:
                continue
            packed, weight = strategy
            free, taken = nodes.shares(names[row])
            if slope:
                points += weight * (taken if packed else -taken)
            else:
                points += weight * (FULL - free if packed else free)
            total += weight
        return points // max(total, 1)

    def _strategy(self, resource: str) -> tuple[bool, int] | None:
        found = self._strategies.get(resource)
        if found is not None:
            return found
        for pattern, strategy in self._strategies.items():
            if pattern.endswith("*") and resource.startswith(pattern[:-1]):
                return strategy
        return None


class _Retention:
    """Nodes without scarce resources are preferred: those that have them stay free for others."""

    name = "resource-strategy-fit/sra"

    def __init__(self, weights: dict[str, int]) -> None:
        self._weights = weights

    def score(self, nodes: Candidates) -> Ints:
        """See `NodeScore`."""
        points: Ints = np.zeros(len(nodes.slots), dtype=np.int64)
        table = nodes.ground.nodes
        for resource, weight in self._weights.items():
            row = table.resources.row(resource)
            lacks = table.units(row, FULL).some[nodes.slots] == 0
            points += weight * lacks
        return points * FULL // max(sum(self._weights.values()), 1)

    def slope(self, nodes: Candidates) -> Ints | None:
        """See `NodeScore`."""
        del nodes
        return None


class _Proportion:
    """On a node with free devices, cpu and memory for their users stay free of everybody else."""

    name = "resource-strategy-fit/proportional"

    def __init__(self, reserved: dict[str, dict[str, int]]) -> None:
        #: Scarce resource -> what each unit of it will need.
        self._reserved = reserved

    def capacity(self, shape: ShapeEntry, ground: Ground, slots: Slots) -> Ints:
        """See `RoomFilter`."""
        ground.fit_cells()
        size = ground.nodes.size
        least: Ints = np.full(len(ground.nodes.exists[:size][slots]), UNLIMITED, dtype=np.int64)
        rows = dict(shape.pairs)
        for scarce, needs in self._reserved.items():
            scarce_row = ground.nodes.resources.find(scarce)
            if scarce_row is None or scarce_row in rows:
                continue
            idle = np.maximum(ground.free.cells[scarce_row, :size][slots], 0)
            for resource, each in needs.items():
                row = ground.nodes.resources.find(resource)
                if row is None or not rows.get(row):
                    continue
                left = (ground.free.cells[row, :size][slots] - idle * each) // rows[row]
                least = np.where(idle > 0, np.minimum(least, left), least)
        return np.clip(least, 0, UNLIMITED)

    def reasons(self, shape: ShapeEntry, ground: Ground, slots: Ints) -> Counter[str]:
        """See `RoomFilter`."""
        del shape, ground
        return Counter({"node(s) resource fit failed": len(slots)})


def build(arguments: Arguments) -> Policy:
    """Arguments `resourceStrategyFitWeight` (10), `resources` {name: {type, weight}}, `sra` and
    `proportional` (both with `enable` and `resources`).
    """
    weight = arguments.integer("resourceStrategyFitWeight", 10)
    strategies: dict[str, tuple[bool, int]] = {}
    for name, entry in arguments.entries("resources"):
        kind = entry.text("type") or _TYPES[0]
        if kind not in _TYPES:
            raise entry.wrong("type", f"must be {' or '.join(_TYPES)}, not {kind!r}")
        strategies[name] = (kind == _TYPES[1], entry.integer("weight", 1))
    scores: list[tuple[int, NodeScore]] = []
    if weight and strategies:
        scores.append((weight, _Fit(strategies)))
    sra = arguments.entry("sra")
    if sra.boolean("enable", default=False):
        weights = sra.entry("resourceWeight")
        scarce = {name: weights.integer(name, 1) for name in sra.names("resources")}
        scores.append((sra.integer("weight", 1), _Retention(scarce)))
    filters: list[RoomFilter] = []
    proportional = arguments.entry("proportional")
    if proportional.boolean("enable", default=False):
        given = proportional.entry("resourceProportion")
        filters.append(
            _Proportion(
                {
                    name: {one: given.scaled(f"{name}.{one}", unit) for one, unit in _UNITS.items()}
                    for name in proportional.names("resources")
                }
            )
        )
    return Policy(name="resource-strategy-fit", scores=tuple(scores), room_filters=tuple(filters))
