"""What the status controller knows to be written: one memory per gang, bounded.

Losing it costs a read per group (what is stored says what is written) and nothing else.
"""

from collections import OrderedDict
from typing import Final

#: Gangs remembered; about 1 KiB each, more for those with many waiting pods.
GANGS_MAX: Final = 20_000


class WrittenGang:
    """What is written of one gang."""

    __slots__ = (
        "annotation",
        "events",
        "evicted",
        "group_at_ms",
        "group_missing",
        "marked",
        "meaning",
        "placed",
    )

    def __init__(self) -> None:
        """Nothing is known to be written."""
        #: Text of the verdict's annotation on the group; "": it has none, None: unknown.
        self.annotation: str | None = None
        #: Phase, conditions and reason of that verdict: what readers act on.
        self.meaning: tuple[object, ...] | None = None
        self.group_at_ms = 0
        #: The group is gone or another one bears its name: nothing can be written on it.
        self.group_missing = False
        #: Event topic -> (why it was written, its words, when).
        self.events: dict[str, tuple[str, str, int]] = {}
        #: Pod UID -> (why its PodScheduled is False, in which words, when).
        self.marked: dict[str, tuple[str, str, int]] = {}
        #: Pods whose Scheduled events are written or dropped.
        self.placed: frozenset[str] = frozenset()
        #: Pods whose Evict events are written or dropped.
        self.evicted: frozenset[str] = frozenset()


class WrittenGangs:
    """WrittenGangs by gang id; the longest unused is forgotten first."""

    def __init__(self, gangs_max: int = GANGS_MAX) -> None:
        """Remember nothing."""
        self._memories: OrderedDict[str, WrittenGang] = OrderedDict()
        self._gangs_max = gangs_max

    def of(self, gang_id: str) -> WrittenGang:
        """The gang's memory, a fresh one if there is none."""
        memory = self._memories.get(gang_id)
        if memory is None:
            memory = self._memories[gang_id] = WrittenGang()
            if len(self._memories) > self._gangs_max:
                self._memories.popitem(last=False)
        else:
            self._memories.move_to_end(gang_id)
        return memory

    def forget(self, gang_id: str) -> None:
        """The gang is gone."""
        self._memories.pop(gang_id, None)
