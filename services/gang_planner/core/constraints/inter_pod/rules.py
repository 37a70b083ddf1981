"""Node masks of inter-pod terms and spread constraints for a shape, as in kube-scheduler 1.36.

`allowed` is the mask for one pod now. `ceiling` is an upper bound that holds whatever is placed
first: a placed pod can only exclude nodes by anti-affinity, but it can make nodes eligible by
affinity and spread. For these two, `ceiling` only requires the topology labels.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from services.gang_planner.core.constraints.filters import node_affinity, taint_toleration
from services.gang_planner.core.constraints.masks import Masks
from services.gang_planner.core.state.columns import Bools, Ints
from services.gang_planner.core.state.inter_pod.counts import DomainTable, Scope
from services.gang_planner.core.state.inter_pod.terms import Spread, Terms
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from shared.model.terms import SpreadConstraint

AFFINITY: Final = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY: Final = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY: Final = "node(s) didn't satisfy existing pods anti-affinity rules"
SPREAD: Final = "node(s) didn't match pod topology spread constraints"
SPREAD_LABEL: Final = f"{SPREAD} (missing required label)"
#: Minimum count of a constraint without any domain: it never limits the skew.
NO_DOMAIN: Final = 2**31 - 1
#: Number of cached views. Beyond it the whole cache is dropped.
_VIEWS_MAX: Final = 4096
#: Scopes that are kept; each has a flag per node.
SCOPES_MAX: Final = 4096


class Switches(NamedTuple):
    """Enabled rules, and weights of preferences; the weight 0 disables one."""

    #: Required affinity and anti-affinity exclude nodes.
    affinity: bool = False
    #: Required spread constraints exclude nodes.
    spread: bool = False
    affinity_weight: int = 0
    spread_weight: int = 0

    def without(self, *, judging: bool, preferring: bool) -> "Switches":
        """A copy with the rules (`judging`) or the preferences (`preferring`) disabled."""
        return Switches(
            affinity=self.affinity and not judging,
            spread=self.spread and not judging,
            affinity_weight=0 if preferring else self.affinity_weight,
            spread_weight=0 if preferring else self.spread_weight,
        )


NOTHING_ENABLED: Final = Switches()


class Apart(NamedTuple):
    """Anti-affinity: excludes domains of `key` in which the tally is above 0."""

    tally: int
    key: str


class Even(NamedTuple):
    """One spread constraint."""

    #: Tally of the pods that it counts; None: it counts none.
    tally: int | None
    #: 1 if a pod of the shape counts itself, else 0.
    own: int
    constraint: SpreadConstraint
    #: All keys of the shape's constraints of this kind.
    keys: tuple[str, ...]


class Pull(NamedTuple):
    """A preferred term: points per count of the tally in a node's domain."""

    tally: int
    key: str
    points: int
    #: Count that a pod of the shape adds to the tally.
    own: int


