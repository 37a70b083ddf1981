"""Strict queues: first in, first out (`dequeueStrategy: fifo`). While the first gang of a queue
does not fit, no gang behind it is tried. The verdicts of those gangs name the gang ahead.
"""

from services.gang_planner.core.state.gangs import Bucket, Gang
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.titles import title_of


def names(state: State) -> list[str]:
    """Names of strict queues with waiting gangs, sorted."""
    waiting = state.backlog.demand.by_queue
    strict = [name for name, entry in state.queues.entries.items() if entry.strict]
    return sorted(name for name in strict if name in waiting)


def line_up(state: State, queues: list[str], active: dict[Bucket, None]) -> None:
    """Update the buckets to try: of each strict queue all buckets if its first one is to be tried,
    none if the first one was refused.
    """
    lines: dict[tuple[str, bool], list[Bucket]] = {}
    for bucket in state.backlog.buckets.values():
        if bucket.need.queue in queues and not bucket.minimum_unattainable:
            lines.setdefault((bucket.need.queue, bucket.need.best_effort), []).append(bucket)
    for buckets in lines.values():
        first = min(buckets, key=lambda one: one.entries[0][:2])
        if first in active or first.blocked_by is not None:
            active.update(dict.fromkeys(buckets))
            continue
        for bucket in buckets:
            active.pop(bucket, None)
        park(state, [one for one in buckets if one is not first], first.entries[0][2])


def park(state: State, buckets: list[Bucket], first: Gang) -> None:
    """Refuse the buckets until the first gang of their queue is placed; their verdicts name it."""
    for bucket in buckets:
        before = bucket.reason
        state.backlog.park(bucket, title_of(state, first))
        if before != bucket.reason:
            state.gangs.to_republish.update((key, gang) for _, key, gang in bucket.entries)
