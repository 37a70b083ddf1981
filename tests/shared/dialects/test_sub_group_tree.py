"""Sub-groups that contain each other, as sets of sub-gangs."""

import pytest

from shared.dialects.sub_group_tree import LEVELS_MAX, Part, Tree, sub_group_tree
from shared.model.objects import NetworkTopology, SubGroup, SubGroupSet

RACK = NetworkTopology(label_key="rack")


def part(name: str, size: int | None = 1, parent: str = "", **more: object) -> Part:
    return Part(path=f"parts[{name}]", name=name, size=size, parent=parent, label="part", **more)  # type: ignore[arg-type]


def tree(*parts: Part, parts_needed: int | None = None) -> Tree:
    """The tree of parts without errors."""
    errors: list[str] = []
    found = sub_group_tree("all", parts, errors, path="parts", parts_needed=parts_needed)
    assert errors == []
    return found


def errors(*parts: Part, parts_needed: int | None = None) -> list[str]:
    found: list[str] = []
    sub_group_tree("all", parts, found, path="parts", parts_needed=parts_needed)
    return found


def test_a_leaf_is_a_sub_gang_that_finds_its_pods_by_the_label_or_by_name() -> None:
    assert tree(part("a", 2, topology=RACK)) == Tree(
        sets=(SubGroupSet(name="all", least=1),),
        sub_groups=(SubGroup(name="a", set_name="all", label="part", size=2, topology=RACK),),
        minimum=2,
    )
    (named,) = tree(Part(path="b", name="b", size=3, pods=("x", "y"))).sub_groups
    assert named == SubGroup(name="b", set_name="all", pods=("x", "y"), size=3)
    assert tree() == Tree()


def test_a_sub_group_with_others_is_a_set_with_its_number_and_its_domain() -> None:
    found = tree(
        part("b", None, topology=RACK),
        part("b-workers", 3, "b"),
        part("b-leader", 1, "b"),
        part("a", 2),
        part("c", None, parts_needed=1),
        part("c-1", 4, "c"),
        part("c-0", 5, "c"),
    )
    assert found.sets == (
        SubGroupSet(name="all", least=3),
        SubGroupSet(name="b", set_name="all", least=2, topology=RACK),
        SubGroupSet(name="c", set_name="all", least=1),
    )
    assert [(one.name, one.set_name, one.size) for one in found.sub_groups] == [
        ("a", "all", 2),
        ("b-leader", "b", 1),
        ("b-workers", "b", 3),
        ("c-0", "c", 5),
        ("c-1", "c", 4),
    ]
    assert found.minimum == 2 + 4 + 4


def test_the_smallest_of_unequal_sub_groups_are_the_minimum() -> None:
    found = tree(part("a", 1), part("b", 4), part("c", 2), parts_needed=2)
    assert (found.sets[0].least, found.minimum) == (2, 3)


def test_a_size_of_zero_needs_no_pods_and_none_needs_one() -> None:
    found = tree(part("a", 0), part("b", None))
    assert [one.size for one in found.sub_groups] == [0, 1]
    assert found.minimum == 1


def chain(levels: int) -> list[Part]:
    """Sub-groups of which each contains the next, in an order in which none is known before."""
    return [part(str(level), None, str(level - 1) if level else "") for level in range(levels)][
        ::-1
    ]


def test_levels_are_limited() -> None:
    assert len(tree(*chain(LEVELS_MAX)).sets) == LEVELS_MAX
    for levels in (LEVELS_MAX + 1, 3_000):
        (found,) = errors(*chain(levels))
        assert found.endswith(f".parent: more than {LEVELS_MAX} levels of sub-groups")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (errors(part("a"), part("a")), ["parts[a].name: a is the name of two sub-groups"]),
        (errors(part("all")), ["parts[all].name: all is the name of two sub-groups"]),
        (errors(part("")), ["parts[].name: is empty"]),
        (errors(part("a", parent="b")), ["parts[a].parent: there is no sub-group b"]),
        (errors(part("a", parent="a")), ["parts[a].parent: a is in a cycle of sub-groups"]),
        (
            errors(part("x"), part("a", parent="b"), part("b", parent="a")),
            ["parts[a].parent: a is in a cycle of sub-groups"],
        ),
        (
            errors(part("a"), parts_needed=2),
            ["spec.minSubGroup: 2, which is not between 1 and the 1 sub-groups"],
        ),
        (
            errors(part("a"), part("b"), parts_needed=0),
            ["spec.minSubGroup: 0, which is not between 1 and the 2 sub-groups"],
        ),
        (errors(parts_needed=1), ["spec.minSubGroup: 1, and it has no sub-groups"]),
        (
            errors(part("a", parts_needed=1)),
            ["parts[a].minSubGroup: 1, and it has no sub-groups"],
        ),
        (
            errors(part("a", 3), part("b", 1, "a"), part("c", 1, "a")),
            [
                "parts[a].minMember: 3, and its sub-groups need 2: more pods of any of them are "
                "not supported"
            ],
        ),
    ],
)
def test_an_error_names_the_sub_group_and_the_rule(found: list[str], expected: list[str]) -> None:
    assert found == expected


def test_too_many_sub_groups_are_an_error() -> None:
    (found,) = errors(*(part(f"{number:0>40}") for number in range(5000)))
    assert found.startswith("parts: takes more than")