@dataclass(eq=False, slots=True)
class PairView:
    """The rules and preferences that apply to a shape."""

    shape: ShapeEntry
    version: int
    #: Tally of the pods that its required affinity selects; None: it has no required affinity, or
    #: no pod can match it.
    affinity: int | None = None
    affinity_keys: tuple[str, ...] = ()
    own_affinity: bool = False
    apart: tuple[Apart, ...] = ()
    #: Topology keys of anti-affinity terms that match the shape's own pods.
    own_apart: tuple[str, ...] = ()
    existing: tuple[Apart, ...] = ()
    even: tuple[Even, ...] = ()
    pulls: tuple[Pull, ...] = ()
    preferred_even: tuple[Even, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether no rule or preference applies."""
        return not (
            self.affinity_keys
            or self.apart
            or self.existing
            or self.even
            or self.pulls
            or self.preferred_even
        )


@dataclass(eq=False, slots=True)
class _Known:
    scope: Scope
    #: Topology key -> versions, and a flag per domain with a node in the scope.
    present: dict[str, tuple[tuple[int, int], Bools]]
    position: int | None = None


class Scopes:
    """The nodes on which spread constraints count pods, by shape, topology keys and policies: nodes
    with all topology keys of the pod's constraints that also match its node affinity
    (`nodeAffinityPolicy: Honor`) and tolerations (`nodeTaintsPolicy: Honor`).
    """

    def __init__(self, nodes: NodeTable, domains: DomainTable) -> None:
        self._nodes = nodes
        self._domains = domains
        self._by_affinity = Masks(nodes, (node_affinity.FILTER,))
        self._by_taints = Masks(nodes, (taint_toleration.FILTER,))
        self._known: dict[tuple[bytes, tuple[str, ...], bool, bool], _Known] = {}
        self._numbers = 0

    def trim(self) -> None:
        """Drop all scopes if there are too many; new ones get new numbers."""
        if len(self._known) > SCOPES_MAX:
            self._known.clear()

    def of(self, shape: ShapeEntry, keys: tuple[str, ...], constraint: SpreadConstraint) -> Scope:
        """The current nodes on which a constraint of the shape counts pods.

        `keys` are the topology keys of all the shape's constraints of this kind.
        """
        return self._find(shape, keys, constraint).scope

    def present(
        self, shape: ShapeEntry, keys: tuple[str, ...], constraint: SpreadConstraint
    ) -> Bools:
        """One flag per domain of the constraint's key: whether a node of it is in the scope."""
        known = self._find(shape, keys, constraint)
        domains = self._domains.of(constraint.topology_key)
        made_at = domains.version, known.scope.version
        cached = known.present.get(constraint.topology_key)
        if cached is None or cached[0] != made_at:
            present: Bools = np.zeros(domains.count, dtype=np.bool_)
            present[domains.of_slot[known.scope.mask]] = True
            present[0] = False
            cached = known.present[constraint.topology_key] = made_at, present
        return cached[1]

    def _find(
        self, shape: ShapeEntry, keys: tuple[str, ...], constraint: SpreadConstraint
    ) -> _Known:
        affinity = constraint.node_affinity_policy == "Honor"
        taints = constraint.node_taints_policy == "Honor"
        key = shape.encoded, keys, affinity, taints
        known = self._known.get(key)
        if known is None:
            self._numbers += 1
            known = self._known[key] = _Known(Scope(self._numbers, np.zeros(0, dtype=np.bool_)), {})
        position = self._nodes.changes.position
        if known.position != position:
            known.position = position
            mask = self._nodes.exists[: self._nodes.size].copy()
            for name in keys:
                mask &= self._domains.of(name).of_slot > 0
            if affinity:
                mask &= self._by_affinity.mask(shape)[: len(mask)]
            if taints:
                mask &= self._by_taints.mask(shape)[: len(mask)]
            if not np.array_equal(mask, known.scope.mask):
                known.scope.mask = mask
                known.scope.version += 1
        return known


class PairRules:
    """The inter-pod rules on one node capacity under one configuration."""

    def __init__(self, node_capacity: NodeCapacity, terms: Terms, switches: Switches) -> None:
        self.node_capacity = node_capacity
        self.counts = node_capacity.pairs
        self.domains = node_capacity.pairs.domains
        self.switches = switches
        self._terms = terms
        self.scopes = Scopes(node_capacity.nodes, self.domains)
        self._views: dict[int, PairView] = {}
        self._ceilings: dict[int, tuple[tuple[int, int, int], Bools]] = {}

    def trim(self) -> None:
        """Drop caches that have grown too large, between two uses of the rules."""
        self.scopes.trim()
        self.domains.trim()

    def view(self, shape: ShapeEntry) -> PairView | None:
        """The rules and preferences that apply to the shape; None: none."""
        view = self._views.get(shape.id)
        if view is None or view.version != self._terms.version or view.shape is not shape:
            if len(self._views) >= _VIEWS_MAX:
                self._views.clear()
                self._ceilings.clear()
            view = self._views[shape.id] = self._look(shape)
        return None if view.empty else view

    @staticmethod
    def count(view: PairView) -> int:
        """The number of rules and preferences of a view."""
        parts = (view.apart, view.existing, view.even, view.pulls, view.preferred_even)
        return len(view.affinity_keys) + sum(map(len, parts))

    # ------------------------------------------------------------------- masks

    def allowed(self, view: PairView) -> Bools:
        """One flag per slot: whether the node accepts one pod now."""
        passing = self._near(view) & self._apart(view)
        for even in view.even:
            passing &= self.even_enough(view, even)
        return passing

    def open_now(self, view: PairView) -> Bools:
        """Like `allowed`, but spread constraints that count the shape's own pods only require
        their topology labels, because every placed pod changes them.
        """
        passing = self._near(view) & self._apart(view)
        for even in view.even:
            if even.own and even.tally is not None:
                passing &= self.of_slot(even.constraint.topology_key) > 0
            else:
                passing &= self.even_enough(view, even)
        return passing

    def ceiling(self, view: PairView) -> Bools:
        """One flag per slot: False where no pod is accepted until capacity or pods are released."""
        key = self.counts.version, self.node_capacity.nodes.changes.position, view.version
        cached = self._ceilings.get(view.shape.id)
        if cached is not None and cached[0] == key:
            return cached[1]
        passing = self._apart(view)
        for name in view.affinity_keys:
            passing &= self.of_slot(name) > 0
        for even in view.even:
            passing &= self.of_slot(even.constraint.topology_key) > 0
        if view.affinity_keys and view.affinity is None:
            passing[:] = False
        self._ceilings[view.shape.id] = key, passing
        return passing

    def total(self, view: PairView, counts: Ints) -> int:
        """Upper bound of the pods that fit, given the count per node after `ceiling`."""
        least = int(counts.sum())
        for key in view.own_apart:
            domains = self.of_slot(key)
            without = int(counts[domains == 0].sum())
            used: Bools = np.zeros(self.domains.of(key).count, dtype=np.bool_)
            used[domains[counts > 0]] = True
            used[0] = False
            least = min(least, without + int(np.count_nonzero(used)))
        return least

    def reasons(self, view: PairView, remaining: Bools) -> Counter[str]:
        """Reason text -> number of the remaining nodes that it excludes; each node counts for the
        first rule that excludes it.
        """
        counts: Counter[str] = Counter()
        left = remaining.copy()

        def refuse(passing: Bools, text: str) -> None:
            refused = left & ~passing
            count = int(np.count_nonzero(refused))
            if count:
                counts[text] += count
                np.logical_and(left, passing, out=left)

        for even in view.even:
            refuse(self.of_slot(even.constraint.topology_key) > 0, SPREAD_LABEL)
            refuse(self.even_enough(view, even), SPREAD)
        refuse(self._near(view), AFFINITY)
        refuse(self._free_of(view.apart), ANTI_AFFINITY)
        refuse(self._free_of(view.existing), EXISTING_ANTI_AFFINITY)
        return counts

    # ------------------------------------------------------------------- parts

    def of_slot(self, key: str) -> Ints:
        """Domain number of each slot; 0: none."""
        return self.domains.of(key).of_slot

    def even_counts(self, view: PairView, even: Even) -> tuple[Ints, Bools]:
        """Count per domain of a spread constraint, and a flag per domain in its scope."""
        present = self.scopes.present(view.shape, even.keys, even.constraint)
        if even.tally is None:
            return np.zeros(len(present), dtype=np.int64), present
        scope = self.scopes.of(view.shape, even.keys, even.constraint)
        return self.counts.by_domain(even.tally, even.constraint.topology_key, scope), present

    def per_slot(self, even: Even) -> Ints:
        """Count per slot of a spread constraint."""
        size = self.node_capacity.nodes.size
        if even.tally is None:
            return np.zeros(size, dtype=np.int64)
        return self.counts.per_slot(even.tally, size)

    def even_enough(self, view: PairView, even: Even) -> Bools:
        """One flag per slot: whether one more pod keeps the skew within `maxSkew`."""
        counts, present = self.even_counts(view, even)
        most = most_allowed(even, counts, present)
        domains = self.of_slot(even.constraint.topology_key)
        passing: Bools = counts[domains] <= most
        return passing & (domains > 0)

    def _apart(self, view: PairView) -> Bools:
        return self._free_of((*view.apart, *view.existing))

    def _free_of(self, rules: Iterable[Apart]) -> Bools:
        passing: Bools = np.ones(self.node_capacity.nodes.size, dtype=np.bool_)
        for rule in rules:
            counts = self.counts.by_domain(rule.tally, rule.key)
            if len(counts) == 1:
                # No node has a label of this key.
                continue
            taken = counts > 0
            if taken.any():
                passing &= ~taken[self.of_slot(rule.key)]
        return passing

    def _near(self, view: PairView) -> Bools:
        passing: Bools = np.ones(self.node_capacity.nodes.size, dtype=np.bool_)
        if not view.affinity_keys:
            return passing
        any_there = False
        everywhere = passing.copy()
        for key in view.affinity_keys:
            domains = self.of_slot(key)
            everywhere &= domains > 0
            if view.affinity is None:
                passing[:] = False
                continue
            there = self.counts.by_domain(view.affinity, key) > 0
            any_there |= bool(there.any())
            passing &= there[domains]
        # The first pod of a series may be on any node with all topology labels.
        return everywhere if not any_there and view.own_affinity else passing

    def first_of_series(self, view: PairView) -> bool:
        """Whether the shape's affinity selects its own pods and no such pod exists yet."""
        affinity = view.affinity
        if affinity is None or not view.own_affinity:
            return False
        return not any(
            bool((self.counts.by_domain(affinity, key) > 0).any()) for key in view.affinity_keys
        )

    # ------------------------------------------------------------------- views

    def _look(self, shape: ShapeEntry) -> PairView:
        view = PairView(shape, self._terms.version)
        profile = frozenset(shape.profile)
        terms = shape.terms
        switches = self.switches
        if terms is not None and switches.affinity:
            view.affinity_keys = terms.affinity_keys
            if terms.affinity is not None:
                view.affinity = terms.affinity.number
                view.own_affinity = terms.affinity.number in profile
            view.apart = tuple(Apart(matcher.number, key) for matcher, key in terms.anti)
            view.own_apart = tuple(
                sorted({key for matcher, key in terms.anti if matcher.number in profile})
            )
        about = [term for number in shape.profile for term in self._terms.about.get(number, ())]
        if switches.affinity:
            view.existing = tuple(
                Apart(term.number, term.key) for term in about if term.kind == "keeps away"
            )
        if terms is not None and switches.spread:
            view.even = _evens(terms.hard, profile)
        if switches.affinity_weight:
            carried = terms.carried if terms is not None else {}
            pulls = [
                Pull(term.number, term.key, 1, carried.get(term.number, 0))
                for term in about
                if term.kind == "attracts"
            ]
            if terms is not None:
                pulls += [
                    Pull(matcher.number, key, points, int(matcher.number in profile))
                    for matcher, key, points in terms.preferred
                ]
            view.pulls = tuple(pulls)
        if terms is not None and switches.spread_weight:
            view.preferred_even = _evens(terms.soft, profile)
        return view


def most_allowed(even: Even, counts: Ints, present: Bools) -> int:
    """Highest count at which a domain accepts one more pod."""
    known = counts[present]
    least = int(known.min()) if len(known) else NO_DOMAIN
    if len(known) < even.constraint.min_domains:
        least = 0
    return even.constraint.max_skew + least - even.own


def _evens(spreads: Iterable[Spread], profile: frozenset[int]) -> tuple[Even, ...]:
    listed = tuple(spreads)
    keys = tuple(sorted({spread.constraint.topology_key for spread in listed}))
    return tuple(
        Even(
            spread.counted.number if spread.counted is not None else None,
            int(
                spread.always_self
                or (spread.counted is not None and spread.counted.number in profile)
            ),
            spread.constraint,
            keys,
        )
        for spread in listed
    )
