"""Divides the cluster among queues by weight. A queue deserves the demand of its gangs (held and
waiting), at most its share; never less than its guarantee or more than its capability. Capacity
that a queue does not need goes to other queues.

Among queues of equal priority, the one with the smallest dominant share per weight has the next
turn. A queue exceeds its deserved amounts while no other queue demands the capacity (see
`queueing.fair_share`), so two gangs larger than their queues' shares do not block each other.
"""

from collections.abc import Sequence

from services.gang_planner.core.framework.admission import within_capability
from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.state.columns import dominant_share
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.queues import QueueEntry


def build(_: Arguments) -> Policy:
    """Takes no arguments."""
    return Policy(name="proportion", queue_key=_key, deserve=_by_weight, enqueue=within_capability)


def _by_weight(queue: QueueEntry, row: int) -> tuple[int, int | None]:
    del row
    return queue.weight, None


def _key(queue: QueueEntry, totals: Sequence[int], _: State) -> tuple[int, ...]:
    return (dominant_share(queue.used, totals) // queue.weight,)
