"""nodeSelector and required node affinity, `matchFields` on metadata.name included."""

from collections import Counter
from typing import Final

import numpy as np

from services.gang_planner.core.columns import Bools, Ints, Slots
from services.gang_planner.core.filters import NodeFilter
from services.gang_planner.core.labels import NAME_FIELD
from services.gang_planner.core.nodes import NodeTable
from services.gang_planner.core.shapes import ShapeEntry
from shared.model.objects import Requirement, SelectorTerm

_FIELD: Final = "metadata.name"


class NodeAffinity:
    """Labels and names that the pod asks for."""

    name = "NodeAffinity"

    def passes(self, shape: ShapeEntry, nodes: NodeTable, slots: Slots) -> Bools:
        """See `NodeFilter`."""
        passing: Bools = np.ones(len(nodes.exists[slots]), dtype=np.bool_)
        for key, value in shape.shape.node_selector:
            wanted = Requirement(key=key, operator="In", values=(value,))
            passing &= nodes.labels.matches(wanted, key, nodes.objects, slots)
        terms = shape.shape.node_affinity
        if terms is not None:
            any_term: Bools = np.zeros(len(passing), dtype=np.bool_)
            for term in terms:
                any_term |= self._term(term, nodes, slots)
            passing &= any_term
        return passing

    def reasons(self, shape: ShapeEntry, nodes: NodeTable, slots: Ints) -> Counter[str]:
        """See `NodeFilter`."""
        del shape, nodes
        return Counter({"node(s) didn't match Pod's node affinity/selector": len(slots)})

    @staticmethod
    def _term(term: SelectorTerm, nodes: NodeTable, slots: Slots) -> Bools:
        size = len(nodes.exists[slots])
        if not term.expressions and not term.fields:
            return np.zeros(size, dtype=np.bool_)
        passing: Bools = np.ones(size, dtype=np.bool_)
        for requirement in term.expressions:
            passing &= nodes.labels.matches(requirement, requirement.key, nodes.objects, slots)
        for requirement in term.fields:
            if requirement.key != _FIELD:
                return np.zeros(size, dtype=np.bool_)
            passing &= nodes.labels.matches(requirement, NAME_FIELD, nodes.objects, slots)
        return passing


FILTER: Final[NodeFilter] = NodeAffinity()
