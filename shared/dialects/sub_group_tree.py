"""Sub-groups that contain each other, as KAI and Grove declare them, as sets of sub-gangs.

A sub-group with pods of its own (a leaf) needs a number of them, and is a sub-gang. One that
contains other sub-groups needs all of these, or a number of them, and is a set. The group itself is
the outermost set.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from shared.dialects.requirements import bounded
from shared.model.minimums import least_members
from shared.model.objects import NetworkTopology, SubGroup, SubGroupSet

#: Levels of sub-groups; neither API has a limit, and the planner places them by recursion.
LEVELS_MAX: Final = 8
#: Of all sub-gangs, encoded; names of pods take most of it, and a gang has 5,000 of them at most.
_BYTES_MAX: Final = 256 * 1024


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One sub-group.

    Attributes:
        path: Where it is declared, as errors name it: "spec.subGroups[0]".
        name: Its name among the sub-groups of the group.
        parent: Name of the sub-group that contains it; "": the group itself does.
        size: How many of its pods are needed; None: of a leaf one, of others as many as its
            sub-groups need.
        parts_needed: How many of its sub-groups are needed; None: all.
        topology: In which domain its pods must or should be together.
        label: Key of the label in which pods have its name; "": `pods` counts. The same for all.
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
    """The sub-groups of a group: `PodGroup.sets` and `PodGroup.sub_groups`.

    Attributes:
        minimum: How many pods they need together.
    """

    sets: tuple[SubGroupSet, ...] = ()
    sub_groups: tuple[SubGroup, ...] = ()
    minimum: int = 0


def sub_group_tree(
    title: str,
    parts: Sequence[Part],
    errors: list[str],
    *,
    path: str,
    parts_needed: int | None = None,
) -> Tree:
    """The tree of a group's sub-groups; without any, or with errors, an empty one.

    Args:
        title: What the group itself is called among its sets.
        parts: The sub-groups, in the order given.
        errors: Violations are appended.
        path: Where the sub-groups are declared.
        parts_needed: As in `Part`, of the group itself.
    """
    whole = Part(path="spec", name=title, parts_needed=parts_needed)
    children: dict[str, list[Part]] = {}
    for part in parts:
        children.setdefault(part.parent or title, []).append(part)
    # Each check needs what the one before it has found correct.
    violations = (
        [*_name_errors(whole, parts)]
        or [*_depth_errors(whole, parts)]
        or [*_number_errors(whole, children)]
    )
    errors += violations
    if violations or not parts:
        return Tree()
    sets = tuple(_sets(whole, children))
    leaves = [part for part in parts if part.name not in children]
    sub_groups = tuple(
        SubGroup(
            name=part.name,
            set_name=part.parent or title,
            label=part.label,
            pods=None if part.label else part.pods,
            size=1 if part.size is None else max(0, part.size),
            topology=part.topology,
        )
        for part in sorted(leaves, key=lambda leaf: leaf.name)
    )
    least = least_members(sets, sub_groups)
    errors += [
        f"{part.path}.minMember: {part.size}, and its sub-groups need {least[part.name]}: more "
        "pods of any of them are not supported"
        for part in parts
        if part.name in children and part.size is not None and part.size > least[part.name]
    ]
    sub_groups = bounded(sub_groups, path, errors, _BYTES_MAX)
    return Tree(sets=sets if sub_groups else (), sub_groups=sub_groups, minimum=least[title])


def _name_errors(whole: Part, parts: Sequence[Part]) -> Iterator[str]:
    """An error for each name that is empty or occurs twice, and parent that does not exist."""
    names = {whole.name}
    for part in parts:
        if not part.name:
            yield f"{part.path}.name: is empty"
        elif part.name in names:
            yield f"{part.path}.name: {part.name} is the name of two sub-groups"
        names.add(part.name)
    for part in parts:
        if part.parent and part.parent not in names:
            yield f"{part.path}.parent: there is no sub-group {part.parent}"


def _depth_errors(whole: Part, parts: Sequence[Part]) -> Iterator[str]:
    """An error for the first cycle, or for too many levels."""
    parents = {part.name: part.parent or whole.name for part in parts}
    #: Level of each sub-group from which the group itself is reached.
    levels = {whole.name: 0}
    for part in parts:
        passed: dict[str, None] = {}
        name = part.name
        while name not in levels and name not in passed:
            passed[name] = None
            name = parents[name]
        if name in passed:
            yield f"{part.path}.parent: {part.name} is in a cycle of sub-groups"
            return
        level = levels[name]
        for above in reversed(passed):
            level += 1
            levels[above] = level
        if level > LEVELS_MAX:
            yield f"{part.path}.parent: more than {LEVELS_MAX} levels of sub-groups"
            return


def _number_errors(whole: Part, children: dict[str, list[Part]]) -> Iterator[str]:
    """The errors in numbers of needed sub-groups."""
    for part in (whole, *(child for below in children.values() for child in below)):
        there, needed = len(children.get(part.name, ())), part.parts_needed
        if needed is None or 1 <= needed <= there:
            continue
        yield (
            f"{part.path}.minSubGroup: {needed}, which is not between 1 and the {there} sub-groups"
            if there
            else f"{part.path}.minSubGroup: {needed}, and it has no sub-groups"
        )


def _sets(whole: Part, children: dict[str, list[Part]]) -> Iterator[SubGroupSet]:
    """The group, and the sub-groups that contain others, each after the one that contains it."""
    queue = [whole]
    for part in queue:
        below = children[part.name]
        yield SubGroupSet(
            name=part.name,
            set_name="" if part is whole else part.parent or whole.name,
            least=part.parts_needed or len(below),
            topology=part.topology,
        )
        queue += [child for child in below if child.name in children]
