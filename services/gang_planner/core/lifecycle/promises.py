"""How long a group that was admitted, and cannot start, counts for the admission of others.

An admitted group has a promise: its minimum counts as used for the admission of other groups, so
that its operator can create the pods. A suspended JobSet never creates them, so a promise is
bounded. Its group stays Inqueue, and is promised its minimum again when its pods exist.
"""

from typing import Final

from services.gang_planner.core.state.gang_table import GangTable
from services.gang_planner.core.state.gangs import Gang, Promise
from services.gang_planner.core.state.queues import QueueTable
from services.gang_planner.core.state.timers import Timers
from shared.contracts.pending_reasons import PendingReason

#: How long a group counts after its phase was seen Inqueue. Operators create the first pods within
#: a second of that phase, and the last one of a gang of 500 within this time, at 20 requests per
#: second, the default of client-go.
PROMISED_MS: Final = 30_000
#: Reasons that free capacity does not end.
_NOT_READY: Final = frozenset(
    {
        PendingReason.NOT_ENOUGH_PODS,
        PendingReason.NOT_ENOUGH_PODS_OF_TASK,
        PendingReason.NOT_ENOUGH_PODS_OF_SUB_GROUP,
        PendingReason.GATED,
        PendingReason.MEMBERS_DIFFER,
        PendingReason.INVALID_GROUP,
        PendingReason.GROUP_DELETING,
        PendingReason.UNSUPPORTED,
        PendingReason.UNSUPPORTED_DEVICE,
        PendingReason.UNSUPPORTED_GANG,
        PendingReason.QUEUE_MISSING,
        PendingReason.QUEUE_NOT_OPEN,
        PendingReason.QUEUE_PARENT_MISSING,
        PendingReason.QUEUE_CYCLE,
        PendingReason.QUEUE_NOT_LEAF,
        PendingReason.GANG_TOO_LARGE,
        PendingReason.ACTION_MISSING,
    }
)


def limit_promise(timers: Timers, gang: Gang, now_ms: int) -> None:
    """Withdraw the promise of a gang that cannot start for too long; promise again when it can."""
    since_ms, ended = gang.promise
    waits = since_ms and not gang.have()
    until_ms = since_ms + PROMISED_MS
    if waits and is_not_ready(gang):
        gang.promise = Promise(since_ms, ended=now_ms >= until_ms)
        if gang.promise.ended:
            gang.queue.promise(gang.gang_id, {})
        else:
            timers.set(until_ms, gang)
        return
    if waits and ended and gang.group is not None:
        gang.queue.promise(gang.gang_id, gang.queue.minimum(gang.group.min_resources or ()))
    gang.promise = Promise(since_ms)


def is_not_ready(gang: Gang) -> bool:
    """Whether the gang waits for its pods, or for a change of its declarations or its queue.

    Groups of an API that schedulers share count as well until one of Tutti's pods is a member.
    """
    return gang.silent or gang.pending_reason in _NOT_READY


def promised_unready(gangs: GangTable, queues: QueueTable) -> list[Gang]:
    """Gangs that count for the admission of others and are not ready, the oldest first."""
    by_id = gangs.by_id
    unready = [
        gang
        for entry in queues.entries.values()
        for gang_id in entry.promises
        if (gang := by_id.get(gang_id)) is not None and is_not_ready(gang)
    ]
    return sorted(unready, key=lambda gang: (gang.created_ms, gang.key))
