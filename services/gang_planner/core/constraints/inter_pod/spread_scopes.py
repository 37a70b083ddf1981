"""The nodes on which a spread constraint counts pods: nodes with all topology keys of the pod's
constraints that also match its node affinity (`nodeAffinityPolicy: Honor`) and tolerations
(`nodeTaintsPolicy: Honor`).
"""

from dataclasses import dataclass

import numpy as np

from services.gang_planner.core.constraints.filters import node_affinity, taint_toleration
from services.gang_planner.core.constraints.masks import Masks
from services.gang_planner.core.state.columns import Bools
from services.gang_planner.core.state.inter_pod.counts import Scope
from services.gang_planner.core.state.inter_pod.domains import DomainTable
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from shared.model.terms import SpreadConstraint


@dataclass(eq=False, slots=True)
class _Known:
    scope: Scope
    #: Topology key -> versions, and a flag per domain with a node in the scope.
    present: dict[str, tuple[tuple[int, int], Bools]]
    position: int | None = None


class Scopes:
    """Scopes by shape, topology keys and policies of a constraint."""

    def __init__(self, nodes: NodeTable, domains: DomainTable) -> None:
        self._nodes = nodes
        self._domains = domains
        self._by_affinity = Masks(nodes, (node_affinity.FILTER,))
        self._by_taints = Masks(nodes, (taint_toleration.FILTER,))
        self._known: dict[tuple[bytes, tuple[str, ...], bool, bool], _Known] = {}
        self._numbers = 0

    def of(self, shape: ShapeEntry, keys: tuple[str, ...], one: SpreadConstraint) -> Scope:
        """The current nodes on which a constraint of the shape counts pods.

        `keys` are the topology keys of all the shape's constraints of this kind.
        """
        return self._find(shape, keys, one).scope

    def present(self, shape: ShapeEntry, keys: tuple[str, ...], one: SpreadConstraint) -> Bools:
        """One flag per domain of the constraint's key: whether a node of it is in the scope."""
        known = self._find(shape, keys, one)
        domains = self._domains.of(one.topology_key)
        made_at = domains.version, known.scope.version
        found = known.present.get(one.topology_key)
        if found is None or found[0] != made_at:
            present: Bools = np.zeros(domains.count, dtype=np.bool_)
            present[domains.of_slot[known.scope.mask]] = True
            present[0] = False
            found = known.present[one.topology_key] = made_at, present
        return found[1]

    def _find(self, shape: ShapeEntry, keys: tuple[str, ...], one: SpreadConstraint) -> _Known:
        affinity = one.node_affinity_policy == "Honor"
        taints = one.node_taints_policy == "Honor"
        key = shape.encoded, keys, affinity, taints
        known = self._known.get(key)
        if known is None:
            self._numbers += 1
            known = self._known[key] = _Known(Scope(self._numbers, np.zeros(0, dtype=np.bool_)), {})
        position = self._nodes.changes.position
        if known.position != position:
            known.position = position
            mask = self._nodes.exists[: self._nodes.size].copy()
            for name in keys:
                mask &= self._domains.of(name).of_slot > 0
            if affinity:
                mask &= self._by_affinity.mask(shape)[: len(mask)]
            if taints:
                mask &= self._by_taints.mask(shape)[: len(mask)]
            if not np.array_equal(mask, known.scope.mask):
                known.scope.mask = mask
                known.scope.version += 1
        return known
