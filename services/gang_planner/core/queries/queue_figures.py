"""The held and deserved amounts of queues as of the last cycle, for metrics; changes no state.

The ledger (`queries.ledger`) is exact and has more, but computes its figures again. The active
planner has no time for that, and must not do it between its cycles.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from services.gang_planner.core.state.columns import add_amounts
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.queues import QueueEntry, QueueTable


class QueueFigures(NamedTuple):
    """One queue; amounts by resource, cpu in milli-CPU, everything else in its base unit."""

    name: str
    weight: int
    allocated: Mapping[str, int]
    #: Allocated plus queued demand.
    request: Mapping[str, int]
    #: Empty while it shares with no queue.
    deserved: Mapping[str, int]
    #: As declared.
    capacity: Mapping[str, int]
    #: The capability minus the guarantees of other queues.
    real_capacity: Mapping[str, int]
    #: Promised to admitted groups that have not started.
    inqueue: Mapping[str, int]
    #: For some resource the queue holds at least its deserved amount.
    overused: bool

    @property
    def share(self) -> float:
        """The largest ratio of allocated to deserved amount over all resources."""
        parts = (
            self.allocated.get(resource, 0) / amount
            for resource, amount in self.deserved.items()
            if amount
        )
        return max(parts, default=0.0)


def figures(state: State) -> list[QueueFigures]:
    """The figures of all existing queues, sorted by name."""
    waiting = _waiting(state)
    entries = sorted(state.queues.entries.items())
    return [
        _figures_of(state.resources.names, entry, waiting.get(name, {}))
        for name, entry in entries
        if entry.queue is not None
    ]


def _waiting(state: State) -> dict[str, dict[int, int]]:
    """The demand of waiting members by queue and resource row, including subtrees.

    It includes gangs that can never run, which fairness does not count.
    """
    counts: dict[str, Counter[int]] = {}
    for bucket in state.backlog.buckets.values():
        of_queue = counts.setdefault(bucket.need.queue, Counter())
        for _, shape_id, members in bucket.need.wanted:
            of_queue[shape_id] += members * len(bucket.entries)
    return amounts_of_subtrees(state.queues, state.shapes.entries, counts)


def amounts_of_subtrees(
    queues: QueueTable, shapes: Sequence[ShapeEntry], counts: Mapping[str, Mapping[int, int]]
) -> dict[str, dict[int, int]]:
    """Amounts by queue name and resource row, including each queue's subtree; `counts` are members
    by queue name and shape id.
    """
    totals: dict[str, dict[int, int]] = {}
    for queue, by_shape in counts.items():
        for entry in queues.entry(queue).chain:
            amounts = totals.setdefault(entry.name, {})
            for shape_id, count in by_shape.items():
                add_amounts(amounts, shapes[shape_id].pairs, count)
    return totals


def _figures_of(names: list[str], entry: QueueEntry, waiting: Mapping[int, int]) -> QueueFigures:

    def named(amounts: Mapping[int, int]) -> dict[str, int]:
        return {names[row]: amount for row, amount in amounts.items() if amount}

    deserved = entry.deserved
    return QueueFigures(
        name=entry.name,
        weight=entry.weight,
        allocated=named(entry.used),
        request=named(
            {row: entry.used.get(row, 0) + waiting.get(row, 0) for row in {**entry.used, **waiting}}
        ),
        deserved=named(deserved),
        capacity=named(entry.capability),
        real_capacity=named(entry.ceiling),
        inqueue=named(entry.promised),
        overused=any(entry.used.get(row, 0) >= most > 0 for row, most in deserved.items()),
    )
