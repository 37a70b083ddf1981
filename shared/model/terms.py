"""Parts of a shape that select by labels: selectors, node affinity, pod affinity, spread
constraints.

Units and ordering as in `shared.model.objects`. `matchLabelKeys` are missing: dialects merge them
into the selector with the pod's own labels, as the API server does.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal, TypeAlias

import msgspec

Labels: TypeAlias = tuple[tuple[str, str], ...]
"""(key, value) pairs, sorted by key."""


class Struct(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The base of all model structs: frozen, keyword-only, encoded without defaults."""


class TooLarge(Struct, frozen=True, kw_only=True):
    """The field of an object that is too large to be judged, and the rule that it breaks. The field
    was dropped by `shared.model.bounds`.
    """

    #: The beginning of every `text`.
    MARK: ClassVar[str] = "TooLarge: "

    #: As users find it: "spec.selector".
    field: str
    rule: str

    @property
    def text(self) -> str:
        """Both in one line, as messages show them."""
        return f"{self.MARK}{self.field} {self.rule}"


class Requirement(Struct, frozen=True, kw_only=True):
    """One selector requirement: operator is In, NotIn, Exists, DoesNotExist, Gt or Lt (the last two
    for nodes only).
    """

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class SelectorTerm(Struct, frozen=True, kw_only=True):
    """One term of a node affinity: all its requirements must hold. A term with none matches no
    node.
    """

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


class WeightedTerm(Struct, frozen=True, kw_only=True):
    """One preferred term of a node affinity; weight 1 to 100."""

    weight: int
    term: SelectorTerm


class Selector(Struct, frozen=True, kw_only=True):
    """A label selector (`metav1.LabelSelector`), its `matchLabels` written as In requirements,
    sorted. Without requirements it matches every object; None instead of a selector matches none.
    """

    requirements: tuple[Requirement, ...] = ()


class PodTerm(Struct, frozen=True, kw_only=True):
    """One term of a pod affinity or anti-affinity.

    It selects pods that match `selector`, in `namespaces` or in a namespace that matches
    `namespace_selector`. If a pod gives neither, `namespaces` has the pod's own.
    """

    selector: Selector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: Selector | None = None
    topology_key: str
    #: 1 to 100 for a preferred term, 0 for a required one.
    weight: int = 0


class PodAffinity(Struct, frozen=True, kw_only=True):
    """All pod affinity and anti-affinity terms of a pod."""

    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    preferred: tuple[PodTerm, ...] = ()
    preferred_anti: tuple[PodTerm, ...] = ()


class SpreadConstraint(Struct, frozen=True, kw_only=True):
    """`spec.topologySpreadConstraints[]`, defaults filled in."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = "DoNotSchedule"
    selector: Selector | None = None
    min_domains: int = 1
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"


def selects(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether all requirements hold; a selector without requirements selects everything."""
    return all(holds(requirement, labels) for requirement in selector.requirements)


def holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether one requirement holds; one with an unknown operator never does."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False


Resources: TypeAlias = tuple[tuple[str, int], ...]
"""(resource name, amount) pairs, sorted by name; cpu in milli-CPU, memory and storage in bytes,
others counts.
"""
