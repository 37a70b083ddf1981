"""Points for preferred inter-pod terms and spread constraints, as in kube-scheduler: sums over
domains, normalized to 0 to 100 among the candidate nodes. In thousandths, like all scores.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from services.gang_planner.core.constraints.inter_pod.rules import Even, PairRules, PairView
from services.gang_planner.core.scoring import FULL
from services.gang_planner.core.state.columns import Bools, Ints

#: kube-scheduler counts each node separately under this key.
HOSTNAME: Final = "kubernetes.io/hostname"
#: Fixed-point unit of the logarithmic weights of topology sizes.
_PARTS: Final = 1 << 16


@dataclass(eq=False, slots=True)
class _Counted:
    """Counts of one tally at the candidates, updated as pods are placed on them."""

    #: Count in each candidate's domain.
    at: Ints
    #: Domain of each candidate; 0: none.
    domains: Ints
    weight: int
    own: int
    #: Candidates on which pods are counted; None: all.
    scoped: Bools | None = None

    def place(self, candidate: int) -> None:
        if self.own and (self.scoped is None or self.scoped[candidate]):
            domain = self.domains[candidate]
            if domain:
                self.at[self.domains == domain] += self.own


class Preferences:
    """Points of candidates (some slots, in the given order) for one shape."""

    def __init__(self, rules: PairRules, view: PairView, slots: Ints) -> None:
        self._switches = rules.switches
        self._pulls = [
            _Counted(
                rules.counts.by_domain(pull.tally, pull.key)[domains],
                domains,
                pull.points,
                pull.own,
            )
            for pull in view.pulls
            for domains in (rules.of_slot(pull.key)[slots],)
        ]
        self._spreads: list[_Counted] = []
        self._skews = 0
        self._scored: Bools = np.ones(len(slots), dtype=np.bool_)
        for even in view.preferred_even:
            self._scored &= rules.of_slot(even.constraint.topology_key)[slots] > 0
        for even in view.preferred_even:
            self._spreads.append(self._spread(rules, view, even, slots))
            self._skews += even.constraint.max_skew - 1

    @property
    def moving(self) -> bool:
        """Whether each placed pod changes the points."""
        return any(part.own for part in (*self._pulls, *self._spreads))

    def points(self, among: Bools) -> Ints:
        """Points of all candidates, normalized among the flagged ones."""
        points: Ints = np.zeros(len(among), dtype=np.int64)
        if self._pulls:
            points += self._switches.affinity_weight * self._attraction(among)
        if self._spreads:
            points += self._switches.spread_weight * self._evenness(among)
        return points

    def place(self, candidate: int) -> None:
        """Count one more pod on the candidate."""
        for part in (*self._pulls, *self._spreads):
            part.place(candidate)

    def _attraction(self, among: Bools) -> Ints:
        total = self._sum(self._pulls)
        compared = total[among]
        if not len(compared):
            return total
        low, high = int(compared.min()), int(compared.max())
        if low == high:
            return np.zeros(len(total), dtype=np.int64)
        points: Ints = (np.clip(total, low, high) - low) * FULL // (high - low)
        return points

    def _evenness(self, among: Bools) -> Ints:
        parts = self._sum(self._spreads)
        total = (parts + _PARTS // 2) // _PARTS + self._skews
        compared = total[among & self._scored]
        if not len(compared):
            return np.zeros(len(total), dtype=np.int64)
        low, high = int(compared.min()), int(compared.max())
        if not high:
            return np.where(self._scored, FULL, 0).astype(np.int64)
        points = (high + low - np.clip(total, low, high)) * FULL // high
        return np.where(self._scored, points, 0).astype(np.int64)

    def _sum(self, counted: list[_Counted]) -> Ints:
        total: Ints = np.zeros(len(self._scored), dtype=np.int64)
        for part in counted:
            total += part.weight * part.at
        return total

    def _spread(self, rules: PairRules, view: PairView, even: Even, slots: Ints) -> _Counted:
        key = even.constraint.topology_key
        domains = rules.of_slot(key)[slots]
        scored = domains[self._scored]
        # An empty selector matches the pod itself, but counts no pod.
        own = even.own if even.tally is not None else 0
        if key == HOSTNAME:
            size = len(scored)
            per_slot = rules.per_slot(even)
            # Each node is a domain, even if two nodes have the same label.
            return _Counted(per_slot[slots], np.arange(1, len(slots) + 1), _weight(size), own)
        counts, _ = rules.even_counts(view, even)
        scoped = rules.scopes.of(view.shape, even.keys, even.constraint).mask[slots]
        weight = _weight(len(np.unique(scored)))
        return _Counted(counts[domains], domains, weight, own, scoped)


def _weight(size: int) -> int:
    """Weight of a topology with this number of domains, in parts: large topologies must not
    outweigh small ones.
    """
    return round(math.log(size + 2) * _PARTS)
