"""The levels of HyperNodes and of node labels. They are computed on demand, and again only after
their nodes, labels or HyperNodes have changed.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.reference_objects import Table
from services.gang_planner.core.state.topology.hypernodes import Built
from services.gang_planner.core.state.topology.levels import (
    NOWHERE,
    Level,
    Levels,
    MissingLevels,
    TopologyProblem,
)
from shared.model.objects import NetworkTopology, Node
from shared.model.reference_objects import HyperNode

#: Up to this number of changes, nodes are compared singly; beyond it, all levels are recomputed.
_CHANGED_MAX: Final = 4096
#: Number of cached label keys, and of cached topologies.
_KEYS_MAX: Final = 64


class TopologyTable:
    """All levels of one table of nodes."""

    def __init__(self, nodes: NodeTable, hypernodes: Table[HyperNode]) -> None:
        self.nodes = nodes
        self._hypernodes = hypernodes
        self._built: Built | None = None
        #: Positions in the changes of nodes and HyperNodes as of `_built`.
        self._built_of = 0, 0
        #: Name and labels of each slot's node as of `_built`.
        self._seen: list[Node | None] = []
        self._labelled: dict[str, tuple[int, Level]] = {}
        self._order: tuple[Built, Ints, Ints] | None = None
        #: Cached levels and orders, valid for these positions in the changes of nodes and
        #: HyperNodes.
        self._found: dict[NetworkTopology, Levels] = {}
        self._orders: dict[str, Ints] = {}
        self._found_of: tuple[int, int] | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        """Errors in the HyperNodes, one sentence each."""
        return tuple(self._hyper().problems)

    def levels(self, topology: NetworkTopology) -> Levels:
        """The levels in which this topology permits a gang."""
        self._forget_old()
        found = self._found.get(topology)
        if found is None:
            if len(self._found) >= _KEYS_MAX:
                self._found.clear()
            found = self._found[topology] = self._work_out(topology)
        return found

    def order(self, topology: NetworkTopology | None) -> Ints:
        """Position of each slot in an order by domain, from the widest tier to the closest, then
        by node name. Without HyperNodes or labels, the order is by name.
        """
        rank = self.nodes.rank()
        if topology is not None and topology.label_key:
            levels = self.levels(topology).levels
            key = topology.label_key
            if key not in self._orders:
                self._orders[key] = _order(rank, levels)
            return self._orders[key]
        if not self._hypernodes:
            return rank
        built = self._hyper()
        known = self._order
        if known is not None and known[0] is built and known[1] is rank:
            return known[2]
        place = _order(rank, built.levels)
        self._order = (built, rank, place)
        return place

    # ---------------------------------------------------------------- internal

    def _forget_old(self) -> None:
        now = (self.nodes.changes.position, self._hypernodes.changes)
        if now != self._found_of:
            self._found_of = now
            self._found.clear()
            self._orders.clear()

    def _work_out(self, topology: NetworkTopology) -> Levels:
        if topology.label_key:
            return self._by_labels(topology)
        levels = self._hyper().levels
        soft = topology.mode == "soft"
        if not levels:
            return Levels((), soft, None if soft else _problem(MissingLevels.HYPER_NODES))
        limit = topology.highest_tier
        if topology.highest_tier_name:
            named = [
                one.tier
                for one in self._hypernodes.values()
                if one.tier_name == topology.highest_tier_name
            ]
            if not named:
                missing = _problem(MissingLevels.TIER_NAME, topology.highest_tier_name)
                return Levels((), soft, missing)
            limit = max(named)
        elif not limit:
            return Levels(levels, open=True)
        allowed = tuple(one for one in levels if one.tier <= limit)
        if soft:
            return Levels(levels, open=True)
        if topology.highest_tier_name:
            # Trees of different heights may use the same tier name at different tiers.
            around = self._hyper().inside(topology.highest_tier_name, limit)
            allowed = tuple(one.only_inside(around) for one in allowed)
        if not allowed:
            return Levels((), open=False, problem=_problem(MissingLevels.TIER, limit))
        return Levels(allowed, open=limit > levels[-1].tier)

    def _hyper(self) -> Built:
        nodes = self.nodes
        now = (nodes.changes.position, self._hypernodes.changes)
        if self._built is None or now[1] != self._built_of[1] or self._moved(now[0]):
            self._built = Built(self._hypernodes.values(), nodes)
            self._seen = list(nodes.objects)
        self._built_of = now
        return self._built

    def _moved(self, position: int) -> bool:
        """Whether a node appeared, disappeared or changed its labels since the last computation."""
        nodes = self.nodes
        if position == self._built_of[0]:
            return False
        changed = nodes.changes.since(self._built_of[0], _CHANGED_MAX)
        if changed is None or len(self._seen) != nodes.size:
            return True
        objects: Sequence[Node | None] = nodes.objects
        slots: list[int] = changed.tolist()
        return any(_differs(self._seen[slot], objects[slot]) for slot in slots)

    def _by_labels(self, topology: NetworkTopology) -> Levels:
        """Levels of label keys; the keys are ordered from the closest domains to the widest."""
        keys = [one.strip() for one in topology.label_key.split(",") if one.strip()]
        if topology.mode == "hard" and topology.highest_tier:
            keys = keys[: topology.highest_tier]
        levels = tuple(self._labels_level(tier, key) for tier, key in enumerate(keys, start=1))
        soft = topology.mode == "soft"
        if not soft and not any(one.names for one in levels):
            missing = _problem(MissingLevels.LABEL, topology.label_key)
            return Levels((), open=False, problem=missing)
        return Levels(levels, open=soft)

    def _labels_level(self, tier: int, key: str) -> Level:
        nodes = self.nodes
        position = nodes.changes.position
        found = self._labelled.get(key)
        if found is None or found[0] != position or found[1].tier != tier:
            if len(self._labelled) >= _KEYS_MAX:
                self._labelled.clear()
            found = self._labelled[key] = (position, self._make_labels_level(tier, key))
        return found[1]

    def _make_labels_level(self, tier: int, key: str) -> Level:
        nodes = self.nodes
        values = nodes.labels.column(key, nodes.objects)[: nodes.size]
        texts: list[tuple[str, int]] = []
        # Any node with the value provides its text.
        examples: dict[int, int] = {value: slot for slot, value in enumerate(values.tolist())}
        for value, slot in examples.items():
            node = nodes.objects[slot]
            if value and node is not None:
                texts.append((_label(node, key), value))
        texts.sort()
        domains = np.full(max(examples, default=0) + 1, NOWHERE, dtype=np.int64)
        for domain, (_, value) in enumerate(texts):
            domains[value] = domain
        return Level(tier, key, domains[values], tuple(f"{key}={text}" for text, _ in texts))


def _problem(missing: MissingLevels, what: object = "") -> TopologyProblem:
    return TopologyProblem(missing, str(what))


def _order(rank: Ints, levels: Sequence[Level]) -> Ints:
    columns: list[Ints] = [rank]
    for level in levels:
        padded = np.full(len(rank), len(level.names), dtype=np.int64)
        inside = level.domain_of >= 0
        padded[: len(inside)][inside] = level.domain_of[inside]
        columns.append(padded)
    place = np.empty(len(rank), dtype=np.int64)
    place[np.lexsort(columns)] = np.arange(len(rank))
    return place


def _label(node: Node, key: str) -> str:
    return dict(node.labels)[key]


def _differs(before: Node | None, now: Node | None) -> bool:
    if before is None or now is None:
        return before is not now
    return before.name != now.name or before.labels != now.labels
