"""Label selectors mean what the API server means by them."""

import pytest

from shared.model.terms import Requirement, Selector, selects

LABELS = {"app": "train", "tier": ""}


@pytest.mark.parametrize(
    ("key", "operator", "values", "holds"),
    [
        ("app", "In", ("serve", "train"), True),
        ("app", "In", ("serve",), False),
        ("gone", "In", ("serve",), False),
        ("app", "NotIn", ("serve",), True),
        ("app", "NotIn", ("train",), False),
        ("gone", "NotIn", ("train",), True),
        ("tier", "Exists", (), True),
        ("gone", "Exists", (), False),
        ("tier", "DoesNotExist", (), False),
        ("gone", "DoesNotExist", (), True),
        ("app", "Like", ("train",), False),
    ],
)
def test_a_requirement_holds_as_its_operator_says(
    key: str, operator: str, values: tuple[str, ...], holds: bool
) -> None:
    one = Requirement(key=key, operator=operator, values=values)

    assert selects(Selector(requirements=(one,)), LABELS) == holds


def test_all_requirements_must_hold_and_none_hold_everywhere() -> None:
    has, lacks = Requirement(key="app", operator="Exists"), Requirement(key="b", operator="Exists")

    assert not selects(Selector(requirements=(has, lacks)), LABELS)
    assert selects(Selector(), {})
