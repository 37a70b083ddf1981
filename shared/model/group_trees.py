"""Trees of groups: groups of groups (`PodGroup.min_groups`), and the groups of pods below them.

A tree is one gang, because enough of its groups start together or none does. The gang has the key
of the tree's outermost group, also while that object is missing: then it waits for it like any gang
whose group object is missing. `GroupTrees.group_of_gang` is the gang's group, made from all objects
of the tree: each group of pods is a sub-gang, each group of groups a set of sub-gangs.

A tree is invalid, and never planned, if groups form a cycle, if it has more than `LEVELS_MAX`
levels, if its groups were made from different objects, or if a group of it has errors itself.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from shared.model.gang_keys import GangKey, key_of_group
from shared.model.minimums import least_members
from shared.model.objects import PodGroup, SubGroup, SubGroupSet

#: Levels of a tree, the groups of pods included: the limit of Kubernetes' API.
LEVELS_MAX: Final = 4
#: Parents that are followed to find a tree. A group with more is in a tree of its own, invalid too.
_STEPS_MAX: Final = 2 * LEVELS_MAX
_ERRORS_MAX: Final = 5


class Moved(NamedTuple):
    """A group whose members belong to another gang now."""

    key: GangKey
    before: GangKey


class GroupTrees:
    """The groups that are in trees, by key."""

    def __init__(self) -> None:
        self._groups: dict[GangKey, PodGroup] = {}
        #: Key of a parent, which may not exist -> keys of its groups.
        self._children: dict[GangKey, dict[GangKey, None]] = {}
        self._gangs: dict[GangKey, GangKey] = {}
        self._key_by_uid: dict[str, GangKey] = {}

    def gang_of(self, key: GangKey) -> GangKey:
        """The key of the gang whose members name the group of this key."""
        return self._gangs.get(key, key)

    def group(self, key: GangKey) -> PodGroup | None:
        """The group of this key, if it is in a tree, as its object declares it."""
        return self._groups.get(key)

    def is_part(self, uid: str) -> bool:
        """Whether an object is in a tree and is not its outermost group."""
        key = self._key_by_uid.get(uid)
        return key is not None and self._gangs[key] != key

    def put(self, group: PodGroup) -> list[Moved]:
        """Add or update a group of a tree; return the groups that have moved to another gang."""
        key = key_of_group(group)
        before = self._groups.get(key)
        self._groups[key] = group
        if before is not None:
            del self._key_by_uid[before.uid]
        self._key_by_uid[group.uid] = key
        if before is not None:
            if parent_of(before) == parent_of(group):
                return []
            self._unlink(key, before)
        if group.parent:
            self._children.setdefault(parent_of(group), {})[key] = None
        return self._follow(key)

    def remove(self, group: PodGroup) -> list[Moved]:
        """Remove a group; nothing happens if another object has its name by now."""
        key = key_of_group(group)
        if self._key_by_uid.pop(group.uid, None) is None:
            return []
        del self._groups[key]
        self._unlink(key, group)
        return self._follow(key)

    def parts(self, gang: GangKey) -> list[PodGroup]:
        """The groups of a gang's tree without the outermost one, each after its parent; empty for a
        gang that is no tree.
        """
        if not self._gangs:
            return []
        return [self._groups[key] for key in self._below(gang) if key != gang]

    def group_of_gang(self, gang: GangKey) -> PodGroup | None:
        """The group of the gang of this key, if that is the outermost one of a tree; else None."""
        root = self._groups.get(gang)
        if root is None or self._gangs[gang] != gang:
            return None
        parts = self.parts(gang)
        errors = self._errors(gang, root, parts)
        if errors or root.min_groups is None:
            return msgspec.structs.replace(root, errors=errors)
        sets = [
            SubGroupSet(
                name=group.name,
                set_name=group.parent if group is not root else "",
                least=group.min_groups,
                topology=group.topology if group is not root else None,
                disrupted_whole=group.disrupted_whole,
            )
            for group in (root, *parts)
            if group.min_groups is not None
        ]
        sub_groups = [
            SubGroup(
                name=group.name,
                set_name=group.parent,
                size=max(1, group.min_member),
                topology=group.topology,
            )
            for group in parts
            if group.min_groups is None
        ]
        return msgspec.structs.replace(
            root,
            min_member=max(1, least_members(sets, sub_groups)[root.name]),
            sets=tuple(sets),
            sub_groups=tuple(sorted(sub_groups, key=lambda sub_group: sub_group.name)),
            queue=root.queue or next((group.queue for group in parts if group.queue), ""),
            preempts=all(group.preempts for group in (root, *parts)),
            run_limit_s=min(
                (group.run_limit_s for group in (root, *parts) if group.run_limit_s), default=0
            ),
        )

    def _errors(self, gang: GangKey, root: PodGroup, parts: list[PodGroup]) -> tuple[str, ...]:
        errors = [*root.errors]
        if root.parent:
            errors.append(self._no_root(gang))
        elif any(self._level(key_of_group(group)) > LEVELS_MAX for group in parts):
            errors.append(f"the tree of {root.name} has more than {LEVELS_MAX} levels of groups")
        sources = {group.made_from for group in (root, *parts)}
        if len(sources) > 1:
            named = ", ".join(sorted(source or "none" for source in sources)[:_ERRORS_MAX])
            errors.append(f"groups of the tree of {root.name} name different Workloads: {named}")
        priorities = {group.priority for group in (root, *parts) if group.priority is not None}
        if len(priorities) > 1:
            listed = ", ".join(str(priority) for priority in sorted(priorities)[:_ERRORS_MAX])
            errors.append(f"groups of the tree of {root.name} have different priorities: {listed}")
        errors += [f"{group.name}: {error}" for group in parts for error in group.errors]
        return tuple(errors[:_ERRORS_MAX])

    def _no_root(self, gang: GangKey) -> str:
        """Why a gang is the outermost one of its tree although it names a parent."""
        above = self._above(gang)
        if gang in above:
            names = " → ".join(key[2] for key in above[: above.index(gang) + 1])
            return f"its parents form a cycle: {gang[2]} → {names}"
        return f"it has more than {LEVELS_MAX} levels of groups above it"

    def _follow(self, key: GangKey) -> list[Moved]:
        """Find the gangs again of a group that has changed, and of all below it."""
        moved: list[Moved] = []
        for below in [*self._below(key)]:
            before = self.gang_of(below)
            if below in self._groups:
                self._gangs[below] = self._root(below)
            else:
                self._gangs.pop(below, None)
            if self.gang_of(below) != before:
                moved.append(Moved(below, before))
        return moved

    def _root(self, key: GangKey) -> GangKey:
        above = self._above(key)
        if not above:
            return key
        last = self._groups.get(above[-1])
        if last is None or not last.parent:
            return above[-1]
        if parent_of(last) in above:
            # All groups of a cycle, and those below it, are one gang.
            return min(above[above.index(parent_of(last)) :])
        return key

    def _above(self, key: GangKey) -> list[GangKey]:
        """The parents of a group, nearest first, the last of which may be missing; those of a cycle
        once, and at most `_STEPS_MAX`.
        """
        above: list[GangKey] = []
        group = self._groups.get(key)
        while group is not None and group.parent and len(above) < _STEPS_MAX:
            parent = parent_of(group)
            if parent in above:
                break
            above.append(parent)
            group = self._groups.get(parent)
        return above

    def _level(self, key: GangKey) -> int:
        return len(self._above(key)) + 1

    def _below(self, key: GangKey) -> Iterator[GangKey]:
        """A group and all groups below it, each after its parent, by name."""
        seen = {key: 0}
        queue = [key]
        for here in queue:
            yield here
            if seen[here] == _STEPS_MAX:
                continue
            for child in sorted(self._children.get(here, ())):
                if child not in seen:
                    seen[child] = seen[here] + 1
                    queue.append(child)

    def _unlink(self, key: GangKey, group: PodGroup) -> None:
        if not group.parent:
            return
        children = self._children[parent_of(group)]
        del children[key]
        if not children:
            del self._children[parent_of(group)]


def is_in_tree(group: PodGroup) -> bool:
    """Whether a group has a parent, or is a group of groups."""
    return bool(group.parent) or group.min_groups is not None


def parent_of(group: PodGroup) -> GangKey:
    """The key of the group that a group names as its parent, whether or not that exists."""
    return group.parent_scope, group.namespace, group.parent
