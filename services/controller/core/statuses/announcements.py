"""The Events that a verdict requires on its group, one for each meaning.

A condition becomes an Event each time that it turns True. A release may be over before its verdict
is read; the condition Releasing, False again, then still has its message.
"""

from collections.abc import Iterator
from typing import Final

from services.controller.core.events import ControllerEvent, EventType
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.verdicts import Condition, GangPhase, Verdict

#: Phases in which the quorum has been reached once.
RAN: Final[frozenset[GangPhase]] = frozenset({"Running", "Unknown", "Completed"})
#: Condition -> type of the Event that is written while it is True.
_EVENT_TYPES: Final[dict[str, EventType]] = {
    "PartlyBound": "Warning",
    "Degraded": "Warning",
    "RoomHeld": "Normal",
    "Evicted": "Normal",
    "OtherScheduler": "Warning",
    "DurationShortened": "Warning",
    "ProvisioningFailed": "Warning",
    "Reserved": "Normal",
    "RunLimit": "Warning",
}
#: Condition -> the Event's reason where it differs; Volcano has the first one.
_REASONS: Final = {"Evicted": "Evict", "RunLimit": "RunLimitEnds"}
#: Conditions that are written before the gang's phase has settled.
_PRESSING: Final = frozenset({*_EVENT_TYPES, "Releasing"})
_RELEASED: Final = "; its bound pods are deleted, so that it does not hold capacity in part"
_EVICTED: Final = "; Tutti evicts its pods"
_RUN_LIMIT: Final = PendingReason.RUN_LIMIT.value
_EXPIRED: Final = "no pod came for the reserved capacity; it is free for other gangs"


class Announcement(ControllerEvent, frozen=True, kw_only=True):
    """One Event that a verdict requires."""

    #: The Event is written again at once when this changes.
    why: str = ""
    #: Written only after `waiting_ms`, since the state may be transient.
    patient: bool = False
    #: Not written again with the same message, even if `why` changes.
    once: bool = False


def announcements(verdict: Verdict) -> Iterator[Announcement]:
    """All Events that the verdict requires on its group."""
    why = verdict.why
    if verdict.phase in RAN:
        yield Announcement(type="Normal", reason="Scheduled", message="pod group is ready")
        if why is not None and why.reason == PendingReason.NOT_STARTING:
            yield Announcement(
                type="Warning",
                reason=why.reason,
                message=why.sentence,
                why=why.reason,
                patient=True,
            )
    elif why is not None and verdict.members > 0 and not _holds(verdict, "Releasing"):
        yield _waiting(verdict, why.reason, why.sentence)
    for condition in verdict.conditions:
        yield from _of_condition(condition)


def is_pressing(verdict: Verdict) -> bool:
    """Whether a condition is True that is written at once."""
    return any(_holds(verdict, type_) for type_ in _PRESSING)


def _holds(verdict: Verdict, type_: str) -> bool:
    return any(
        condition.type == type_ and condition.status == "True" for condition in verdict.conditions
    )


def _of_condition(condition: Condition) -> Iterator[Announcement]:
    holds, since = condition.status == "True", str(condition.since_ms)
    type_ = _EVENT_TYPES.get(condition.type)
    if type_ is not None and holds:
        # A gang is below its quorum for a moment while a lost pod is being replaced.
        yield Announcement(
            type=type_,
            reason=_REASONS.get(condition.type, condition.type),
            message=condition.message,
            why=since,
            patient=condition.type == "Degraded",
        )
    elif condition.type == "RoomHeld" and condition.reason == "Expired":
        yield Announcement(type="Warning", reason="HoldExpired", message=_EXPIRED, why=since)
    elif condition.type == "Releasing" and condition.message:
        # The message begins with the reason, also when the release has ended.
        at_limit = condition.message.startswith(f"{_RUN_LIMIT}: ")
        yield Announcement(
            type="Warning",
            reason=_RUN_LIMIT if at_limit else "GangReleased",
            message=condition.message + (_EVICTED if at_limit else _RELEASED),
            why=since,
            once=not holds,
        )


def _waiting(verdict: Verdict, reason: str, sentence: str) -> Announcement:
    """An API server's refusal has a reason of its own. Otherwise the words are Volcano's: a Warning
    for a gang that does not fit, Normal for one that is not admitted yet.
    """
    if reason == PendingReason.BINDING_REFUSED:
        return Announcement(type="Warning", reason=reason, message=sentence, why=reason)
    admitted = verdict.phase != "Pending" or _holds(verdict, "Unschedulable")
    counts = f"{verdict.pending}/{verdict.members}"
    return Announcement(
        type="Warning" if admitted else "Normal",
        reason="Unschedulable",
        message=f"{counts} tasks in gang unschedulable: {sentence}" if admitted else sentence,
        why=reason,
        patient=True,
    )
