"""The levels of HyperNodes and of node labels. They are computed on demand, and again only after
their nodes, labels or HyperNodes have changed.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.node_terms import selected
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.topology.levels import (
    NOWHERE,
    Level,
    Levels,
    MissingLevels,
    TopologyProblem,
)
from shared.kinds.patterns import Pattern, PatternError
from shared.model.object_table import Table
from shared.model.objects import NetworkTopology, Node
from shared.model.reference_objects import HyperNode, HyperNodeMember, Topology

#: Up to this number of changes, nodes are compared singly; beyond it, all levels are recomputed.
_CHANGED_MAX: Final = 4096
#: Number of cached topologies.
_KEYS_MAX: Final = 64
#: Maximum number of sentences, because generated HyperNodes could cause thousands.
_PROBLEMS_MAX: Final = 20
#: Maximum depth of nested HyperNodes; three or four are common.
_DEPTH_MAX: Final = 64
_NO_NODES: Final[frozenset[str]] = frozenset()
_NONE: Final[Ints] = np.zeros(0, dtype=np.int64)


class Built:
    """Levels of one set of HyperNodes on one set of nodes.

    Errors in HyperNodes are not fatal: a HyperNode that contains itself through others, members
    that do not exist, a node in two HyperNodes of one tier (it counts for the first by name). Each
    error adds a sentence to `problems`.
    """

    def __init__(self, hypernodes: Iterable[HyperNode], nodes: NodeTable) -> None:
        self.problems: list[str] = []
        self._nodes = nodes
        self._hypernodes: dict[str, HyperNode] = {}
        for hypernode in sorted(hypernodes, key=lambda hypernode: (hypernode.name, hypernode.uid)):
            self._hypernodes.setdefault(hypernode.name, hypernode)
        self._patterns: dict[str, Pattern | None] = {}
        self._slots: dict[str, Ints] = {}
        self._open: dict[str, None] = {}
        for name in self._hypernodes:
            self._resolve(name)
        tiers = sorted({hypernode.tier for hypernode in self._hypernodes.values()})
        self.levels = tuple(self._level(tier) for tier in tiers)

    def inside(self, tier_name: str, tier: int) -> Ints:
        """Index of the HyperNode with this tier name that contains each slot; `NOWHERE` for none.

        HyperNodes of this tier without a tier name count, too.
        """
        places = np.full(self._nodes.size, NOWHERE, dtype=np.int64)
        for place, hypernode in enumerate(self._hypernodes.values()):
            if hypernode.tier_name == tier_name or (
                not hypernode.tier_name and hypernode.tier == tier
            ):
                places[self._slots[hypernode.name]] = place
        return places

    def _resolve(self, name: str) -> Ints:
        """Slots of all nodes in a HyperNode, through its members."""
        known = self._slots.get(name)
        if known is not None:
            return known
        hypernode = self._hypernodes[name]
        self._open[name] = None
        parts: list[Ints] = []
        for member in hypernode.members:
            if member.kind == "Node":
                parts.append(self._node_slots(hypernode, member))
                continue
            for child in self._children(hypernode, member):
                if child in self._open:
                    self._say(f"HyperNode {child} is a member of itself through {name}")
                    continue
                if len(self._open) > _DEPTH_MAX and child not in self._slots:
                    self._say(f"HyperNode {child} lies below more than {_DEPTH_MAX} others")
                    continue
                parts.append(self._resolve(child))
                if self._hypernodes[child].tier >= hypernode.tier:
                    self._say(
                        f"HyperNode {child} of tier {self._hypernodes[child].tier} is a member of "
                        f"{name} of tier {hypernode.tier}"
                    )
        del self._open[name]
        slots = np.unique(np.concatenate(parts)) if parts else _NONE
        self._slots[name] = slots
        return slots

    def _node_slots(self, hypernode: HyperNode, member: HyperNodeMember) -> Ints:
        nodes = self._nodes
        if member.exact:
            slot = nodes.find(member.exact)
            if slot is None or not nodes.exists[slot]:
                self._say(f"HyperNode {hypernode.name} names node {member.exact}, which is missing")
                return _NONE
            return np.array([slot], dtype=np.int64)
        here = nodes.exists[: nodes.size].copy()
        if member.regex:
            pattern = self._pattern(hypernode, member.regex)
            named = _NO_NODES if pattern is None else pattern.among(nodes.names)
            here &= np.array([name in named for name in nodes.names], dtype=np.bool_)
        elif member.labels is not None:
            here &= selected(member.labels, nodes)
        else:
            return _NONE
        return np.flatnonzero(here)

    def _children(self, hypernode: HyperNode, member: HyperNodeMember) -> list[str]:
        if member.exact:
            if member.exact in self._hypernodes:
                return [member.exact]
            self._say(
                f"HyperNode {hypernode.name} names HyperNode {member.exact}, which is missing"
            )
            return []
        # A pattern never selects its own HyperNode. HyperNodes are not selected by labels, which
        # are not in the cluster state: Volcano does not do so either.
        pattern = self._pattern(hypernode, member.regex) if member.regex else None
        if pattern is None:
            return []
        named = pattern.among(self._hypernodes)
        return [name for name in self._hypernodes if name != hypernode.name and name in named]

    def _pattern(self, hypernode: HyperNode, text: str) -> Pattern | None:
        if text not in self._patterns:
            try:
                self._patterns[text] = Pattern(text)
            except PatternError as error:
                self._patterns[text] = None
                self._say(f"HyperNode {hypernode.name} has the pattern {text!r}: {error}")
        return self._patterns[text]

    def _level(self, tier: int) -> Level:
        here = [hypernode for hypernode in self._hypernodes.values() if hypernode.tier == tier]
        names = tuple(hypernode.name for hypernode in here)
        domain_of = np.full(self._nodes.size, NOWHERE, dtype=np.int64)
        for domain, name in enumerate(names):
            slots = self._slots[name]
            taken = slots[domain_of[slots] >= 0]
            if len(taken):
                other = names[int(domain_of[taken[0]])]
                self._say(
                    f"node {self._nodes.names[int(taken[0])]} is in HyperNodes {other} and {name} "
                    f"of tier {tier}: it counts for {other}"
                )
                slots = slots[domain_of[slots] < 0]
            domain_of[slots] = domain
        title = next(
            (hypernode.tier_name for hypernode in here if hypernode.tier_name), f"tier {tier}"
        )
        return Level(tier, title, domain_of, names)

    def _say(self, problem: str) -> None:
        if problem not in self.problems and len(self.problems) < _PROBLEMS_MAX:
            self.problems.append(problem)


class TopologyTable:
    """All levels of one table of nodes."""

    def __init__(
        self, nodes: NodeTable, hypernodes: Table[HyperNode], topologies: Table[Topology]
    ) -> None:
        self.nodes = nodes
        self._hypernodes = hypernodes
        self._topologies = topologies
        self._built: Built | None = None
        #: Positions in the changes of nodes and HyperNodes as of `_built`.
        self._built_of = 0, 0
        #: Name and labels of each slot's node as of `_built`.
        self._seen: list[Node | None] = []
        #: Cached levels and orders (None: that of HyperNodes), valid for these positions in the
        #: changes of nodes, HyperNodes and topologies.
        self._found: dict[NetworkTopology, Levels] = {}
        self._orders: dict[tuple[str, str] | None, Ints] = {}
        self._found_of: tuple[int, int, int] | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        """Errors in the HyperNodes, one sentence each."""
        return tuple(self._hyper().problems)

    def hypernode_levels(self) -> tuple[Level, ...]:
        """The levels of all HyperNodes, from the lowest tier up; () if there are none."""
        return self._hyper().levels

    def levels(self, topology: NetworkTopology) -> Levels:
        """The levels in which this topology permits a gang."""
        self._forget_old()
        levels = self._found.get(topology)
        if levels is None:
            if len(self._found) >= _KEYS_MAX:
                self._found.clear()
            levels = self._found[topology] = self._work_out(topology)
        return levels

    def grows(self, topology: NetworkTopology) -> bool:
        """Whether new nodes may join a domain of this topology: its domains are made from labels,
        or a HyperNode selects its nodes by a pattern or by labels.
        """
        return bool(topology.label_key) or any(
            member.kind == "Node" and not member.exact
            for hypernode in self._hypernodes.values()
            for member in hypernode.members
        )

    def order(self, topology: NetworkTopology | None) -> Ints:
        """Position of each slot in an order by domain, from the widest tier to the closest, then
        by node name. Without HyperNodes or labels, the order is by name.
        """
        labelled = topology if topology is not None and topology.label_key else None
        if labelled is None and not self._hypernodes:
            return self.nodes.rank()
        self._forget_old()
        key = (labelled.label_key, labelled.levels_of) if labelled is not None else None
        order = self._orders.get(key)
        if order is None:
            levels = self._hyper().levels if labelled is None else self.levels(labelled).levels
            order = self._orders[key] = _order(self.nodes.rank(), levels)
        return order

    # ---------------------------------------------------------------- internal

    def _forget_old(self) -> None:
        now = (self.nodes.changes.position, self._hypernodes.changes, self._topologies.changes)
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
            return Levels((), soft, None if soft else TopologyProblem(MissingLevels.HYPER_NODES))
        limit = topology.highest_tier
        if topology.highest_tier_name:
            named = [
                hypernode.tier
                for hypernode in self._hypernodes.values()
                if hypernode.tier_name == topology.highest_tier_name
            ]
            if not named:
                missing = TopologyProblem(MissingLevels.TIER_NAME, topology.highest_tier_name)
                return Levels((), soft, missing)
            limit = max(named)
        elif not limit:
            return Levels(levels, open=True)
        if soft:
            return Levels(levels, open=True)
        allowed = tuple(level for level in levels if level.tier <= limit)
        if topology.highest_tier_name:
            # Trees of different heights may use the same tier name at different tiers.
            around = self._hyper().inside(topology.highest_tier_name, limit)
            allowed = tuple(level.only_inside(around) for level in allowed)
        if not allowed:
            return Levels((), open=False, problem=TopologyProblem(MissingLevels.TIER, str(limit)))
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
        """Levels of label keys; the keys are ordered from the closest domains to the widest.

        With the mode hard each domain is inside one domain of the last key, also where the labels
        of nodes do not nest.
        """
        keys = [key.strip() for key in topology.label_key.split(",") if key.strip()]
        if topology.mode == "hard" and topology.highest_tier:
            keys = keys[: topology.highest_tier]
        known = self._topologies.by_name.get(("", topology.levels_of))
        if known is not None and {keys[0], keys[-1]} <= set(known.levels):
            return self._by_known_levels(topology, keys, known.levels[::-1])
        levels = tuple(self._labels_level(tier, key) for tier, key in enumerate(keys, start=1))
        soft = topology.mode == "soft"
        if not soft and len(levels) > 1:
            widest = levels[-1]
            levels = (*(level.split_by(widest) for level in levels[:-1]), widest)
        if not soft and not any(level.names for level in levels):
            missing = TopologyProblem(MissingLevels.LABEL, topology.label_key)
            return Levels((), open=False, problem=missing)
        return Levels(levels, open=soft)

    def _by_known_levels(
        self, topology: NetworkTopology, keys: list[str], order: Sequence[str]
    ) -> Levels:
        """The levels of a `Topology` from the first key to the last one, or with the mode soft to
        the widest one. A domain is inside one domain of each wider level; `order`: of the labels of
        all levels, the closest first.
        """
        hard = topology.mode == "hard"
        last = order.index(keys[-1]) if hard else len(order) - 1
        # A preferred level wider than the required one asks for nothing closer.
        first = min(order.index(keys[0]), last)
        levels: list[Level] = []
        for index in reversed(range(first, len(order))):
            level = self._labels_level(index - first + 1, order[index])
            levels.insert(0, level.split_by(levels[0]) if levels else level)
        levels = levels[: last - first + 1]
        if hard and not any(level.names for level in levels):
            missing = TopologyProblem(MissingLevels.LABEL, ",".join(order[first : last + 1]))
            return Levels((), open=False, problem=missing)
        return Levels(tuple(levels), open=not hard)

    def _labels_level(self, tier: int, key: str) -> Level:
        nodes = self.nodes
        values = nodes.labels.column(key, nodes.objects)[: nodes.size]
        texts: list[tuple[str, int]] = []
        # Any node with the value provides its text.
        examples: dict[int, int] = {value: slot for slot, value in enumerate(values.tolist())}
        for value, slot in examples.items():
            node = nodes.objects[slot]
            if value and node is not None:
                texts.append((dict(node.labels)[key], value))
        texts.sort()
        domains = np.full(max(examples, default=0) + 1, NOWHERE, dtype=np.int64)
        for domain, (_, value) in enumerate(texts):
            domains[value] = domain
        return Level(tier, key, domains[values], tuple(f"{key}={text}" for text, _ in texts))


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


def _differs(before: Node | None, now: Node | None) -> bool:
    if before is None or now is None:
        return before is not now
    return before.name != now.name or before.labels != now.labels
