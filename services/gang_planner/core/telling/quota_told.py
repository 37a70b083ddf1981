"""Quotas in words: whose limit is short by how much, and who claims the room instead."""

from services.gang_planner.core.queueing.backlog import Bucket
from services.gang_planner.core.tables.queues import QueueEntry, Shortage
from services.gang_planner.core.telling.amounts import in_words, listed
from services.gang_planner.state import State
from shared.contracts.verdicts import Reason


def shortage_in_words(queue: QueueEntry, shortage: Shortage, names: list[str]) -> str:
    """`queue a is at its capability: job needs 2 cpu more than it leaves`."""
    short = listed(_amounts(shortage.over, names))
    if shortage.reserved:
        return (
            f"queue {shortage.queue} may not take what other queues are guaranteed: "
            f"job needs {short} more than they leave"
        )
    whose = f"queue {queue.name} is at its capability"
    if shortage.queue != queue.name:
        whose = f"queue {shortage.queue}, above queue {queue.name}, is at its capability"
    return f"{whose}: job needs {short} more than it leaves"


def shortage_reasons(shortage: Shortage, names: list[str]) -> tuple[Reason, ...]:
    """The same as data."""
    reason = "GuaranteedToOthers" if shortage.reserved else "CapabilityExceeded"
    over = {names[row]: by for row, by in shortage.over.items()}
    return tuple(
        Reason(reason=reason, resource=name, short=by) for name, by in sorted(over.items())
    )


def claims_in_words(state: State, bucket: Bucket) -> tuple[str, tuple[Reason, ...]]:
    """Who waits for the room that a bucket leaves alone, because its queue has what it deserves."""
    names = state.resources.names
    queue = state.queues.entry(bucket.need.queue)
    rows = sorted({names[row]: row for _, row, _ in bucket.held_by}.items())
    claimants = sorted({name for name, _, _ in bucket.held_by})
    has = [
        f"{in_words(name, queue.used.get(row, 0))} of {in_words(name, queue.deserved.get(row, 0))}"
        for name, row in rows
    ]
    who = f"queue {claimants[0]} waits" if len(claimants) == 1 else f"{_named(claimants)} wait"
    sentence = (
        f"queue {queue.name} holds what it deserves ({listed(has)}), and {who} for the rest of "
        "what is free"
    )
    return sentence, tuple(
        Reason(
            reason="DeservedExceeded",
            resource=name,
            short=max(queue.used.get(row, 0) - queue.deserved.get(row, 0), 0),
        )
        for name, row in rows
    )


def _named(queues: list[str]) -> str:
    return f"queues {listed(queues)}"


def _amounts(over: dict[int, int], names: list[str]) -> list[str]:
    return [in_words(name, by) for name, by in sorted((names[row], by) for row, by in over.items())]
