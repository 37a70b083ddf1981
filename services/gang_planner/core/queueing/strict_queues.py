"""Strict queues: first in, first out (`dequeueStrategy: fifo`). While the first gang in its order
does not fit, nobody behind it is tried; each is told who is ahead.
"""

from services.gang_planner.core.queueing.backlog import Bucket
from services.gang_planner.core.tables.gangs import Gang
from services.gang_planner.state import State


def names(state: State) -> list[str]:
    """Strict queues in which anybody waits."""
    waiting = state.backlog.demand.by_queue
    strict = [name for name, entry in state.queues.entries.items() if entry.strict]
    return sorted(name for name in strict if name in waiting)


def line_up(state: State, queues: list[str], active: dict[Bucket, None]) -> None:
    """Bring the line of strict queues in order: where the first bucket is worth an attempt, all of
    the queue is in line; where it was refused, nobody is.
    """
    if not queues:
        return
    lines: dict[tuple[str, bool], list[Bucket]] = {}
    for bucket in state.backlog.buckets.values():
        if bucket.need.queue in queues and not bucket.impossible:
            lines.setdefault((bucket.need.queue, bucket.need.best_effort), []).append(bucket)
    for buckets in lines.values():
        first = min(buckets, key=lambda one: one.entries[0][:2])
        if first in active or first.behind:
            active.update(dict.fromkeys(buckets))
            continue
        for bucket in buckets:
            active.pop(bucket, None)
        park(state, [one for one in buckets if one is not first], first.entries[0][2])


def park(state: State, buckets: list[Bucket], first: Gang) -> None:
    """Nobody passes the first gang."""
    for bucket in buckets:
        before = bucket.reason
        state.backlog.park(bucket, first.title)
        if before != bucket.reason:
            state.gangs.retold.update((key, gang) for _, key, gang in bucket.entries)
