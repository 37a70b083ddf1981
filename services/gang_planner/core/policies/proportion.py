"""Turns between queues of equal priority by weight: the one that holds the least share for its
weight is next.

A queue's share is that of the resource of which it holds the largest part of the cluster. Limits by
deserved shares are not part of it yet: a queue may take what is free, up to its capability.
"""

from collections.abc import Sequence

from services.gang_planner.core.arguments import Arguments
from services.gang_planner.core.policy import Policy
from services.gang_planner.core.queues import QueueEntry

#: Shares are compared in millionths of the cluster, per weight.
_WHOLE = 1_000_000


def build(arguments: Arguments) -> Policy:
    """Takes no arguments."""
    del arguments
    return Policy(name="proportion", queue_key=_key)


def _key(queue: QueueEntry, totals: Sequence[int]) -> tuple[int, ...]:
    share = 0
    for row, used in queue.used.items():
        if row < len(totals) and totals[row] > 0:
            share = max(share, used * _WHOLE // totals[row])
    return (share // queue.weight,)
