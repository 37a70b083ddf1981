"""Nodes that match node selector terms, as masks and as slots.

Terms are alternatives: a node matches if all requirements of at least one term hold. A term without
requirements matches no node, as in Kubernetes.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from services.gang_planner.core.state.columns import Bools, Ints, Slots
from services.gang_planner.core.state.node_labels import NAME_FIELD
from services.gang_planner.core.state.nodes import NodeTable
from shared.model.terms import Selector, SelectorTerm

_FIELD: Final = "metadata.name"


def matching_any(terms: Iterable[SelectorTerm], nodes: NodeTable, slots: Slots) -> Bools:
    """One flag per node in `slots`: whether it matches at least one of the terms."""
    matched: Bools = np.zeros(len(nodes.exists[: nodes.size][slots]), dtype=np.bool_)
    for term in terms:
        matched |= matching(term, nodes, slots)
    return matched


def matching(term: SelectorTerm, nodes: NodeTable, slots: Slots) -> Bools:
    """One flag per node in `slots`: whether it matches the term."""
    size = len(nodes.exists[: nodes.size][slots])
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


def selected(selector: Selector | None, nodes: NodeTable) -> Bools:
    """One flag per slot: whether the label selector matches the node; None matches no node."""
    passing: Bools = np.full(nodes.size, selector is not None, dtype=np.bool_)
    for requirement in selector.requirements if selector is not None else ():
        passing &= nodes.holding(requirement)
    return passing


class SlotsByTerms:
    """Slots of nodes that match terms, cached until a node changes.

    There may be many local volumes, each with the label value of one node. Such terms are looked up
    by value instead of comparing every volume with every node.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._position: int | None = None
        self._found: dict[tuple[SelectorTerm, ...], Ints] = {}
        #: Key -> sorted value ids, and the slots in that order.
        self._sorted: dict[str, tuple[Ints, Ints]] = {}

    def slots(self, terms: tuple[SelectorTerm, ...]) -> Ints:
        """Sorted slots of nodes that match one of the terms. Callers must not write to it."""
        if self._position != self._nodes.changes.position:
            self._position = self._nodes.changes.position
            self._found.clear()
            self._sorted.clear()
        slots = self._found.get(terms)
        if slots is None:
            slots = self._found[terms] = self._look(terms)
        return slots

    def _look(self, terms: tuple[SelectorTerm, ...]) -> Ints:
        nodes = self._nodes
        if len(terms) == 1 and len(terms[0].expressions) == 1 and not terms[0].fields:
            (requirement,) = terms[0].expressions
            if requirement.operator == "In":
                return self._of_values(requirement.key, requirement.values)
        return np.flatnonzero(matching_any(terms, nodes, slice(0, nodes.size)))

    def _of_values(self, key: str, values: tuple[str, ...]) -> Ints:
        nodes = self._nodes
        ordered = self._sorted.get(key)
        if ordered is None:
            column = nodes.labels.column(key, nodes.objects)[: nodes.size]
            order = np.argsort(column, kind="stable")
            ordered = self._sorted[key] = column[order], order
        ids, slots = ordered
        wanted = np.unique(nodes.labels.ids(values))
        first = np.searchsorted(ids, wanted, side="left").tolist()
        last = np.searchsorted(ids, wanted, side="right").tolist()
        parts = [slots[low:high] for low, high in zip(first, last, strict=True)]
        return np.sort(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)
