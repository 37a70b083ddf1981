"""Reports on trees of groups: the groups in them, and what the files lack of them. Pure."""

from collections.abc import Iterator, Mapping

from shared.contracts.visibility import ExplainedGroup
from shared.model.gang_keys import GangKey, key_of_group
from shared.model.group_trees import GroupTrees, parent_of
from shared.model.objects import NetworkTopology, PodGroup


def in_words(topology: NetworkTopology) -> str:
    """Where pods must be, or should be if possible."""
    if topology.label_key:
        domain = f"one value of the node label {topology.label_key}"
    elif topology.highest_tier_name:
        domain = f"one HyperNode of at most tier {topology.highest_tier_name}"
    elif topology.highest_tier:
        domain = f"one HyperNode of at most tier {topology.highest_tier}"
    else:
        domain = "one HyperNode"
    return f"inside {domain}" + ("" if topology.mode == "hard" else ", if possible")


class Tree:
    """One tree, as far as the files have it."""

    def __init__(self, trees: GroupTrees, key: GangKey, counts: Mapping[GangKey, int]) -> None:
        """Of the gang with this key; `counts`: pods in the files by the group that they name."""
        self._key = key
        self._counts = counts
        self._root = trees.group(key)
        self._parts = trees.parts(key)
        self._inside: dict[GangKey, list[PodGroup]] = {}
        for part in self._parts:
            self._inside.setdefault(parent_of(part), []).append(part)

    def __bool__(self) -> bool:
        return self._root is not None or bool(self._parts)

    @property
    def objects(self) -> int:
        """Number of its group objects in the files."""
        return len(self._parts) + (self._root is not None)

    def reports(self) -> Iterator[ExplainedGroup]:
        """Each group of it, followed by the groups in it."""
        seen: set[GangKey] = set()

        def below(key: GangKey, level: int) -> Iterator[ExplainedGroup]:
            for inner_group in self._inside.get(key, ()):
                if (inner := key_of_group(inner_group)) not in seen:
                    seen.add(inner)
                    yield self._report(inner_group, level)
                    yield from below(inner, level + 1)

        if self._root is not None:
            seen.add(self._key)
            yield self._report(self._root, 1)
        yield from below(self._key, 2)

    def _report(self, group: PodGroup, level: int) -> ExplainedGroup:
        key, is_set = key_of_group(group), group.min_groups is not None
        return ExplainedGroup(
            name=group.name,
            parent=group.parent,
            level=level,
            of="groups" if is_set else "pods",
            count=len(self._inside.get(key, ())) if is_set else self._counts.get(key, 0),
            minimum=_minimum(group),
            topology=in_words(group.topology) if group.topology is not None else "",
        )

    def missing(self, *, stored: bool) -> Iterator[str]:
        """What is not in the files, so that the tree waits for it. `stored`: as of `Gangs`."""
        if self._root is None:
            scope, namespace, name = self._key
            named = ", ".join(part.name for part in self._inside.get(self._key, ()))
            lacks = "does not exist" if stored else "is not in these files"
            yield (
                f"the parent {namespace}/{name} ({scope}) of {named} {lacks}: the tree waits until "
                "it exists"
            )
            return
        ready = self._ready()
        if stored or self._is_complete(self._root, ready):
            return
        for group in (self._root, *self._parts):
            if group.min_groups is not None and not self._is_complete(group, ready):
                yield (
                    f"{ready[key_of_group(group)]} of {group.min_groups} groups of {group.name} "
                    "have all their pods in these files: the tree waits for the rest"
                )

    def _ready(self) -> dict[GangKey, int]:
        """Group -> number of its pods, or of the complete groups in it."""
        ready: dict[GangKey, int] = {}
        # Each group comes after the one that it is in.
        for group in reversed([*([self._root] if self._root else ()), *self._parts]):
            key = key_of_group(group)
            if group.min_groups is None:
                ready[key] = self._counts.get(key, 0)
            else:
                inside = self._inside.get(key, ())
                ready[key] = sum(self._is_complete(each, ready) for each in inside)
        return ready

    @staticmethod
    def _is_complete(group: PodGroup, ready: Mapping[GangKey, int]) -> bool:
        return ready.get(key_of_group(group), 0) >= _minimum(group)


def _minimum(group: PodGroup) -> int:
    """How many groups, or pods, of a group start together."""
    return group.min_groups if group.min_groups is not None else max(1, group.min_member)
