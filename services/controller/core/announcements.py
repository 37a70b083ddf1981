"""Which parts of a verdict become Events on its group: each meaning once.

A condition becomes an Event when it turns True, and again when it does so again. A release may be
over before its verdict is read: then the condition that is False again still shows it.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from services.controller.core.events import EventType
from shared.contracts.verdicts import Condition, GangPhase, Verdict

#: Phases in which the quorum has been reached once.
RAN: Final[frozenset[GangPhase]] = frozenset({"Running", "Unknown", "Completed"})
#: Conditions that become Events while they hold: type of their event.
_TOLD: Final[dict[str, EventType]] = {
    "PartlyBound": "Warning",
    "Degraded": "Warning",
    "RoomHeld": "Normal",
    "Evicted": "Normal",
}
#: Under which reason Volcano reports a condition.
_REASONS: Final = {"Evicted": "Evict"}
#: Conditions that cannot wait until their gang's phase has settled.
_PRESSING: Final = frozenset({*_TOLD, "Releasing"})
_RELEASED: Final = "; its bound pods are deleted, so that it does not hold capacity in part"
_EXPIRED: Final = "no pod came for the reserved capacity; it is free for other gangs"


class Announcement(msgspec.Struct, frozen=True, kw_only=True):
    """One Event that a verdict asks for."""

    type: EventType
    reason: str
    message: str
    #: Reported again at once when this changes.
    why: str = ""
    #: Only when it has lasted: it may pass.
    patient: bool = False
    #: Not again in the same words, whatever `why` says.
    once: bool = False


def announcements(verdict: Verdict) -> Iterator[Announcement]:
    """All Events that the verdict asks for on its group."""
    why = verdict.why
    if verdict.phase in RAN:
        yield Announcement(type="Normal", reason="Scheduled", message="pod group is ready")
        if why is not None and why.reason == "NotStarting":
            yield Announcement(
                type="Warning",
                reason="NotStarting",
                message=why.sentence,
                why=why.reason,
                patient=True,
            )
    elif why is not None and verdict.members > 0 and not _holds(verdict, "Releasing"):
        yield _waiting(verdict, why.reason, why.sentence)
    for condition in verdict.conditions:
        yield from _of_condition(condition)


def pressing(verdict: Verdict) -> bool:
    """Whether a condition holds that people must not wait for."""
    return any(_holds(verdict, type_) for type_ in _PRESSING)


def _holds(verdict: Verdict, type_: str) -> bool:
    return any(one.type == type_ and one.status == "True" for one in verdict.conditions)


def _of_condition(condition: Condition) -> Iterator[Announcement]:
    holds, since = condition.status == "True", str(condition.since_ms)
    type_ = _TOLD.get(condition.type)
    if type_ is not None and holds:
        # Below its quorum a gang may be for the moment that a pod takes to be made again.
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
        yield Announcement(
            type="Warning",
            reason="GangReleased",
            message=condition.message + _RELEASED,
            why=since,
            once=not holds,
        )


def _waiting(verdict: Verdict, reason: str, sentence: str) -> Announcement:
    """A refusal by the API server under its own name; all else in Volcano's words: a Warning for a
    gang that does not fit, Normal for one not admitted yet.
    """
    if reason == "BindingRefused":
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
