"""A gang's minimum, priority and queue as its members declare them, or its whole group: one rule
for planner and observer.

A group object's minimum counts if there is one. Otherwise the annotations of the existing members
count. Members may disagree, briefly while a user changes them one by one, or permanently. Then:

* Of minima (`scheduling.k8s.io/group-min-member`) the largest counts, so that no gang starts with
  fewer members than one of them requires.
* Of whole groups (`Pod.declared_group`) the one with the largest minimum counts. If these have
  minima of roles, each member knows that of its own role only: then the largest minimum of each
  role counts, the group's minimum is at least their sum, and the errors of all groups count.
* Of priorities the highest counts.
* Of queues (`scheduling.volcano.sh/queue-name`) the one that most members name counts; with a tie,
  the first by name.

A member that has ended or is being deleted counts only if no other member declares anything. A
member that names no minimum, or no queue, has no influence on it. Members that are gone leave no
trace, so a restarted process decides the same.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from shared.model.objects import Pod, PodGroup, SubGroup, SubGroupSet

_encode: Final = msgspec.msgpack.Encoder().encode
_ENDED: Final = frozenset({"Succeeded", "Failed"})
#: Errors of one group that messages name.
_ERRORS_MAX: Final = 10
_Values: TypeAlias = dict[tuple[int, int, str, PodGroup | None], int]


class Declared(NamedTuple):
    """The values in force among those that the members declare."""

    #: 0: no member names one.
    minimum: int
    #: None: there are no members.
    priority: int | None
    #: "": no member names one.
    queue: str
    #: None: no member declares the whole group.
    group: PodGroup | None = None


_NOTHING: Final = Declared(0, None, "")


class MemberDeclarations:
    """Counts the members of one gang by the values that they declare.

    The cost of a change grows with the number of distinct sets of values (one in nearly every
    gang), not with the number of members.
    """

    __slots__ = ("_current", "_ended", "declared", "disagree", "misdirected")

    def __init__(self) -> None:
        self._current: _Values = {}
        self._ended: _Values = {}
        self.declared = _NOTHING
        #: Whether members name different minima, or different queues.
        self.disagree = False
        #: Number of members that name a scheduler which does not read their gang.
        self.misdirected = 0

    def add(self, pod: Pod) -> bool:
        """A pod became a member; returns whether `declared` or `disagree` has changed."""
        return self._count(pod, 1) and self._judge()

    def remove(self, pod: Pod) -> bool:
        """A pod, given in the version that was added last, has left the gang; returns whether
        `declared` or `disagree` has changed.
        """
        return self._count(pod, -1) and self._judge()

    def replace(self, before: Pod, pod: Pod) -> bool:
        """A member has changed; returns whether `declared` or `disagree` has changed."""
        # Compared field by field, because this is called for every change of a pod.
        if (
            pod.group_min_member == before.group_min_member
            and pod.priority == before.priority
            and pod.queue == before.queue
            and pod.declared_group == before.declared_group
            and _has_ended(pod) == _has_ended(before)
            and pod.misdirected == before.misdirected
        ):
            return False
        changed = self._count(before, -1)
        return (self._count(pod, 1) or changed) and self._judge()

    def minima(self) -> tuple[int, ...]:
        """The distinct minima that members name and that count, ascending."""
        return tuple(
            sorted(
                {minimum for minimum, _, _, _ in self._current if minimum}
                or {minimum for minimum, _, _, _ in self._ended if minimum}
            )
        )

    def queues(self) -> tuple[str, ...]:
        """The distinct queues that members name and that count, by name."""
        return tuple(sorted(_queues(self._current) or _queues(self._ended)))

    def _count(self, pod: Pod, by: int) -> bool:
        """Add `by` to the count of a pod's values; returns whether `declared` may change."""
        self.misdirected += by * pod.misdirected
        values = self._ended if _has_ended(pod) else self._current
        key = _values(pod)
        count = values.get(key, 0) + by
        if count:
            values[key] = count
        else:
            del values[key]
        # With several sets, the numbers of members decide as well.
        return count in (0, 1) or len(values) > 1

    def _judge(self) -> bool:
        before = self.declared, self.disagree
        values = self._current or self._ended
        minima, queues = self.minima(), _queues(self._current) or _queues(self._ended)
        groups = {group for _, _, _, group in values if group is not None}
        self.declared = Declared(
            minima[-1] if minima else 0,
            max((priority for _, priority, _, _ in values), default=None),
            min(queues, key=lambda name: (-queues[name], name), default=""),
            _joined(groups),
        )
        self.disagree = len(minima) > 1 or len(queues) > 1
        return (self.declared, self.disagree) != before


def group_declared_by(pods: Iterable[Pod]) -> PodGroup | None:
    """The group that these members of one gang declare; None: none of them declares it."""
    declarations = MemberDeclarations()
    for pod in pods:
        declarations.add(pod)
    return declarations.declared.group


def binding_role_minima(
    minimum: int, role_minima: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, int], ...]:
    """The minima per role that are in force: as in Volcano, all of them if the gang's own minimum
    is at least their sum, else none. The gang's minimum is in force in any case.

    Args:
        minimum: The gang's minimum.
        role_minima: (role, minimum) pairs.
    """
    if not role_minima or minimum < sum(count for _, count in role_minima):
        return ()
    return role_minima


def least_members(sets: Sequence[SubGroupSet], sub_groups: Sequence[SubGroup]) -> dict[str, int]:
    """The smallest number of members with which each set is complete, by its name; where a set has
    too few parts, that of all of them. Each set comes after the one that it is in.
    """
    sizes: dict[str, list[int]] = {}
    for sub_group in sub_groups:
        sizes.setdefault(sub_group.set_name, []).append(sub_group.size)
    least: dict[str, int] = {}
    for each in reversed(sets):
        least[each.name] = sum(sorted(sizes.get(each.name, ()))[: each.least])
        sizes.setdefault(each.set_name, []).append(least[each.name])
    return least


def _values(pod: Pod) -> tuple[int, int, str, PodGroup | None]:
    return pod.group_min_member, pod.priority, pod.queue, pod.declared_group


def _size_of(group: PodGroup) -> tuple[int, bytes]:
    """The order of groups; of equal minima any fixed order."""
    return group.min_member, _encode(group)


def _joined(groups: set[PodGroup]) -> PodGroup | None:
    """The group that counts among those that members declare; None: there are none."""
    largest = max(groups, key=_size_of, default=None)
    if largest is None or len(groups) == 1 or not largest.min_task_member:
        return largest
    minima: dict[str, int] = {}
    for group in groups:
        for role, least in group.min_task_member:
            minima[role] = max(least, minima.get(role, 0))
    errors = sorted({error for group in groups for error in group.errors})
    return msgspec.structs.replace(
        largest,
        min_member=max(largest.min_member, sum(minima.values())),
        min_task_member=tuple(sorted(minima.items())),
        errors=tuple(errors[:_ERRORS_MAX]),
    )


def _has_ended(pod: Pod) -> bool:
    return pod.deleting or pod.phase in _ENDED


def _queues(values: _Values) -> dict[str, int]:
    """Queue -> number of members that name it."""
    queues: dict[str, int] = {}
    for (_, _, queue, _), count in values.items():
        if queue:
            queues[queue] = queues.get(queue, 0) + count
    return queues
