"""Queues share the cluster by weight: each deserves what its gangs hold and wait for, at most its
share, never below its guarantee, never above its capability; what one does not need goes to
other queues.

Of queues of equal priority the one that holds the least for its weight has the next turn; what it
holds is the largest part of the cluster, of any resource. A queue takes more than it deserves while
no other queue claims it (see `queueing.fair_share`), so two gangs larger than their queues' shares
do not block each other.
"""

from collections.abc import Sequence
from typing import Final

from services.gang_planner.core.framework.admission import within_capability
from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.state.queues import QueueEntry

#: Shares are compared in millionths of the cluster, per weight.
_WHOLE: Final = 1_000_000


def build(arguments: Arguments) -> Policy:
    """Takes no arguments."""
    del arguments
    return Policy(name="proportion", queue_key=_key, deserve=_by_weight, enqueue=within_capability)


def _by_weight(queue: QueueEntry, row: int) -> tuple[int, int | None]:
    del row
    return queue.weight, None


def _key(queue: QueueEntry, totals: Sequence[int]) -> tuple[int, ...]:
    share = 0
    for row, used in queue.used.items():
        if row < len(totals) and totals[row] > 0:
            share = max(share, used * _WHOLE // totals[row])
    return (share // queue.weight,)
