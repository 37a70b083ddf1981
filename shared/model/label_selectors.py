"""Matches label selectors as the API server does."""

from collections.abc import Mapping

from shared.model.terms import Requirement, Selector


def selects(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether all requirements hold; a selector without requirements selects everything."""
    return all(holds(one, labels) for one in selector.requirements)


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
