"""The registry of inter-pod terms and spread constraints, each distinct one once.

A *matcher* selects pods; `counts` counts the pods that match it. A *carried* term is a term of
existing pods, for example the anti-affinity of a running pod, which also excludes other pods;
`counts` counts the pods that carry it. Both have a number, the *tally*.

Matchers are found by an *anchor*, a pair of label key and value that a pod must have. Finding the
matchers of a pod takes one dictionary lookup per label, however many matchers there are.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from shared.model.objects import Shape
from shared.model.terms import PodAffinity, PodTerm, Selector, SpreadConstraint, selects

Profile: TypeAlias = tuple[int, ...]
"""Numbers of the matchers that match a pod, ascending."""

CarriedKind: TypeAlias = Literal["keeps away", "attracts"]

#: Weight of a required affinity term of a running pod in scores, as in kube-scheduler; preferred
#: terms have weights of 1 to 100.
REQUIRED_WEIGHT: Final = 1


class PodMatch(NamedTuple):
    """The pods that a term selects."""

    selector: Selector
    namespaces: tuple[str, ...]
    namespace_selector: Selector | None


class Subject(NamedTuple):
    """The properties of a pod that matchers read."""

    namespace: str
    namespace_labels: Mapping[str, str]
    labels: Mapping[str, str]
    #: It is being deleted: topology spread no longer counts it, affinity still does.
    deleting: bool


class Matcher:
    """Selects the pods that all of its terms select."""

    def __init__(self, number: int, whose: tuple[PodMatch, ...], *, live: bool) -> None:
        self.number = number
        self.whose = whose
        #: Pods that are being deleted do not count.
        self.live = live
        self.anchors = _anchors(whose)
        #: Whether it depends on labels of namespaces.
        self.by_namespace = any(match.namespace_selector is not None for match in whose)

    def matches(self, subject: Subject) -> bool:
        if self.live and subject.deleting:
            return False
        return all(_means(match, subject) for match in self.whose)


class Carried(NamedTuple):
    """A term that existing pods carry. The pods that it selects are excluded from the carriers'
    domains, or attracted by its points (repelled if they are negative).
    """

    number: int
    kind: CarriedKind
    matcher: Matcher
    key: str


class Spread(NamedTuple):
    """A spread constraint and the pods that it counts; None: it counts none."""

    constraint: SpreadConstraint
    counted: Matcher | None
    #: A pod of the shape always counts itself: an empty selector matches it, but counts no pod.
    always_self: bool


class ShapeTerms(msgspec.Struct, eq=False):
    """All terms of one shape, resolved."""

    #: Selects the pods that all required affinity terms select; None: there is no such term, or one
    #: selects no pod.
    affinity: Matcher | None = None
    affinity_keys: tuple[str, ...] = ()
    anti: tuple[tuple[Matcher, str], ...] = ()
    hard: tuple[Spread, ...] = ()
    soft: tuple[Spread, ...] = ()
    #: (pods, topology key, points; negative for anti-affinity).
    preferred: tuple[tuple[Matcher, str, int], ...] = ()
    #: Tally of a carried term -> amount that each pod of the shape adds.
    carried: dict[int, int] = {}


class Terms:
    """All known matchers and carried terms; numbers are never reused."""

    def __init__(self) -> None:
        self._matchers: dict[tuple[tuple[PodMatch, ...], bool], Matcher] = {}
        self._carried: dict[tuple[CarriedKind, int, str], Carried] = {}
        self._anchored: dict[tuple[str, str], list[Matcher]] = {}
        self._unanchored: list[Matcher] = []
        self._numbers = 0
        self._described: dict[int, str] = {}
        #: Numbers of matchers of required affinity and spread: one more matching pod may make nodes
        #: eligible.
        self.attracting: set[int] = set()
        #: Carried terms by the number of the matcher that selects their pods.
        self.about: dict[int, list[Carried]] = {}
        #: New matchers, which have not been compared with pods yet.
        self.fresh: list[Matcher] = []
        #: Number of matchers and carried terms so far.
        self.version = 0

    @property
    def any(self) -> bool:
        """Whether any term selects pods by labels."""
        return bool(self._matchers)

    def read(self, shape: Shape) -> ShapeTerms | None:
        """Register and resolve the terms of a shape; None: it has none."""
        if shape.pod_affinity is None and not shape.spread:
            return None
        terms = ShapeTerms()
        if shape.pod_affinity is not None:
            self._read_affinity(terms, shape.pod_affinity)
        spreads = [self._spread(constraint, shape.namespace) for constraint in shape.spread]
        terms.hard = tuple(
            spread for spread in spreads if spread.constraint.when_unsatisfiable == "DoNotSchedule"
        )
        terms.soft = tuple(
            spread for spread in spreads if spread.constraint.when_unsatisfiable != "DoNotSchedule"
        )
        for spread in terms.hard:
            if spread.counted is not None:
                self.attracting.add(spread.counted.number)
        return terms

    def profile(self, subject: Subject) -> Profile:
        """Numbers of the matchers that match a pod."""
        numbers = [
            matcher.number
            for matcher in self._candidates(subject.labels)
            if matcher.matches(subject)
        ]
        return tuple(sorted(numbers))

    def description(self, profile: Profile) -> bytes:
        """A profile without numbers: equal for equal matchers, in any order of registration."""
        described = sorted(self._described[number] for number in profile)
        return "\n".join(described).encode()

    def by_namespace(self) -> list[Matcher]:
        return [matcher for matcher in self._matchers.values() if matcher.by_namespace]

    def copy(self) -> "Terms":
        """An independent registry with the same numbers, for hypothetical pods."""
        terms = Terms()
        terms._matchers = dict(self._matchers)
        terms._carried = dict(self._carried)
        terms._anchored = {pair: list(matchers) for pair, matchers in self._anchored.items()}
        terms._unanchored = list(self._unanchored)
        terms._numbers = self._numbers
        terms._described = dict(self._described)
        terms.attracting = set(self.attracting)
        terms.about = {number: list(carried) for number, carried in self.about.items()}
        terms.version = self.version
        return terms

    # ---------------------------------------------------------------- internal

    def _read_affinity(self, resolved: ShapeTerms, terms: PodAffinity) -> None:
        resolved.affinity_keys = tuple(term.topology_key for term in terms.affinity)
        wanted = [_pod_match(term) for term in terms.affinity]
        meant = [match for match in wanted if match is not None]
        if meant and len(meant) == len(wanted):
            resolved.affinity = self._matcher(meant)
            self.attracting.add(resolved.affinity.number)
        resolved.anti = tuple(self._resolved(terms.anti_affinity))
        for matcher, key in resolved.anti:
            self._carry(resolved, "keeps away", matcher, key, 1)
        for matcher, key in self._resolved(terms.affinity):
            self._carry(resolved, "attracts", matcher, key, REQUIRED_WEIGHT)
        preferred: list[tuple[Matcher, str, int]] = []
        for sign, listed in ((1, terms.preferred), (-1, terms.preferred_anti)):
            for term in listed:
                for matcher, key in self._resolved((term,)):
                    preferred.append((matcher, key, sign * term.weight))
                    self._carry(resolved, "attracts", matcher, key, sign * term.weight)
        resolved.preferred = tuple(preferred)

    def _resolved(self, terms: Iterable[PodTerm]) -> Iterable[tuple[Matcher, str]]:
        for term in terms:
            match = _pod_match(term)
            if match is not None:
                yield self._matcher([match]), term.topology_key

    def _spread(self, constraint: SpreadConstraint, namespace: str) -> Spread:
        selector = constraint.selector
        if selector is None:
            return Spread(constraint, None, always_self=False)
        if not selector.requirements:
            return Spread(constraint, None, always_self=True)
        match = PodMatch(selector, (namespace,), None)
        return Spread(constraint, self._matcher([match], live=True), always_self=False)

    def _carry(
        self, terms: ShapeTerms, kind: CarriedKind, matcher: Matcher, key: str, amount: int
    ) -> None:
        carried = self._carried.get((kind, matcher.number, key))
        if carried is None:
            carried = Carried(self._number(), kind, matcher, key)
            self._carried[kind, matcher.number, key] = carried
            self.about.setdefault(matcher.number, []).append(carried)
        terms.carried[carried.number] = terms.carried.get(carried.number, 0) + amount

    def _matcher(self, whose: Iterable[PodMatch], *, live: bool = False) -> Matcher:
        key = (tuple(sorted(set(whose), key=_place)), live)
        matcher = self._matchers.get(key)
        if matcher is None:
            matcher = self._matchers[key] = Matcher(self._number(), key[0], live=live)
            self._described[matcher.number] = repr(key)
            self.fresh.append(matcher)
            for pair in matcher.anchors:
                self._anchored.setdefault(pair, []).append(matcher)
            if not matcher.anchors:
                self._unanchored.append(matcher)
        return matcher

    def _candidates(self, labels: Mapping[str, str]) -> Iterable[Matcher]:
        yield from self._unanchored
        if self._anchored:
            for pair in labels.items():
                yield from self._anchored.get(pair, ())

    def _number(self) -> int:
        self.version += 1
        self._numbers += 1
        return self._numbers - 1


def _pod_match(term: PodTerm) -> PodMatch | None:
    """The pods that a term selects; None: no pod."""
    if term.selector is None:
        return None
    return PodMatch(term.selector, tuple(sorted(set(term.namespaces))), term.namespace_selector)


def _means(match: PodMatch, subject: Subject) -> bool:
    inside = subject.namespace in match.namespaces or (
        match.namespace_selector is not None
        and selects(match.namespace_selector, subject.namespace_labels)
    )
    return inside and selects(match.selector, subject.labels)


def _anchors(whose: Iterable[PodMatch]) -> tuple[tuple[str, str], ...]:
    """Label pairs of which a pod must have one to match; empty: any pod may match."""
    least: tuple[int, tuple[tuple[str, str], ...]] | None = None
    for match in whose:
        for requirement in match.selector.requirements:
            if requirement.operator == "In":
                values = sorted(set(requirement.values))
                candidate = len(values), tuple((requirement.key, value) for value in values)
                if values and (least is None or candidate < least):
                    least = candidate
    return least[1] if least is not None else ()


def _place(match: PodMatch) -> tuple[str, ...]:
    return repr(match.selector), repr(match.namespaces), repr(match.namespace_selector)
