"""Packs some resources and spreads others. Optionally prefers nodes without scarce resources
(`sra`), and reserves cpu and memory next to free scarce devices (`proportional`).

Only the resources that a pod requests count in its score, as in Volcano. Annotations that choose a
strategy for a single pod are not supported.
"""

from typing import Final

import numpy as np

from services.gang_planner.core.constraints.filters import UNLIMITED, CapacityFilter, OneReason
from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.scoring import FULL, FlatScore, NodeScore, ScoredNodes
from services.gang_planner.core.scoring.requested_shares import RequestedShares
from services.gang_planner.core.state.columns import Ints, Slots
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.pod_shapes import ShapeEntry

_NAME: Final = "resource-strategy-fit"
_TYPES: Final = ("LeastAllocated", "MostAllocated")
#: Base units per unit of `resourceProportion`: a core, a GiB.
_UNITS: Final = {"cpu": 1000, "memory": 1 << 30}


class _Strategies:
    def __init__(self, strategies: dict[str, tuple[bool, int]]) -> None:
        #: Resource, or prefix followed by "*" -> (whether it is packed, weight).
        self._strategies = strategies

    def of(self, resource: str) -> tuple[bool, int] | None:
        exact = self._strategies.get(resource)
        if exact is not None:
            return exact
        for pattern, strategy in self._strategies.items():
            if pattern.endswith("*") and resource.startswith(pattern[:-1]):
                return strategy
        return None


class _Retention(FlatScore):
    """Prefers nodes that lack the scarce resources, weighted per resource."""

    name = f"{_NAME}/sra"

    def __init__(self, weights: dict[str, int]) -> None:
        self._weights = weights

    def score(self, nodes: ScoredNodes) -> Ints:
        points: Ints = np.zeros(len(nodes.slots), dtype=np.int64)
        table = nodes.node_capacity.nodes
        for resource, weight in self._weights.items():
            row = table.resources.row(resource)
            lacks = table.units(row, FULL).some[nodes.slots] == 0
            points += weight * lacks
        return points * FULL // max(sum(self._weights.values()), 1)


class _Proportion(OneReason):
    """Reserves cpu and memory per free scarce device; other pods cannot use that capacity."""

    name = f"{_NAME}/proportional"
    reason = "node(s) resource fit failed"

    def __init__(self, reserved: dict[str, dict[str, int]]) -> None:
        #: Scarce resource -> resource -> reserved amount per free unit, in base units.
        self._reserved = reserved

    def capacity(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Slots) -> Ints:
        node_capacity.fit_cells()
        size = node_capacity.nodes.size
        least: Ints = np.full(
            len(node_capacity.nodes.exists[:size][slots]), UNLIMITED, dtype=np.int64
        )
        rows = dict(shape.pairs)
        for scarce, needs in self._reserved.items():
            scarce_row = node_capacity.nodes.resources.find(scarce)
            if scarce_row is None or scarce_row in rows:
                continue
            idle = np.maximum(node_capacity.free.cells[scarce_row, :size][slots], 0)
            for resource, each in needs.items():
                row = node_capacity.nodes.resources.find(resource)
                if row is None or not rows.get(row):
                    continue
                left = (node_capacity.free.cells[row, :size][slots] - idle * each) // rows[row]
                least = np.where(idle > 0, np.minimum(least, left), least)
        return np.clip(least, 0, UNLIMITED)


def build(arguments: Arguments) -> Policy:
    """Arguments `resourceStrategyFitWeight` (10), `resources` {name: {type, weight}} with the type
    `LeastAllocated` (spread, the default) or `MostAllocated` (pack), `sra` and `proportional` (both
    with `enable` and `resources`).
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
        scores.append((weight, RequestedShares(_NAME, _Strategies(strategies).of)))
    sra = arguments.entry("sra")
    if sra.boolean("enable", default=False):
        weights = sra.entry("resourceWeight")
        scarce = {name: weights.integer(name, 1) for name in sra.names("resources")}
        scores.append((sra.integer("weight", 1), _Retention(scarce)))
    filters: list[CapacityFilter] = []
    proportional = arguments.entry("proportional")
    if proportional.boolean("enable", default=False):
        given = proportional.entry("resourceProportion")
        filters.append(
            _Proportion(
                {
                    name: {
                        resource: given.scaled(f"{name}.{resource}", unit)
                        for resource, unit in _UNITS.items()
                    }
                    for name in proportional.names("resources")
                }
            )
        )
    return Policy(name=_NAME, scores=tuple(scores), capacity_filters=tuple(filters))
