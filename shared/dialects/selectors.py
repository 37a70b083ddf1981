"""Selectors of the API as the model has them: requirements only, sorted, so that equal ones are
equal.
"""

from collections.abc import Iterable, Mapping

from shared.kube import objects as kube
from shared.model import objects as model
from shared.model.terms import Selector


def selector(found: kube.LabelSelector | None) -> Selector | None:
    """A label selector; None (it selects nothing) stays None."""
    return None if found is None else read_selector(found)


def read_selector(found: kube.LabelSelector) -> Selector:
    """A label selector."""
    equal = [
        model.Requirement(key=key, operator="In", values=(value,))
        for key, value in found.match_labels.items()
    ]
    return _sorted([*equal, *found.match_expressions])


def merged(
    found: Selector, keys: Iterable[str], operator: str, labels: Mapping[str, str]
) -> Selector:
    """The selector with one more requirement for each key that `labels` has, unless it has that
    requirement already.

    Args:
        found: The selector.
        keys: Keys of labels.
        operator: Operator of the new requirements: "In" or "NotIn".
        labels: Labels, of which the requirements take the values.
    """
    more = [
        model.Requirement(key=key, operator=operator, values=(labels[key],))
        for key in keys
        if key in labels
    ]
    new = [one for one in more if one not in found.requirements]
    return _sorted([*found.requirements, *new]) if new else found


def term(found: kube.NodeSelectorTerm) -> model.SelectorTerm:
    """A term of a node affinity."""
    return model.SelectorTerm(expressions=found.match_expressions, fields=found.match_fields)


def terms(found: kube.NodeSelector) -> tuple[model.SelectorTerm, ...]:
    return tuple(term(one) for one in found.node_selector_terms)


def _sorted(found: list[model.Requirement]) -> Selector:
    found.sort(key=lambda one: (one.key, one.operator, one.values))
    return Selector(requirements=tuple(found))
