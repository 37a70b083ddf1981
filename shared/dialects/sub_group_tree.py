"""Sub-groups that are parts of each other, as KAI and Grove declare them.

A part with pods of its own (a leaf) needs a number of them. A part that contains other parts needs
all of these, or a number of them. The planner knows one level of sub-gangs, so each leaf becomes
one policy. What this level cannot express is an error:

* a smaller number of parts, unless these are equal leaves: then they are sub-gangs of one policy;
* a required domain for some of the leaves together. A preferred one is left out.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from shared.dialects.requirements import bounded
from shared.model.objects import NetworkTopology, SubGroup
from shared.model.terms import Requirement, Selector

#: Of all policies, encoded; names of pods take most of it, and a gang has 5,000 of them at most.
_BYTES_MAX: Final = 256 * 1024


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One sub-group.

    Attributes:
        path: Where it is declared, as errors name it: "spec.subGroups[0]".
        name: Its name among the parts of the group.
        parent: Name of the part that contains it; "": the group itself does.
        size: How many of its pods are needed; None: as many as its parts need.
        parts_needed: How many of its parts are needed; None: all.
        topology: In which domain its pods must or should be together.
        label: Key of the label in which pods have its name; "": `pods` counts.
        pods: Names of its pods, sorted.
    """

    path: str
    name: str
    parent: str = ""
    size: int | None = None
    parts_needed: int | None = None
    topology: NetworkTopology | None = None
    label: str = ""
    pods: tuple[str, ...] = ()


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """The sub-groups of a group.

    Attributes:
        policies: In the order of the parts.
        minimum: How many pods they need together.
        topology: The domain of a part that contains all others, which is the whole group's.
    """

    policies: tuple[SubGroup, ...] = ()
    minimum: int = 0
    topology: NetworkTopology | None = None


def sub_group_tree(
    parts: Sequence[Part], errors: list[str], *, path: str, parts_needed: int | None = None
) -> Tree:
    """The policies of a group's sub-groups.

    Args:
        parts: The sub-groups, in the order given.
        errors: Violations are appended.
        path: Where the sub-groups are declared.
        parts_needed: As in `Part`, of the group itself.
    """
    before = len(errors)
    _check_names(parts, errors)
    if len(errors) > before or not parts:
        return Tree()
    tree = _Tree(parts, errors)
    policies = tree.policies("", "spec", parts_needed)
    return Tree(
        policies=bounded(tuple(policies), path, errors, _BYTES_MAX),
        minimum=sum(one.size * one.min_sub_groups for one in policies),
        topology=tree.topology,
    )


def _check_names(parts: Sequence[Part], errors: list[str]) -> None:
    """Append an error for each name that occurs twice, parent that does not exist, and cycle."""
    parents: dict[str, str] = {}
    for part in parts:
        if not part.name:
            errors.append(f"{part.path}.name: is empty")
        elif part.name in parents:
            errors.append(f"{part.path}.name: {part.name} is the name of two sub-groups")
        parents[part.name] = part.parent
    errors += [
        f"{part.path}.parent: there is no sub-group {part.parent}"
        for part in parts
        if part.parent and part.parent not in parents
    ]
    #: Names from which the group itself is reached.
    grounded = {""}
    for part in parts:
        passed: dict[str, None] = {}
        name = part.name
        while name not in grounded and name not in passed and name in parents:
            passed[name] = None
            name = parents[name]
        if name in passed:
            errors.append(f"{part.path}.parent: {part.name} is in a cycle of sub-groups")
            return
        grounded.update(passed)


class _Tree:
    """The conversion of checked parts."""

    def __init__(self, parts: Sequence[Part], errors: list[str]) -> None:
        self._errors = errors
        self._children: dict[str, list[Part]] = {}
        for part in parts:
            self._children.setdefault(part.parent, []).append(part)
        self._leaves = sum(part.name not in self._children for part in parts)
        self.topology: NetworkTopology | None = None

    def policies(self, name: str, path: str, parts_needed: int | None) -> list[SubGroup]:
        """The policies of the parts that a part, or the group, contains."""
        found: list[SubGroup] = []
        #: What remains to be converted, the next one last: a chain of parts may be long.
        open_parts = self._needed(name, path, parts_needed, found)
        while open_parts:
            part = open_parts.pop()
            if part.name in self._children:
                open_parts += self._container(part, found)
            else:
                found.append(_policy(part))
        return found

    def _container(self, part: Part, found: list[SubGroup]) -> list[Part]:
        """The parts of a part that contains others."""
        count, least = self._below(part)
        if part.size is not None and part.size > least:
            self._errors.append(
                f"{part.path}.minMember: {part.size}, and its sub-groups need {least}: more pods "
                "of any of them are not supported"
            )
        parts = self._needed(part.name, part.path, part.parts_needed, found)
        if part.topology is None:
            return parts
        if count == self._leaves and self.topology is None:
            self.topology = part.topology
        elif len(parts) == 1 and parts[0].topology is None:
            return [msgspec.structs.replace(parts[0], topology=part.topology)]
        elif part.topology.mode == "hard":
            self._errors.append(
                f"{part.path}: a required domain for several sub-groups of many is not supported"
            )
        return parts

    def _needed(
        self, name: str, path: str, number: int | None, found: list[SubGroup]
    ) -> list[Part]:
        """The parts that are all needed, last one first. Equal parts of which fewer are needed
        become a policy in `found` instead.
        """
        parts = self._children[name]
        if number is None or number == len(parts):
            return parts[::-1]
        if not 1 <= number < len(parts):
            self._errors.append(
                f"{path}.minSubGroup: {number}, which is not between 1 and the {len(parts)} "
                "sub-groups"
            )
        elif not self._are_equal(parts):
            self._errors.append(
                f"{path}.minSubGroup: fewer than all sub-groups are supported only if these have "
                "no sub-groups, and equal minima and constraints"
            )
        else:
            first = parts[0]
            names = tuple(sorted(part.name for part in parts))
            found.append(
                msgspec.structs.replace(
                    _policy(first),
                    name=name or "sub-groups",
                    selector=_names_one_of(first.label, names),
                    match_label_keys=(first.label,),
                    min_sub_groups=number,
                )
            )
        return []

    def _are_equal(self, parts: list[Part]) -> bool:
        kinds = {(part.size, part.topology, part.label) for part in parts}
        leaves = all(part.name not in self._children for part in parts)
        return leaves and len(kinds) == 1 and bool(parts[0].label)

    def _below(self, part: Part) -> tuple[int, int]:
        """The number of leaves below a part, and how many pods these need together."""
        count = least = 0
        open_parts = [part]
        while open_parts:
            here = open_parts.pop()
            children = self._children.get(here.name)
            if children is None:
                count += 1
                least += _size(here)
            else:
                open_parts += children
        return count, least


def _policy(part: Part) -> SubGroup:
    return SubGroup(
        name=part.name,
        pods=None if part.label else part.pods,
        selector=_names_one_of(part.label, (part.name,)) if part.label else None,
        size=_size(part),
        min_sub_groups=1,
        topology=part.topology,
    )


def _size(part: Part) -> int:
    return max(1, part.size or 0)


def _names_one_of(label: str, names: tuple[str, ...]) -> Selector:
    return Selector(requirements=(Requirement(key=label, operator="In", values=names),))
