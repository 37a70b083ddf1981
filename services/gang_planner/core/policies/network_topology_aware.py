"""Prefers nodes whose HyperNodes have the highest utilization, so that whole domains stay free for
gangs that need them.

The topology limits of a gang do not depend on this policy: the domain search enforces them in every
configuration.
"""

from typing import Final

import numpy as np

from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.policy import Place, Policy
from services.gang_planner.core.scoring import FULL
from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.topology.levels import Level
from shared.model.objects import NetworkTopology

_PREFIX: Final = "hypernode.binpack"
#: `fading` is kept in thousandths.
_WHOLE: Final = 1000
_EVERY_TIER: Final = NetworkTopology(mode="soft")


class _Fullness:
    """Weighted mean over tiers and resources of the utilization of a node's domains."""

    def __init__(self, weight: int, weights: dict[str, int], fading: int, *, plain: bool) -> None:
        self._weight = weight
        self._weights = weights
        self._fading = fading
        #: Also score pods whose gangs have no topology.
        self._plain = plain

    def points(self, place: Place) -> tuple[Ints | None, int] | None:
        if not self._plain and place.structure.topology is None:
            return None
        nodes = place.node_capacity.nodes
        levels = place.node_capacity.topology.levels(_EVERY_TIER).levels
        total: Ints = np.zeros(nodes.size, dtype=np.int64)
        factor, factors = _WHOLE, 0
        for level in levels:
            total += self._used(place, level) * factor
            factors += factor
            factor = factor * self._fading // _WHOLE
        return (total // factors * self._weight, 0) if factors else None

    def _used(self, place: Place, level: Level) -> Ints:
        """Utilization of each slot's domain by the resources that the pod requests, 0 to `FULL`."""
        nodes = place.node_capacity.nodes
        place.node_capacity.fit_cells()
        nodes.allocatable.ensure(*place.node_capacity.free.cells.shape)
        shares: Ints = np.zeros(len(level.names), dtype=np.int64)
        total = 0
        for row, _ in place.shape.pairs:
            weight = self._weights.get(nodes.resources.names[row], 0)
            if not weight:
                continue
            whole = level.sums(nodes.allocatable.cells[row, : nodes.size])
            free = level.sums(place.node_capacity.free.cells[row, : nodes.size])
            unit = np.maximum(whole // FULL, 1)
            shares += weight * np.clip(
                (whole - free) // unit * FULL // np.maximum(whole // unit, 1), 0, FULL
            )
            total += weight
        inside = level.domain_of >= 0
        used: Ints = np.zeros(nodes.size, dtype=np.int64)
        used[inside] = (shares // max(total, 1))[level.domain_of[inside]]
        return used


def build(arguments: Arguments) -> Policy:
    """Arguments `weight` (1), `hypernode.binpack.cpu` and `.memory` (1 each), `.resources` (names
    of further resources), `.resources.<name>` (1), `.normal-pod.enable` (true: also score pods of
    gangs without a topology), `.normal-pod.fading` (0.8: factor from one tier to the next).
    """
    weight = arguments.integer("weight", 1)
    weights = arguments.resource_weights(_PREFIX)
    plain = arguments.boolean(f"{_PREFIX}.normal-pod.enable", default=True)
    fading = arguments.scaled(f"{_PREFIX}.normal-pod.fading", _WHOLE)
    fullness = _Fullness(weight, weights, fading or _WHOLE * 4 // 5, plain=plain)
    return Policy(name="network-topology-aware", place_points=fullness.points if weight else None)
