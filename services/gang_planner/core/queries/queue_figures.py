"""What queues hold and deserve, as of the last cycle: read for metrics, changes nothing.

The ledger (`queries.ledger`) has more and is exact, but works it out again, which the active
planner has no time for and must not do between its cycles.
"""

from collections.abc import Mapping
from typing import NamedTuple

from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.queues import QueueEntry


class QueueFigures(NamedTuple):
    """One queue; amounts by resource, cpu in milli-CPU, everything else in its base unit."""

    name: str
    weight: int
    allocated: Mapping[str, int]
    #: Held and waited for.
    request: Mapping[str, int]
    #: Empty while it shares with no queue.
    deserved: Mapping[str, int]
    #: As declared.
    capacity: Mapping[str, int]
    #: The capability, less what others are guaranteed.
    real_capacity: Mapping[str, int]
    #: Promised to admitted groups that have not started.
    inqueue: Mapping[str, int]
    #: It holds all that it deserves of some resource.
    overused: bool

    @property
    def share(self) -> float:
        """The largest part held of what is deserved."""
        parts = (
            self.allocated.get(resource, 0) / amount
            for resource, amount in self.deserved.items()
            if amount
        )
        return max(parts, default=0.0)


def figures(state: State) -> list[QueueFigures]:
    """All queues that exist, by name."""
    waiting = _waiting(state)
    entries = sorted(state.queues.entries.items())
    return [
        _figures_of(state, entry, waiting.get(name, {}))
        for name, entry in entries
        if entry.queue is not None
    ]


def _waiting(state: State) -> dict[str, dict[int, int]]:
    """What members wait for, by queue and resource row, subtrees included.

    Of gangs that could never run, too: they are asked for, even if fairness does not count them.
    """
    found: dict[str, dict[int, int]] = {}
    shapes = state.shapes.entries
    for bucket in state.backlog.buckets.values():
        need, gangs = bucket.need, len(bucket.entries)
        for entry in state.queues.entry(need.queue).chain:
            amounts = found.setdefault(entry.name, {})
            for _, shape_id, members in need.wanted:
                for row, amount in shapes[shape_id].pairs:
                    amounts[row] = amounts.get(row, 0) + amount * members * gangs
    return found


def _figures_of(state: State, entry: QueueEntry, waiting: Mapping[int, int]) -> QueueFigures:
    names = state.resources.names

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
