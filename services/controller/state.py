"""The memory of the status controller: the writes for each gang, for a bounded number of gangs.

The stored objects are the truth. Losing the memory costs one read per group.
"""

from collections import OrderedDict
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

_Reason = TypeVar("_Reason")

#: Gangs remembered; about 1 KiB each, more for those with many waiting pods.
GANGS_MAX: Final = 20_000


class MarkReason(NamedTuple):
    """What PodScheduled=False of a waiting pod depends on, beside its wording."""

    #: The pending reason of its gang.
    pending: str
    #: The node for which the pod is nominated; "": none.
    node: str
    #: The reason of the condition.
    condition: str


class Report(NamedTuple, Generic[_Reason]):
    """A reason that was written on an object, with its wording, and when."""

    reason: _Reason
    message: str
    at_ms: int


class WrittenGang(msgspec.Struct, eq=False):
    """The values that are written on one gang's objects."""

    #: The verdict annotation on the group; "" without one, None: unknown.
    annotation: str | None = None
    #: `meaning_of` the verdict in that annotation.
    meaning: tuple[object, ...] | None = None
    group_at_ms: int = 0
    #: Whether the group is gone, or another object has its name.
    group_missing: bool = False
    #: Written Events by topic.
    events: dict[str, Report[str]] = {}
    #: Written PodScheduled=False by pod UID.
    marked: dict[str, Report[MarkReason]] = {}
    #: UIDs of the pods whose Scheduled Events are written or dropped.
    placed: frozenset[str] = frozenset()
    #: UIDs of the pods whose Evict Events are written or dropped.
    evicted: frozenset[str] = frozenset()
    #: UIDs of the pods whose annotations for autoscalers are removed.
    ended: frozenset[str] = frozenset()


class WrittenGangs:
    """The memory of each gang by id; the least recently used is forgotten first."""

    def __init__(self, gangs_max: int = GANGS_MAX) -> None:
        self._memories: OrderedDict[str, WrittenGang] = OrderedDict()
        self._gangs_max = gangs_max

    def of(self, gang_id: str) -> WrittenGang:
        """The gang's memory, an empty one if there is none."""
        memory = self._memories.get(gang_id)
        if memory is None:
            memory = self._memories[gang_id] = WrittenGang()
            if len(self._memories) > self._gangs_max:
                self._memories.popitem(last=False)
        else:
            self._memories.move_to_end(gang_id)
        return memory

    def forget(self, gang_id: str) -> None:
        """Discard the memory of a gang that is gone."""
        self._memories.pop(gang_id, None)
