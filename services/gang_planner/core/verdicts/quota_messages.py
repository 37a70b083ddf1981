"""Messages about quotas and `minResources`: the short amounts, the queues that deserve the
capacity, and the faults of queues.
"""

from collections.abc import Sequence
from typing import assert_never

from services.gang_planner.core.queueing.min_resources import Requirement, Unattainable
from services.gang_planner.core.state.amounts import in_words, listed
from services.gang_planner.core.state.gangs import Bucket
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.queues import Fault, QueueEntry, Shortage
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.verdicts import Reason


def shortage_in_words(queue: QueueEntry, shortage: Shortage, names: list[str]) -> str:
    """`queue a is at its capability: job needs 2 cpu more than it leaves`."""
    short = listed([in_words(name, by) for name, by in _named(shortage.over, names)])
    if shortage.reserved:
        return (
            f"queue {shortage.queue} may not use the guarantees of other queues: "
            f"job needs {short} more than they leave"
        )
    whose = f"queue {queue.name} is at its capability"
    if shortage.queue != queue.name:
        whose = f"queue {shortage.queue}, above queue {queue.name}, is at its capability"
    return f"{whose}: job needs {short} more than it leaves"


def shortage_reasons(shortage: Shortage, names: list[str]) -> tuple[Reason, ...]:
    """The shortage as reasons, one per resource, sorted by name."""
    reason = "GuaranteedToOthers" if shortage.reserved else "CapabilityExceeded"
    over = _named(shortage.over, names)
    return tuple(Reason(reason=reason, resource=name, short=by) for name, by in over)


def claims_in_words(state: State, bucket: Bucket) -> tuple[str, tuple[Reason, ...]]:
    """A message with the queues that wait for the capacity that a bucket leaves to them, because
    its own queue has its deserved amount; and the same as reasons.
    """
    names = state.resources.names
    queue = state.queues.entry(bucket.need.queue)
    rows = sorted({names[row]: row for _, row, _ in bucket.claimants}.items())
    claimants = sorted({name for name, _, _ in bucket.claimants})
    has = [
        f"{in_words(name, queue.used.get(row, 0))} of {in_words(name, queue.deserved.get(row, 0))}"
        for name, row in rows
    ]
    waiting = f"queues {listed(claimants)} wait"
    if len(claimants) == 1:
        waiting = f"queue {claimants[0]} waits"
    sentence = (
        f"queue {queue.name} holds its deserved amount ({listed(has)}), and {waiting} for the rest "
        "of the free capacity"
    )
    return sentence, tuple(
        Reason(
            reason="DeservedExceeded",
            resource=name,
            short=max(queue.used.get(row, 0) - queue.deserved.get(row, 0), 0),
        )
        for name, row in rows
    )


def unattainable_in_words(found: Unattainable) -> str:
    """A message why a gang's `minResources` can never be met."""
    needed, most = in_words(found.resource, found.needed), in_words(found.resource, found.most)
    if found.queue is not None:
        limit = f"queue {found.queue} may hold at most {most}"
    else:
        limit = f"the nodes that its pods may use have {most} in all"
    return f"its minResources can never be met: {needed} needed, and {limit}"


def requirements_in_words(found: Sequence[Requirement]) -> str:
    """A message with the amounts that nodes lack for a gang's `minResources`."""
    short = [
        f"{in_words(one.resource, one.needed)} needed, "
        f"{in_words(one.resource, one.free).removesuffix(f' {one.resource}')} free"
        for one in found
        if one.short
    ]
    if short:
        return f"not enough free capacity for its minResources: {'; '.join(short)}"
    needed = listed([in_words(one.resource, one.needed) for one in found])
    return (
        f"not enough free capacity for its minResources: {needed} needed; as much "
        "is free, but not in parts that are large enough"
    )


def fault_in_words(fault: Fault) -> str:
    """A message about a fault of a queue's position in the hierarchy."""
    first = fault.queues[0]
    match fault.reason:
        case PendingReason.QUEUE_PARENT_MISSING:
            return f"queue {first} has the parent {fault.queues[1]}, which does not exist"
        case PendingReason.QUEUE_CYCLE:
            path = " > ".join(fault.queues)
            return f"the parents of queue {first} form a cycle: {path}"
        case PendingReason.QUEUE_NOT_LEAF:
            return f"queue {first} has child queues: submit gangs to those"
        case _:
            assert_never(fault.reason)


def _named(over: dict[int, int], names: list[str]) -> list[tuple[str, int]]:
    return sorted((names[row], by) for row, by in over.items())
