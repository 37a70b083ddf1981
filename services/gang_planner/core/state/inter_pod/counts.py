"""How many pods count under a tally, per node and per topology domain, on one node capacity.

Per node the counts are dictionaries, of the nodes that have any. Sums per domain are arrays, made
at the first query and kept in line from then on; they are dropped when there are too many or the
domains themselves changed, and made again. A copy shares everything with its original until either
writes to it.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np

from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.inter_pod.domains import DomainTable

#: Arrays kept; at 5,000 nodes and one domain each 160 MB.
_ARRAYS_MAX: Final = 4096


class Scope:
    """Nodes that a sum is over."""

    __slots__ = ("mask", "number", "version")

    def __init__(self, number: int, mask: Bools) -> None:
        #: 0: all nodes.
        self.number = number
        #: One flag per slot; of no meaning where `number` is 0.
        self.mask = mask
        #: Grows when the mask changes.
        self.version = 0


EVERYWHERE: Final = Scope(0, np.zeros(0, dtype=np.bool_))


class _Sums:
    """Counts of one tally by domain of one key, over the nodes of one scope."""

    __slots__ = ("by_domain", "key", "made_at", "scope")

    def __init__(self, key: str, scope: Scope, by_domain: Ints, made_at: tuple[int, int]) -> None:
        self.key = key
        self.scope = scope
        self.by_domain = by_domain
        #: Versions of the domains and of the scope.
        self.made_at = made_at


class PairCounts:
    """Counts by tally; what entries add is in their `tallies`."""

    def __init__(self, domains: DomainTable) -> None:
        self.domains = domains
        self._per_slot: dict[int, dict[int, int]] = {}
        #: Tallies whose dictionary is this object's alone; None: all.
        self._owned: set[int] | None = None
        self._sums: dict[int, dict[tuple[str, int], _Sums]] = {}
        self._sums_count = 0
        #: Grows with every change.
        self.version = 0
        #: Tallies of which a count more may open nodes to a waiting gang (`Terms.attracting`).
        self.attracting: AbstractSet[int] = frozenset()

    def attracts(self, profile: Iterable[int]) -> bool:
        """Whether a pod more with this profile may open nodes to a waiting gang."""
        return any(number in self.attracting for number in profile)

    def add(self, slot: int, tallies: Sequence[tuple[int, int]], count: int) -> None:
        """`count` pods (negative: fewer) that add to these tallies are on the node."""
        self.version += 1
        for tally, amount in tallies:
            self._add(tally, slot, amount * count)

    def by_domain(self, tally: int, key: str, scope: Scope = EVERYWHERE) -> Ints:
        """Counts per domain of the key; 0 for nodes without it. Not to be written to."""
        domains = self.domains.of(key)
        made_at = domains.version, scope.version
        kept = self._sums.setdefault(tally, {})
        sums = kept.get((key, scope.number))
        if sums is not None and sums.made_at == made_at and sums.scope is scope:
            return sums.by_domain
        by_domain = np.zeros(domains.count, dtype=np.int64)
        per_slot = self._per_slot.get(tally)
        if per_slot:
            slots = np.fromiter(per_slot.keys(), dtype=np.int64, count=len(per_slot))
            found = np.fromiter(per_slot.values(), dtype=np.int64, count=len(per_slot))
            if scope.number:
                found = found * scope.mask[slots]
            np.add.at(by_domain, domains.of_slot[slots], found)
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
        """Counts per node."""
        counts = np.zeros(size, dtype=np.int64)
        for slot, count in self._per_slot.get(tally, {}).items():
            counts[slot] = count
        return counts

    def content(self) -> dict[int, dict[int, int]]:
        """A copy of all counts that are not zero, to compare."""
        return {tally: dict(found) for tally, found in self._per_slot.items() if found}

    def copy(self) -> "PairCounts":
        """Independent counts; nothing is copied before the first write."""
        counts = PairCounts(self.domains)
        counts._per_slot = dict(self._per_slot)
        counts._owned = set()
        counts.attracting = self.attracting
        # The original's dictionaries are the copy's, too, from now on.
        self._owned = set()
        return counts

    def _add(self, tally: int, slot: int, amount: int) -> None:
        per_slot = self._per_slot.get(tally)
        if per_slot is None:
            per_slot = self._per_slot[tally] = {}
            if self._owned is not None:
                self._owned.add(tally)
        elif self._owned is not None and tally not in self._owned:
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
            # Made again at the next query.
            return
        if sums.scope.number and (slot >= len(sums.scope.mask) or not sums.scope.mask[slot]):
            return
        domain = domains.of_slot[slot]
        if domain:
            sums.by_domain[domain] += amount
