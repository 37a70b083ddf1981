"""Counts of pods per tally, per node and per topology domain, on one node capacity.

Counts per node are dictionaries of the nodes with any. Sums per domain are arrays. They are
computed at the first query and then updated; they are dropped and computed again if there are too
many or if the domains change. A copy shares its data with the original until either is modified.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

import msgspec
import numpy as np

from services.gang_planner.core.state.columns import Bools, Ints, grown
from services.gang_planner.core.state.nodes import NodeTable

#: Number of cached arrays: 160 MB with 5,000 nodes and one domain per node.
_ARRAYS_MAX: Final = 4096
#: Maximum number of unused domain numbers; beyond it, domains are numbered again.
_SPARE_MAX: Final = 1024
#: Topology keys whose domains are kept, in arrays of all nodes. Clusters have a dozen.
KEYS_MAX: Final = 512
#: Version of the domains of a key that no node has.
_NOWHERE: Final = -1
_NONE: Final = np.zeros(1, dtype=np.int64)


class Domains:
    """Nodes with the same value of a label, numbered.

    Number 0 is for nodes without the label and for slots without a node, so that arrays by domain
    cover them with a neutral first item. Numbers depend on the order of arrival: no decision may
    compare them.
    """

    def __init__(self, key: str, nodes: NodeTable, version: int) -> None:
        self.key = key
        self._nodes = nodes
        #: Domain number of each slot.
        self.of_slot: Ints = np.zeros(0, dtype=np.int64)
        #: Number of assigned domain numbers, including 0.
        self.count = 1
        #: Increases when the domain of any slot changes.
        self.version = version
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
        #: Greater than the versions of all domains that were dropped.
        self._version = 0
        #: Of every key that no node has. Users make these up.
        self._nowhere = Domains("", nodes, _NOWHERE)

    def trim(self) -> None:
        """Drop all domains if there are too many: users choose topology keys. For a moment at which
        no caller has any.
        """
        if len(self._domains) > KEYS_MAX:
            self._version = 1 + max(domains.version for domains in self._domains.values())
            self._domains.clear()

    def of(self, key: str) -> Domains:
        domains = self._domains.get(key)
        if domains is None and not self.nodes.labels.known(key):
            domains = self._nowhere
        elif domains is None:
            domains = self._domains[key] = Domains(key, self.nodes, self._version)
        domains.refresh()
        return domains


class Scope(msgspec.Struct, eq=False):
    """The nodes that a sum includes."""

    #: 0: all nodes.
    number: int
    #: One flag per slot; unused if `number` is 0.
    mask: Bools
    #: Number of changes of the mask.
    version: int = 0


EVERYWHERE: Final = Scope(0, np.zeros(0, dtype=np.bool_))


class _Sums(NamedTuple):
    """Counts of one tally by domain of one key, over the nodes of one scope."""

    key: str
    scope: Scope
    by_domain: Ints
    #: Versions of the domains and of the scope.
    made_at: tuple[int, int]


class PairCounts:
    """Counts by tally; `ShapeEntry.tallies` has the amounts that a pod adds."""

    def __init__(self, domains: DomainTable) -> None:
        self.domains = domains
        self._per_slot: dict[int, dict[int, int]] = {}
        #: Tallies whose dictionary is not shared with a copy; None: all.
        self._owned: set[int] | None = None
        self._sums: dict[int, dict[tuple[str, int], _Sums]] = {}
        self._sums_count = 0
        #: Number of changes so far.
        self.version = 0
        #: Tallies whose increase may make nodes eligible for a waiting gang (`Terms.attracting`).
        self.attracting: AbstractSet[int] = frozenset()

    def attracts(self, profile: Iterable[int]) -> bool:
        """Whether one more pod with this profile may make nodes eligible for a waiting gang."""
        return any(number in self.attracting for number in profile)

    def add(self, slot: int, tallies: Sequence[tuple[int, int]], count: int) -> None:
        """Add `count` pods with these (tally, amount) pairs to a node; negative: remove them."""
        self.version += 1
        for tally, amount in tallies:
            self._add(tally, slot, amount * count)

    def by_domain(self, tally: int, key: str, scope: Scope = EVERYWHERE) -> Ints:
        """Counts per domain of the key; 0 for domain 0. Callers must not write to it."""
        domains = self.domains.of(key)
        if domains.version == _NOWHERE:
            return _NONE
        made_at = domains.version, scope.version
        kept = self._sums.setdefault(tally, {})
        sums = kept.get((key, scope.number))
        if sums is not None and sums.made_at == made_at and sums.scope is scope:
            return sums.by_domain
        by_domain = np.zeros(domains.count, dtype=np.int64)
        per_slot = self._per_slot.get(tally)
        if per_slot:
            slots = np.fromiter(per_slot.keys(), dtype=np.int64, count=len(per_slot))
            counts = np.fromiter(per_slot.values(), dtype=np.int64, count=len(per_slot))
            if scope.number:
                counts = counts * scope.mask[slots]
            np.add.at(by_domain, domains.of_slot[slots], counts)
            by_domain[0] = 0
        if sums is None:
            if self._sums_count >= _ARRAYS_MAX:
                self._sums.clear()
                self._sums_count = 0
                kept = self._sums.setdefault(tally, {})
            self._sums_count += 1
        kept[key, scope.number] = _Sums(key, scope, by_domain, made_at)
        return by_domain

    def per_slot(self, tally: int, size: int) -> Ints:
        counts = np.zeros(size, dtype=np.int64)
        for slot, count in self._per_slot.get(tally, {}).items():
            counts[slot] = count
        return counts

    def content(self) -> dict[int, dict[int, int]]:
        return {tally: dict(per_slot) for tally, per_slot in self._per_slot.items() if per_slot}

    def copy(self) -> "PairCounts":
        """An independent copy; data is shared until the first write, because a pending reason with
        200 tallies on 5,000 nodes would copy for 24 ms.
        """
        counts = PairCounts(self.domains)
        counts._per_slot = dict(self._per_slot)
        counts._owned, self._owned = set(), set()
        counts.attracting = self.attracting
        return counts

    def _add(self, tally: int, slot: int, amount: int) -> None:
        per_slot = self._per_slot.setdefault(tally, {})
        if self._owned is not None and tally not in self._owned:
            per_slot = self._per_slot[tally] = dict(per_slot)
            self._owned.add(tally)
        left = per_slot.get(slot, 0) + amount
        if left:
            per_slot[slot] = left
        else:
            per_slot.pop(slot, None)
        for sums in self._sums.get(tally, {}).values():
            self._add_to_sums(sums, slot, amount)

    def _add_to_sums(self, sums: _Sums, slot: int, amount: int) -> None:
        domains = self.domains.of(sums.key)
        if sums.made_at != (domains.version, sums.scope.version):
            # The next query computes the sums again.
            return
        if sums.scope.number and (slot >= len(sums.scope.mask) or not sums.scope.mask[slot]):
            return
        domain = domains.of_slot[slot]
        if domain:
            sums.by_domain[domain] += amount
