"""Queues deserve what they declare, hold at most their capability, and keep their guarantee.

The queue that holds the least of what it deserves has the next turn. It may borrow what others do
not claim (see `queueing.fair_share`); with `enableHierarchy` queues have parents, gangs wait in
leaves only, and turns are taken level by level. Where nodes cannot give all queues what they
deserve, each gets its part of it. A queue is reclaimed from while it, and the queues above it that
are not above the asking one, hold more than they deserve; with `ancestorReclaimLevel` only so many
of those above it.
"""

from typing import Final

from services.gang_planner.core.framework.admission import within_capability
from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.eviction_rules import VictimRule
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.state.queues import QueueEntry

#: Shares are compared in millionths of what a queue deserves.
_WHOLE: Final = 1_000_000


def build(arguments: Arguments) -> Policy:
    """Takes the flag `enableHierarchy`; argument `ancestorReclaimLevel`, by default all levels."""
    level = arguments.integer("ancestorReclaimLevel", -1, minimum=-1)
    return Policy(
        name="capacity",
        queue_share=_share,
        deserve=_declared,
        enqueue=within_capability,
        hierarchical=arguments.flag("enableHierarchy"),
        victims=VictimRule(levels=level, on_preempt=False) if level >= 0 else None,
    )


def _declared(queue: QueueEntry, row: int) -> tuple[int, int | None]:
    amount = queue.declared.get(row, 0)
    return max(amount, 1), amount


def _share(queue: QueueEntry) -> int:
    """The largest part of what it deserves that a queue holds, in millionths; asked of every queue
    below a parent whenever one of them has placed something.
    """
    charges, used, declared, share = queue.share
    if charges != queue.charges or used is not queue.used or declared is not queue.declared:
        share = _work_out(queue)
        queue.share = queue.charges, queue.used, queue.declared, share
    return share


def _work_out(queue: QueueEntry) -> int:
    most = 0
    for row, amount in queue.declared.items():
        held = queue.used.get(row, 0)
        if held > 0:
            most = max(most, held * _WHOLE // amount if amount > 0 else _WHOLE)
    if not queue.declared and any(queue.used.values()):
        return _WHOLE
    return most
