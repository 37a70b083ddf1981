"""Admission: policies vote on groups whose pods are created only after admission.

A vote permits, rejects or abstains. In each tier, one rejection refuses the group; otherwise one
permission admits it and lower tiers do not vote. If no policy permits or rejects a group, it is
admitted.
"""

import enum
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from services.gang_planner.core.state.columns import add_amounts
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.queues import QueueEntry

if TYPE_CHECKING:
    from services.gang_planner.core.state.planner_state import State

#: Prefixes of resource names that exist only in ResourceQuotas, not on nodes.
QUOTA_KEYS = ("count/", "limits.", "requests.")


class Vote(enum.Enum):
    """A policy's vote on a group that waits for admission."""

    PERMIT = "permit"
    ABSTAIN = "abstain"
    REJECT = "reject"


class AdmissionView:
    """The state that voters read within one cycle; every admission changes it."""

    def __init__(
        self, state: "State", totals: Sequence[int], now_ms: int, without_room: int
    ) -> None:
        """`totals`: allocatable amounts of all nodes, by resource row. `without_room`: how many
        groups each queue admits without free capacity.
        """
        self.state = state
        self.totals = totals
        self.now_ms = now_ms
        self.without_room = without_room
        self._free: dict[int, int] = {}
        #: By resource row, minima of admitted gangs that were not refused for lack of capacity.
        self._coming: dict[int, int] | None = None
        self._elastic: dict[QueueEntry, dict[int, int]] = {}
        #: By queue, sorted priorities of its admitted gangs that wait.
        self._waiting: dict[QueueEntry, list[int]] = {}
        #: Gangs admitted with a minimum, in order.
        self.admitted: list[Gang] = []
        #: By namespace and name of a resource, the sum of admitted gangs' minima, and how many of
        #: `admitted` are in it.
        self.promised: dict[tuple[str, str], tuple[int, int]] = {}

    def minimum(self, gang: Gang) -> dict[int, int]:
        """`minResources` of a group, by resource row; empty without a group."""
        if gang.group is None:
            return {}
        return gang.queue.minimum(gang.group.min_resources or ())

    def node_minimum(self, gang: Gang) -> dict[int, int]:
        """Like `minimum`, without resources that exist only in quotas."""
        names = self.state.resources.names
        return {
            row: amount
            for row, amount in self.minimum(gang).items()
            if not names[row].startswith(QUOTA_KEYS)
        }

    def used(self, row: int) -> int:
        """Amount of a resource that pods and reservations use on all nodes."""
        return self.total(row) - self._free_sum(row)

    def coming(self, row: int) -> int:
        """Amount of a resource that admitted waiting gangs are expected to use."""
        if self._coming is None:
            self._coming = {}
            by_id = self.state.gangs.by_id
            for entry in self.state.queues.entries.values():
                for gang_id, amounts in entry.promises.items():
                    gang = by_id.get(gang_id)
                    if gang is None or gang.bucket is None or gang.bucket.reason is None:
                        add_amounts(self._coming, amounts.items())
        return self._coming.get(row, 0)

    def admit(self, gang: Gang, amounts: dict[int, int]) -> None:
        """Count a group with this minimum as admitted."""
        if amounts and gang.gang_id not in gang.queue.promises:
            self.admitted.append(gang)
            if (waiting := self._waiting.get(gang.queue)) is not None:
                insort(waiting, gang.priority)
        gang.queue.promise(gang.gang_id, amounts)
        if self._coming is not None:
            add_amounts(self._coming, amounts.items())

    def total(self, row: int) -> int:
        """Allocatable amount of a resource on all nodes."""
        return self.totals[row] if row < len(self.totals) else 0

    def waiting_before(self, gang: Gang) -> int:
        """Number of admitted gangs that wait in the gang's queue with at least its priority."""
        priorities = self._waiting.get(gang.queue)
        if priorities is None:
            by_id = self.state.gangs.by_id
            admitted = map(by_id.get, gang.queue.promises)
            priorities = sorted(gang.priority for gang in admitted if gang is not None)
            self._waiting[gang.queue] = priorities
        return len(priorities) - bisect_left(priorities, gang.priority)

    def elastic(self, queue: QueueEntry) -> dict[int, int]:
        """Amounts, by resource row, that gangs of the queue's subtree hold beyond their minima."""
        elastic = self._elastic.get(queue)
        if elastic is None:
            elastic = self._elastic[queue] = {}
            for gang in self.state.gangs.gangs.values():
                if gang.held and gang.group is not None and queue in gang.queue.chain:
                    self._add_elastic(elastic, gang)
        return elastic

    def _add_elastic(self, elastic: dict[int, int], gang: Gang) -> None:
        minimum = self.minimum(gang)
        for row, amount in self.state.shapes.sums(gang.held.items()).items():
            if row in minimum and amount > minimum[row]:
                elastic[row] = elastic.get(row, 0) + amount - minimum[row]

    def _free_sum(self, row: int) -> int:
        total = self._free.get(row)
        if total is None:
            nodes, node_capacity = self.state.nodes, self.state.node_capacity
            node_capacity.fit_cells()
            cells = node_capacity.free.cells[row, : nodes.size]
            # A pod may be on a node that does not have what it asks for, or does not exist.
            total = self._free[row] = int(np.maximum(cells, 0).sum())
        return total


Voter: TypeAlias = Callable[[Gang, AdmissionView], Vote]
"""Returns a policy's vote on a group, without side effects."""


def count_votes(tiers: Iterable[Sequence[Voter]], gang: Gang, view: AdmissionView) -> bool:
    """Whether the tiers' votes admit the group."""
    for voters in tiers:
        votes = [voter(gang, view) for voter in voters]
        if Vote.REJECT in votes:
            return False
        if Vote.PERMIT in votes:
            return True
    return True


def within_capability(gang: Gang, view: AdmissionView) -> Vote:
    """Permit a group whose minimum fits into the capabilities of its queue and the queue's
    ancestors, in addition to held and promised amounts; reject it otherwise. Amounts that gangs
    hold beyond their minima do not count.
    """
    wanted = view.minimum(gang)
    for shortage in gang.queue.shortages(wanted, promised=True):
        elastic = view.elastic(view.state.queues.entry(shortage.queue))
        if any(by > elastic.get(row, 0) for row, by in shortage.over.items()):
            return Vote.REJECT
    return Vote.PERMIT
