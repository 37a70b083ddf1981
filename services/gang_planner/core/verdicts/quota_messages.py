"""Quotas in words: which limit is short by how much, and which queues claim the capacity."""

from services.gang_planner.core.state.amounts import in_words, listed
from services.gang_planner.core.state.gangs import Bucket
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.queues import QueueEntry, Shortage
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
    """The queues that wait for what a bucket leaves alone: its own has what it deserves."""
    names = state.resources.names
    queue = state.queues.entry(bucket.need.queue)
    rows = sorted({names[row]: row for _, row, _ in bucket.claimants}.items())
    claimants = sorted({name for name, _, _ in bucket.claimants})
    has = [
        f"{in_words(name, queue.used.get(row, 0))} of {in_words(name, queue.deserved.get(row, 0))}"
        for name, row in rows
    ]
    waiting = f"queue {claimants[0]} waits" if len(claimants) == 1 else f"{_named(claimants)} wait"
    sentence = (
        f"queue {queue.name} holds what it deserves ({listed(has)}), and {waiting} for the rest of "
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
