"""Topology domains: nodes with the same value of a label, numbered per key.

Number 0 is for nodes without the label and for slots without a node, so that arrays by domain cover
them with a neutral first item. Numbers depend on the order of arrival: no decision may compare
them.
"""

from typing import Final

import numpy as np

from services.gang_planner.core.state.columns import Ints, grown
from services.gang_planner.core.state.nodes import NodeTable

#: Maximum number of unused domain numbers; beyond it, domains are numbered again.
_SPARE_MAX: Final = 1024


class Domains:
    """The domains of one key."""

    def __init__(self, key: str, nodes: NodeTable) -> None:
        self.key = key
        self._nodes = nodes
        #: Domain number of each slot.
        self.of_slot: Ints = np.zeros(0, dtype=np.int64)
        #: Number of assigned domain numbers, including 0.
        self.count = 1
        #: Increases when the domain of any slot changes.
        self.version = 0
        self._by_value: Ints = np.zeros(0, dtype=np.int64)
        self._position: int | None = None

    def refresh(self) -> None:
        """Update the domains from the nodes; called before every read."""
        nodes = self._nodes
        if self._position == nodes.changes.position and len(self.of_slot) == nodes.size:
            return
        changed = None
        if self._position is not None:
            changed = nodes.changes.since(self._position, max(16, nodes.size // 4))
        self._position = nodes.changes.position
        values = nodes.labels.column(self.key, nodes.objects)[: nodes.size]
        before = self.of_slot
        if changed is None or self.count > nodes.size + _SPARE_MAX:
            self._by_value[:] = 0
            self.count = 1
            self.of_slot = self._numbers(values)
        else:
            self.of_slot = np.concatenate(
                [before, np.zeros(nodes.size - len(before), dtype=np.int64)]
            )
            self.of_slot[changed] = self._numbers(values[changed])
        if not np.array_equal(before, self.of_slot):
            self.version += 1

    def _numbers(self, values: Ints) -> Ints:
        self._by_value = grown(self._by_value, int(values.max(initial=0)) + 1)
        fresh = np.unique(values[(values > 0) & (self._by_value[values] == 0)])
        self._by_value[fresh] = np.arange(self.count, self.count + len(fresh))
        self.count += len(fresh)
        numbers: Ints = self._by_value[values]
        return numbers


class DomainTable:
    """Domains by key; a node capacity and its copies share it."""

    def __init__(self, nodes: NodeTable) -> None:
        self.nodes = nodes
        self._domains: dict[str, Domains] = {}

    def of(self, key: str) -> Domains:
        """The current domains of a key."""
        found = self._domains.get(key)
        if found is None:
            found = self._domains[key] = Domains(key, self.nodes)
        found.refresh()
        return found
