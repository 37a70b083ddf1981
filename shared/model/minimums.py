"""What a gang needs, as far as its objects say: the rule that planner and observer share.

A group object's minimum counts, where there is one. Without one the members that exist say it, by
their annotations. Members may disagree, for a moment while a user changes them one after the
other, or for good. Then:

* Of minima (`scheduling.k8s.io/group-min-member`) the largest counts, so that no gang starts below
  what one of its members asks for.
* Of priorities the highest counts.
* Of queues (`scheduling.volcano.sh/queue-name`) the one counts that most members name; of equally
  many the first by name.

A member that has ended or is being deleted counts only where no other member says anything. A
member that names no minimum, or no queue, has no say in it. Nothing is remembered of members that
are gone, so a restarted process decides alike.
"""

from typing import Final, NamedTuple, TypeAlias

from shared.model.objects import Pod

_ENDED: Final = frozenset({"Succeeded", "Failed"})
_Values: TypeAlias = dict[tuple[int, int, str], int]


class Declared(NamedTuple):
    """What counts of what the members declare."""

    #: 0: no member names one.
    minimum: int
    #: None: there are no members.
    priority: int | None
    #: "": no member names one.
    queue: str


_NOTHING: Final = Declared(0, None, "")


class MemberDeclarations:
    """What the members of one gang declare: how many members for each distinct set of values.

    A change costs as much as there are distinct sets, one in nearly every gang, however many
    members it has.
    """

    __slots__ = ("_current", "_ended", "declared", "disagree")

    def __init__(self) -> None:
        self._current: _Values = {}
        self._ended: _Values = {}
        self.declared = _NOTHING
        #: Whether members name different minima, or different queues.
        self.disagree = False

    def add(self, pod: Pod) -> bool:
        """A pod became a member; returns whether what counts has changed."""
        return self._count(pod, 1) and self._judge()

    def remove(self, pod: Pod) -> bool:
        """A pod, as it was added last, is no member any more; returns whether what counts has
        changed.
        """
        return self._count(pod, -1) and self._judge()

    def replace(self, before: Pod, pod: Pod) -> bool:
        """A member has changed; returns whether what counts has changed."""
        if _values(before) == _values(pod) and _has_ended(before) == _has_ended(pod):
            return False
        changed = self._count(before, -1)
        return (self._count(pod, 1) or changed) and self._judge()

    def minima(self) -> tuple[int, ...]:
        """The distinct minima that members name and that count, ascending."""
        return tuple(
            sorted(
                {minimum for minimum, _, _ in self._current if minimum}
                or {minimum for minimum, _, _ in self._ended if minimum}
            )
        )

    def queues(self) -> tuple[str, ...]:
        """The distinct queues that members name and that count, by name."""
        return tuple(sorted(_queues(self._current) or _queues(self._ended)))

    def _count(self, pod: Pod, by: int) -> bool:
        """Count a pod in or out; returns whether what counts may have changed."""
        values = self._ended if _has_ended(pod) else self._current
        key = _values(pod)
        found = values.get(key, 0) + by
        if found:
            values[key] = found
        else:
            del values[key]
        # Of several sets the numbers of members decide, too.
        return found in (0, 1) or len(values) > 1

    def _judge(self) -> bool:
        before = self.declared, self.disagree
        values = self._current or self._ended
        minima, queues = self.minima(), _queues(self._current) or _queues(self._ended)
        self.declared = Declared(
            minima[-1] if minima else 0,
            max((priority for _, priority, _ in values), default=None),
            min(queues, key=lambda name: (-queues[name], name), default=""),
        )
        self.disagree = len(minima) > 1 or len(queues) > 1
        return (self.declared, self.disagree) != before


def binding_role_minima(
    minimum: int, role_minima: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, int], ...]:
    """The minima per role, if they bind: as in Volcano only where the gang's own minimum covers
    their sum. The gang's minimum holds in any case.
    """
    if not role_minima or minimum < sum(count for _, count in role_minima):
        return ()
    return role_minima


def _values(pod: Pod) -> tuple[int, int, str]:
    return pod.group_min_member, pod.priority, pod.queue


def _has_ended(pod: Pod) -> bool:
    return pod.deleting or pod.phase in _ENDED


def _queues(values: _Values) -> dict[str, int]:
    """How many members name which queue."""
    found: dict[str, int] = {}
    for (_, _, queue), count in values.items():
        if queue:
            found[queue] = found.get(queue, 0) + count
    return found
