"""Places several equal pods whose terms about other pods may concern each other.

All are placed at once where the effect of one pod on the next is simple: none (their terms select
other pods), or that it takes a domain for itself. Otherwise they are placed one by one, still by
arrays over the candidates; shared state is not changed before the end, so one step costs a few
comparisons per candidate.
"""

from typing import Final, NamedTuple

import numpy as np

from services.gang_planner.core.constraints.inter_pod.rules import (
    Even,
    PairRules,
    PairView,
    most_allowed,
)
from services.gang_planner.core.placement.distribution import distribute
from services.gang_planner.core.scoring.inter_pod import Preferences
from services.gang_planner.core.state.columns import Bools, Ints

#: No candidate: below every key.
_NONE: Final = -(2**62)
#: Domains that the first pod of a series is tried in, when not all fit into any.
_SERIES_TRIES_MAX: Final = 4


class CandidateNodes(NamedTuple):
    """Nodes that may take pods, as parallel arrays."""

    slots: Ints
    #: How many pods each holds.
    capacity: Ints
    score: Ints
    #: Change of the score per pod; None: none.
    slope: Ints | None
    #: A distinct number per node, the lower the more preferred among equals.
    rank: Ints

    def only(self, chosen: Bools) -> "CandidateNodes":
        return CandidateNodes(
            self.slots[chosen],
            self.capacity[chosen],
            self.score[chosen],
            self.slope[chosen] if self.slope is not None else None,
            self.rank[chosen],
        )


class PodCounts(NamedTuple):
    """How many pods go where; slots are distinct, counts positive."""

    slots: Ints
    counts: Ints
    #: CandidateNodes compared on the way, for the session's budget.
    work: int

    @property
    def total(self) -> int:
        return int(self.counts.sum())


def place(rules: PairRules, view: PairView, nodes: CandidateNodes, wanted: int) -> PodCounts:
    """Place up to `wanted` pods of the view's shape, within the current state of `rules`."""
    if rules.first_of_series(view):
        return _place_series(rules, view, nodes, wanted)
    return _place(rules, view, nodes, wanted)


def _place_series(
    rules: PairRules, view: PairView, nodes: CandidateNodes, wanted: int
) -> PodCounts:
    """Place pods that have to be near each other: the first one's domain is that of all, so the
    domains that hold most of them are tried.
    """
    together: Ints = np.zeros(len(nodes.slots), dtype=np.int64)
    for key in view.affinity_keys:
        domains = rules.of_slot(key)[nodes.slots]
        _, together = np.unique(
            together * (int(domains.max(initial=0)) + 1) + domains, return_inverse=True
        )
    fitting = np.bincount(together, weights=np.minimum(nodes.capacity, wanted)).astype(np.int64)
    best: Ints = np.full(len(fitting), _NONE, dtype=np.int64)
    np.maximum.at(best, together, _keys(nodes))
    order = np.lexsort((-best, -np.minimum(fitting, wanted)))
    found = PodCounts(nodes.slots[:0], nodes.capacity[:0], 0)
    work = 0
    for domain in order[:_SERIES_TRIES_MAX].tolist():
        tried = _place(rules, view, nodes.only(together == domain), wanted)
        work += tried.work
        if tried.total > found.total:
            found = tried
        if found.total >= wanted:
            break
    return found._replace(work=work)


def _place(rules: PairRules, view: PairView, nodes: CandidateNodes, wanted: int) -> PodCounts:
    allowed = rules.open_now(view)[nodes.slots]
    nodes = nodes.only(allowed)
    evens = [one for one in view.even if one.own and one.tally is not None]
    preferences = None
    if view.pulls or view.preferred_even:
        preferences = Preferences(rules, view, nodes.slots)
    if evens or len(view.own_apart) > 1 or (preferences is not None and preferences.moving):
        return _Steps(rules, view, nodes, evens, preferences).run(wanted)
    if preferences is not None:
        points = preferences.points(np.ones(len(nodes.slots), dtype=np.bool_))
        nodes = nodes._replace(score=nodes.score + points)
    if view.own_apart:
        nodes = _one_per_domain(rules.of_slot(view.own_apart[0])[nodes.slots], nodes)
    wanted = min(wanted, int(nodes.capacity.sum()))
    if wanted <= 0:
        return PodCounts(nodes.slots[:0], nodes.capacity[:0], len(nodes.slots))
    taken = distribute(wanted, nodes.capacity, nodes.score, nodes.slope, nodes.rank)
    used = np.flatnonzero(taken)
    return PodCounts(nodes.slots[used], taken[used], len(nodes.slots))


