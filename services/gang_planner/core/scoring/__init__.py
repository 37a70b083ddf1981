"""One file per score of nodes that fit, each with a `RULE`. Points are kube-scheduler's 0 to 100,
in thousandths.

A score is linear in the number of pods that a decision adds to a node: `score` returns the points
of the first pod, `slope` the change per further pod. A whole gang is therefore spread or packed by
array arithmetic (`placement.members`), with the result of a pod-by-pod loop.
"""

import importlib
import pkgutil
from functools import cache
from typing import Final, NamedTuple, Protocol

import numpy as np

from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.pod_shapes import ShapeEntry

#: 100 points.
FULL: Final = 100_000

#: Assumed requests of pods without a request in scores, as in kube-scheduler.
_NONZERO: Final = {"cpu": 100, "memory": 200 * 1024 * 1024}


class ScoredNodes:
    """A shape and its candidate nodes; shares are computed once for all scores."""

    def __init__(self, shape: ShapeEntry, node_capacity: NodeCapacity, slots: Ints) -> None:
        self.shape = shape
        self.node_capacity = node_capacity
        self.slots = slots
        self._shares: dict[str, tuple[Ints, Ints]] = {}

    def shares(self, resource: str) -> tuple[Ints, Ints]:
        """Per slot, the free share of a resource after one pod, and the share that one pod takes;
        `FULL` is the whole. The free share of a node without the resource is 0.
        """
        shares = self._shares.get(resource)
        if shares is None:
            shares = self._shares[resource] = self._work_out(resource)
        return shares

    def _work_out(self, resource: str) -> tuple[Ints, Ints]:
        nodes = self.node_capacity.nodes
        row = nodes.resources.row(resource)
        self.node_capacity.fit_cells()
        units = nodes.units(row, FULL)
        # Pods without a request count with kube-scheduler's assumed one.
        request = self.shape.by_row.get(row, _NONZERO.get(resource, 0))
        unit, pieces = units.unit[self.slots], units.pieces[self.slots]
        after = (self.node_capacity.free.cells[row][self.slots] - request) // unit
        free: Ints = after * FULL // pieces
        np.clip(free, 0, FULL, out=free)
        free *= units.some[self.slots]
        return free, units.taken(request)[self.slots]


class NodeScore(Protocol):
    """A score of nodes."""

    #: Its name in kube-scheduler or Volcano.
    name: str

    def score(self, nodes: ScoredNodes) -> Ints:
        """Points of the first pod on each candidate node, 0 to `FULL`."""
        ...

    def slope(self, nodes: ScoredNodes, /) -> Ints | None:
        """Change of points per further pod on each candidate node; None: no change."""
        ...


class FlatScore:
    """A part of scores that pods on a node do not change."""

    def slope(self, _nodes: ScoredNodes, /) -> None:
        """As in `NodeScore`."""


class ClaimScore(FlatScore):
    """A score that depends on the pod's claims, and on all candidates together. It is not cached,
    and computed for shapes with claims only.
    """


class ScoringRule(NamedTuple):
    """A score as its file registers it: the module constant `RULE`."""

    #: The argument of the policy `nodeorder` that sets its weight.
    weight_argument: str
    #: Its weight where the argument is absent; 0 leaves the score out.
    default_weight: int
    score: NodeScore


@cache
def scoring_rules() -> tuple[ScoringRule, ...]:
    """The rules of all files in this package, in the order of the files' names."""
    modules = sorted(entry.name for entry in pkgutil.iter_modules(__path__))
    loaded = (importlib.import_module(f"{__name__}.{name}") for name in modules)
    return tuple(module.RULE for module in loaded if hasattr(module, "RULE"))
