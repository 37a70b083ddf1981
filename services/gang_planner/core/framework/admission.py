"""Admission: policies vote on groups whose pods exist only after they are admitted.

Quotas exclude a group; a lack of free capacity only delays it. A vote permits, rejects or abstains.
In each tier one rejection refuses the group, otherwise one permission admits it and lower tiers do
not vote; without any vote the group is admitted.
"""

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.queues import QueueEntry

if TYPE_CHECKING:
    from services.gang_planner.core.state.planner_state import State

#: Names that only quotas of a namespace know: no node has such resources.
QUOTA_KEYS = ("count/", "limits.", "requests.")


class Vote(enum.Enum):
    """A policy's vote on a group that waits to be admitted."""

    PERMIT = "permit"
    ABSTAIN = "abstain"
    REJECT = "reject"


class AdmissionView:
    """The state that voters read, within one cycle; promises change with every admission."""

    def __init__(
        self, state: "State", totals: Sequence[int], now_ms: int, without_room: int
    ) -> None:
        """`without_room`: groups per queue that are admitted although no node can hold them."""
        self.state = state
        self.totals = totals
        self.now_ms = now_ms
        self.without_room = without_room
        self._free: list[int] | None = None
        #: Minima of admitted gangs that nodes have not refused: they will take this capacity.
        self._coming: dict[int, int] | None = None
        self._elastic: dict[QueueEntry, dict[int, int]] = {}

    def minimum(self, gang: Gang) -> dict[int, int]:
        """The `minResources` of a group, by resource row."""
        if gang.group is None:
            return {}
        return gang.queue.amounts(gang.group.min_resources or ())

    def node_minimum(self, gang: Gang) -> dict[int, int]:
        """As `minimum`, without resources that only quotas have."""
        names = self.state.resources.names
        return {
            row: amount
            for row, amount in self.minimum(gang).items()
            if not names[row].startswith(QUOTA_KEYS)
        }

    def used(self, row: int) -> int:
        """How much of a resource pods and reservations take, on all nodes."""
        return self._total(row) - self._free_sum(row)

    def coming(self, row: int) -> int:
        """How much of a resource admitted gangs are going to take, as far as is known."""
        if self._coming is None:
            self._coming = {}
            by_id = self.state.gangs.by_id
            for entry in self.state.queues.entries.values():
                for gang_id, amounts in entry.promises.items():
                    gang = by_id.get(gang_id)
                    if gang is None or gang.bucket is None or not gang.bucket.reason:
                        self.count(amounts)
        return self._coming.get(row, 0)

    def count(self, amounts: dict[int, int]) -> None:
        """Account for a group that was admitted."""
        if self._coming is None:
            return
        for row, amount in amounts.items():
            self._coming[row] = self._coming.get(row, 0) + amount

    def total(self, row: int) -> int:
        """How much of a resource there is on all nodes."""
        return self._total(row)

    def waiting_before(self, gang: Gang) -> int:
        """Admitted gangs of its queue and of at least its priority that wait for capacity or
        pods.
        """
        found = 0
        for gang_id in gang.queue.promises:
            one = self.state.gangs.by_id.get(gang_id)
            found += one is not None and one.priority >= gang.priority
        return found

    def elastic(self, queue: QueueEntry) -> dict[int, int]:
        """Amounts that gangs of the queue's subtree hold beyond their minima: these can be
        evicted.
        """
        found = self._elastic.get(queue)
        if found is None:
            found = self._elastic[queue] = {}
            for gang in self.state.gangs.gangs.values():
                if gang.held and gang.group is not None and queue in gang.queue.chain:
                    self._add_elastic(found, gang)
        return found

    def _add_elastic(self, found: dict[int, int], gang: Gang) -> None:
        minimum = self.minimum(gang)
        shapes = self.state.shapes.entries
        held: dict[int, int] = {}
        for shape_id, count in gang.held.items():
            for row, amount in shapes[shape_id].pairs:
                held[row] = held.get(row, 0) + amount * count
        for row, amount in held.items():
            if row in minimum and amount > minimum[row]:
                found[row] = found.get(row, 0) + amount - minimum[row]

    def _total(self, row: int) -> int:
        return self.totals[row] if row < len(self.totals) else 0

    def _free_sum(self, row: int) -> int:
        free = self._free
        if free is None:
            nodes, node_capacity = self.state.nodes, self.state.node_capacity
            node_capacity.fit_cells()
            sums: list[int] = node_capacity.free.cells[:, : nodes.size].sum(axis=1).tolist()
            free = self._free = sums
        return free[row] if row < len(free) else 0


Voter: TypeAlias = Callable[[Gang, AdmissionView], Vote]
"""A policy's vote on a group; it changes nothing."""


def count_votes(tiers: Iterable[Sequence[Voter]], gang: Gang, view: AdmissionView) -> bool:
    """Whether the group is admitted."""
    for voters in tiers:
        votes = [voter(gang, view) for voter in voters]
        if Vote.REJECT in votes:
            return False
        if Vote.PERMIT in votes:
            return True
    return True


def within_capability(gang: Gang, view: AdmissionView) -> Vote:
    """Permit a group that fits into the capabilities of its queue and the queues above, besides
    held and promised amounts; amounts that gangs hold beyond their minima do not count.
    """
    wanted = view.minimum(gang)
    for shortage in gang.queue.shortages(wanted, promised=True):
        elastic = view.elastic(view.state.queues.entry(shortage.queue))
        if any(by > elastic.get(row, 0) for row, by in shortage.over.items()):
            return Vote.REJECT
    return Vote.PERMIT
