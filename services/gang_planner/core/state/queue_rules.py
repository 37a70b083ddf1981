"""What queues say about the runs of their gangs. Each setting of a queue is that of the nearest of
it and its ancestors that has one.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from shared.model.objects import RunLimits

_NOTICE_S: Final = 60
_HOLD_AFTER_S: Final = 1_800


class QueueRules(NamedTuple):
    """What applies to the gangs of a queue."""

    #: Of gangs that state no limit, and of all gangs; 0: none.
    usual_ms: int
    most_ms: int
    notice_ms: int
    #: Whether gangs are evicted at their limits.
    enforced: bool
    #: How long a gang waits until capacity is kept for it that may never suffice; 0: never.
    hold_after_ms: int


#: Of queues that say nothing, which most do.
USUAL: Final = QueueRules(
    0, 0, 1_000 * _NOTICE_S, enforced=True, hold_after_ms=1_000 * _HOLD_AFTER_S
)
NO_RULES: Final = RunLimits()


def rules_in(limits: Sequence[RunLimits]) -> QueueRules:
    """The rules of a queue: of what it says, and then its ancestors, the nearest first."""
    said = [each for each in limits if each != NO_RULES]
    if not said:
        return USUAL
    seconds = (
        next((value for each in said if (value := getattr(each, name)) is not None), usual)
        for name, usual in (
            ("usual_s", 0),
            ("most_s", 0),
            ("notice_s", _NOTICE_S),
            ("hold_after_s", _HOLD_AFTER_S),
        )
    )
    usual_ms, most_ms, notice_ms, hold_after_ms = (1_000 * value for value in seconds)
    enforced = next((each.enforced for each in said if each.enforced is not None), True)
    return QueueRules(usual_ms, most_ms, notice_ms, enforced, hold_after_ms)
