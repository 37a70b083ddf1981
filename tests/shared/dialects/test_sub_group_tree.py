"""Sub-groups that contain each other, as one level of sub-gangs."""

import pytest

from shared.dialects.sub_group_tree import Part, Tree, sub_group_tree
from shared.model.objects import NetworkTopology, SubGroup
from shared.model.terms import Requirement, Selector

RACK = NetworkTopology(label_key="rack")
NEAR = NetworkTopology(mode="soft", label_key="rack")


def part(name: str, size: int | None = 1, parent: str = "", **more: object) -> Part:
    return Part(path=f"parts[{name}]", name=name, size=size, parent=parent, label="part", **more)  # type: ignore[arg-type]


def tree(*parts: Part, parts_needed: int | None = None) -> Tree:
    """The tree of parts without errors."""
    errors: list[str] = []
    found = sub_group_tree(parts, errors, path="parts", parts_needed=parts_needed)
    assert errors == []
    return found


def errors(*parts: Part, parts_needed: int | None = None) -> list[str]:
    found: list[str] = []
    sub_group_tree(parts, found, path="parts", parts_needed=parts_needed)
    return found


def sizes(found: Tree) -> list[tuple[str, int]]:
    return [(one.name, one.size) for one in found.policies]


def test_a_leaf_is_a_policy_that_selects_its_pods_by_the_label_or_by_name() -> None:
    found = tree(part("a", 2), Part(path="b", name="b", size=3, pods=("x", "y"), topology=RACK))
    named = Selector(requirements=(Requirement(key="part", operator="In", values=("a",)),))
    assert found == Tree(
        policies=(
            SubGroup(name="a", selector=named, size=2, min_sub_groups=1),
            SubGroup(name="b", pods=("x", "y"), size=3, min_sub_groups=1, topology=RACK),
        ),
        minimum=5,
    )
    assert tree() == Tree()


def test_all_leaves_of_all_parts_are_needed_in_their_order() -> None:
    found = tree(
        part("b", None),
        part("b-leader", 1, "b"),
        part("b-workers", 3, "b"),
        part("a", 2),
        part("c", 0),
    )
    assert sizes(found) == [("b-leader", 1), ("b-workers", 3), ("a", 2), ("c", 1)]
    assert found.minimum == 7


def test_a_long_chain_of_parts_is_read() -> None:
    chain = [part(str(number), None, str(number - 1)) for number in range(1, 3000)]
    assert sizes(tree(part("0", None), *chain)) == [("2999", 1)]


def test_some_of_equal_leaves_are_sub_gangs_of_one_policy() -> None:
    found = tree(part("a", 2), part("b", 2), part("c", 2), parts_needed=2)
    (policy,) = found.policies
    assert (policy.size, policy.min_sub_groups, policy.match_label_keys) == (2, 2, ("part",))
    assert policy.selector == Selector(
        requirements=(Requirement(key="part", operator="In", values=("a", "b", "c")),)
    )
    assert found.minimum == 4
    nested = tree(
        part("x", 1), part("y", None, parts_needed=1), part("a", 2, "y"), part("b", 2, "y")
    )
    assert sizes(nested) == [("x", 1), ("y", 2)]
    assert sizes(tree(part("a"), part("b"), parts_needed=2)) == [("a", 1), ("b", 1)]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (errors(part("a"), part("a")), ["parts[a].name: a is the name of two sub-groups"]),
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


@pytest.mark.parametrize(
    "parts",
    [
        (part("a", 1), part("b", 2)),
        (part("a", 1), part("b", 1, topology=RACK)),
        (part("a", None), part("b", 1, "a"), part("c", None), part("d", 1, "c")),
    ],
)
def test_some_of_unequal_parts_are_not_supported(parts: tuple[Part, ...]) -> None:
    (found,) = errors(*parts, parts_needed=1)
    assert found.startswith("spec.minSubGroup: fewer than all sub-groups are supported only if")


def test_the_domain_of_a_part_is_that_of_the_group_or_of_its_only_leaf() -> None:
    whole = tree(part("all", None, topology=RACK), part("a", 1, "all"), part("b", 1, "all"))
    assert whole.topology == RACK
    assert [one.topology for one in whole.policies] == [None, None]
    alone = tree(part("x"), part("y", None, topology=RACK), part("a", 1, "y"))
    assert alone.topology is None
    assert [one.topology for one in alone.policies] == [None, RACK]


def test_a_required_domain_for_some_leaves_is_not_supported_and_a_preferred_one_left_out() -> None:
    def parts(topology: NetworkTopology) -> tuple[Part, ...]:
        pair = part("y", None, topology=topology)
        return part("x"), pair, part("a", 1, "y"), part("b", 1, "y")

    (found,) = errors(*parts(RACK))
    assert found == ("parts[y]: a required domain for several sub-groups of many is not supported")
    assert tree(*parts(NEAR)).topology is None


def test_too_many_sub_groups_are_an_error() -> None:
    (found,) = errors(*(part(f"{number:0>40}") for number in range(2000)))
    assert found.startswith("parts: takes more than")