def _one_per_domain(domains: Ints, nodes: CandidateNodes) -> CandidateNodes:
    """The best node of each domain, for one pod; nodes outside of all domains as they are."""
    free: Bools = domains == 0
    nodes = nodes._replace(capacity=np.where(free, nodes.capacity, 1))
    sizes = np.bincount(domains)
    if not len(sizes) or int(sizes[1:].max(initial=0)) <= 1:
        # Every node is a domain of its own.
        return nodes
    order = np.argsort(_keys(nodes))
    best: Ints = np.zeros(len(sizes), dtype=np.int64)
    # Of several writes to one place the last one stays: the best node's.
    best[domains[order]] = order
    chosen = free.copy()
    chosen[best[np.flatnonzero(sizes[1:]) + 1]] = True
    return nodes.only(chosen)


def _keys(nodes: CandidateNodes) -> Ints:
    """Distinct numbers, the higher the better."""
    span = int(nodes.rank.max(initial=0)) + 1
    keys: Ints = nodes.score * span + (span - 1 - nodes.rank)
    return keys


class _EvenNow:
    """A spread constraint while pods are placed."""

    def __init__(self, rules: PairRules, view: PairView, one: Even, slots: Ints) -> None:
        counts, self.present = rules.even_counts(view, one)
        self.one = one
        self.counts = counts.copy()
        self.domains = rules.of_slot(one.constraint.topology_key)[slots]
        #: Which candidates the constraint counts pods on.
        self.scoped = rules.scopes.of(view.shape, one.keys, one.constraint).mask[slots]

    def allows(self) -> Bools:
        allowed: Bools = self.counts <= most_allowed(self.one, self.counts, self.present)
        return allowed[self.domains]

    def place(self, candidate: int) -> None:
        if self.scoped[candidate]:
            self.counts[self.domains[candidate]] += 1


class _Steps:
    """Places pods one by one."""

    def __init__(
        self,
        rules: PairRules,
        view: PairView,
        nodes: CandidateNodes,
        evens: list[Even],
        preferences: Preferences | None,
    ) -> None:
        self._nodes = nodes
        self._evens = [_EvenNow(rules, view, one, nodes.slots) for one in evens]
        self._apart = [rules.of_slot(key)[nodes.slots] for key in view.own_apart]
        self._preferences = preferences
        self._capacity = nodes.capacity.copy()
        self._open: Bools = self._capacity > 0
        self._score = nodes.score.copy()
        self._span = int(nodes.rank.max(initial=0)) + 1
        self._by_rank: Ints = self._span - 1 - nodes.rank

    def run(self, wanted: int) -> PodCounts:
        slots = self._nodes.slots
        placed: Ints = np.zeros(len(slots), dtype=np.int64)
        steps = 0
        keys = self._keys(self._open)
        for _ in range(wanted):
            steps += 1
            may = self._open.copy()
            for one in self._evens:
                may &= one.allows()
            if self._preferences is not None:
                keys = self._keys(may)
            found = np.where(may, keys, _NONE)
            best = int(found.argmax()) if len(found) else -1
            if best < 0 or found[best] == _NONE:
                break
            placed[best] += 1
            self._take(best, keys)
        used = np.flatnonzero(placed)
        return PodCounts(slots[used], placed[used], steps * len(slots))

    def _take(self, best: int, keys: Ints) -> None:
        self._capacity[best] -= 1
        if not self._capacity[best]:
            self._open[best] = False
        for one in self._evens:
            one.place(best)
        for domains in self._apart:
            if domains[best]:
                self._open &= domains != domains[best]
        if self._preferences is not None:
            self._preferences.place(best)
        slope = self._nodes.slope
        if slope is not None:
            self._score[best] += slope[best]
            keys[best] += slope[best] * self._span

    def _keys(self, among: Bools) -> Ints:
        score = self._score
        if self._preferences is not None:
            score = score + self._preferences.points(among)
        keys: Ints = score * self._span + self._by_rank
        return keys
