"""Resolves the members of all HyperNodes to nodes, and computes their levels.

Errors in HyperNodes are not fatal: a HyperNode that contains itself through others, members that do
not exist, a node in two HyperNodes of one tier (it counts for the first by name). Each error adds a
sentence to `problems`.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.topology.levels import NOWHERE, Level
from shared.kinds.patterns import Pattern, PatternError
from shared.model.reference_objects import HyperNode, HyperNodeMember

#: Maximum number of sentences, because generated HyperNodes could cause thousands.
_PROBLEMS_MAX: Final = 20
#: Maximum depth of nested HyperNodes; three or four are common.
_DEPTH_MAX: Final = 64
_NO_NODES: Final[frozenset[str]] = frozenset()
_NONE: Final[Ints] = np.zeros(0, dtype=np.int64)


class Built:
    """Levels of one set of HyperNodes on one set of nodes."""

    def __init__(self, hypernodes: Iterable[HyperNode], nodes: NodeTable) -> None:
        self.problems: list[str] = []
        self._nodes = nodes
        self._hypernodes: dict[str, HyperNode] = {}
        for one in sorted(hypernodes, key=lambda one: (one.name, one.uid)):
            self._hypernodes.setdefault(one.name, one)
        self._patterns: dict[str, Pattern | None] = {}
        self._slots: dict[str, Ints] = {}
        self._open: dict[str, None] = {}
        for name in self._hypernodes:
            self._resolve(name)
        self.levels = tuple(self._level(tier) for tier in self._tiers())

    def inside(self, tier_name: str, tier: int) -> Ints:
        """Index of the HyperNode with this tier name that contains each slot; `NOWHERE` for none.

        HyperNodes of this tier without a tier name count, too.
        """
        found = np.full(self._nodes.size, NOWHERE, dtype=np.int64)
        for place, one in enumerate(self._hypernodes.values()):
            if one.tier_name == tier_name or (not one.tier_name and one.tier == tier):
                found[self._slots[one.name]] = place
        return found

    def _tiers(self) -> list[int]:
        return sorted({one.tier for one in self._hypernodes.values()})

    def _resolve(self, name: str) -> Ints:
        """Slots of all nodes in a HyperNode, through its members."""
        found = self._slots.get(name)
        if found is not None:
            return found
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
            here &= np.array([one in named for one in nodes.names], dtype=np.bool_)
        elif member.labels is not None:
            for one in member.labels.requirements:
                here &= nodes.labels.matches(one, one.key, nodes.objects, slice(0, nodes.size))
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
        here = [one for one in self._hypernodes.values() if one.tier == tier]
        names = tuple(one.name for one in here)
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
        title = next((one.tier_name for one in here if one.tier_name), f"tier {tier}")
        return Level(tier, title, domain_of, names)

    def _say(self, problem: str) -> None:
        if problem not in self.problems and len(self.problems) < _PROBLEMS_MAX:
            self.problems.append(problem)
