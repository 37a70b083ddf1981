"""Selectors of the API as the model has them: requirements only, sorted, so that equal ones are
equal.
"""

from collections.abc import Iterable, Mapping

from shared.kube import objects as kube
from shared.model import objects as model
from shared.model.terms import Selector


def selector(given: kube.LabelSelector | None) -> Selector | None:
    """A label selector; None (it selects nothing) stays None."""
    return None if given is None else read_selector(given)


def read_selector(given: kube.LabelSelector) -> Selector:
    """A label selector."""
    equal = [
        model.Requirement(key=key, operator="In", values=(value,))
        for key, value in given.match_labels.items()
    ]
    return _sorted([*equal, *given.match_expressions])


def merged(
    selector: Selector, keys: Iterable[str], operator: str, labels: Mapping[str, str]
) -> Selector:
    """The selector with one more requirement for each key that `labels` has, unless it has that
    requirement already.

    Args:
        selector: The selector.
        keys: Keys of labels.
        operator: Operator of the new requirements: "In" or "NotIn".
        labels: Labels, of which the requirements take the values.
    """
    more = [
        model.Requirement(key=key, operator=operator, values=(labels[key],))
        for key in keys
        if key in labels
    ]
    new = [requirement for requirement in more if requirement not in selector.requirements]
    return _sorted([*selector.requirements, *new]) if new else selector


def term(given: kube.NodeSelectorTerm) -> model.SelectorTerm:
    """A term of a node affinity."""
    return model.SelectorTerm(expressions=given.match_expressions, fields=given.match_fields)


def terms(given: kube.NodeSelector) -> tuple[model.SelectorTerm, ...]:
    return tuple(term(alternative) for alternative in given.node_selector_terms)


def _sorted(unsorted: list[model.Requirement]) -> Selector:
    unsorted.sort(
        key=lambda requirement: (requirement.key, requirement.operator, requirement.values)
    )
    return Selector(requirements=tuple(unsorted))
