"""Each queue deserves the amounts of its `spec.deserved`, holds at most its capability, and keeps
its guarantee.

The queue that holds the smallest part of its deserved amounts has the next turn. A queue may borrow
capacity that other queues do not demand (see `queueing.fair_share`). If the nodes cannot provide
all deserved amounts, each queue deserves its amounts nevertheless: what it holds up to them is not
reclaimed. While several queues wait, each may place a proportional part.

With `enableHierarchy`, queues have parents, gangs wait only in leaf queues, and turns are taken
level by level. Capacity is reclaimed from a queue while it holds more than it deserves, and so do
its ancestors that are not ancestors of the reclaiming queue. `ancestorReclaimLevel` limits how many
ancestors are checked.
"""

from typing import Final

from services.gang_planner.core.framework.admission import within_capability
from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.eviction_rules import VictimRules
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.state.queues import QueueEntry

#: Shares are compared in millionths of a queue's deserved amount.
_WHOLE: Final = 1_000_000


def build(arguments: Arguments) -> Policy:
    """Flag `enableHierarchy`. Argument `ancestorReclaimLevel` (default: all levels)."""
    level = arguments.integer("ancestorReclaimLevel", -1, minimum=-1)
    return Policy(
        name="capacity",
        queue_share=_share,
        deserve=_declared,
        enqueue=within_capability,
        hierarchical=arguments.flag("enableHierarchy"),
        victims=VictimRules(levels=level, on_preempt=False) if level >= 0 else None,
    )


def _declared(queue: QueueEntry, row: int) -> tuple[int, int | None]:
    amount = queue.declared.get(row, 0)
    return max(amount, 1), amount


def _share(queue: QueueEntry) -> int:
    """The largest held part of any deserved resource, in millionths; cached until the queue's
    charges change, because every placement compares all queues below a parent.
    """
    charges, used, declared, share = queue.share
    if charges != queue.charges or used is not queue.used or declared is not queue.declared:
        share = _work_out(queue)
        queue.share = queue.charges, queue.used, queue.declared, share
    return share


def _work_out(queue: QueueEntry) -> int:
    deserved = {
        row: min(amount, queue.capability.get(row, amount))
        for row, amount in queue.declared.items()
    }
    for row, amount in queue.guarantee.items():
        deserved[row] = max(deserved.get(row, 0), amount)
    most = 0
    for row, amount in deserved.items():
        held = queue.used.get(row, 0)
        if held > 0:
            most = max(most, held * _WHOLE // amount if amount > 0 else _WHOLE)
    if not deserved and any(queue.used.values()):
        return _WHOLE
    return most
