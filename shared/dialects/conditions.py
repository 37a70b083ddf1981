"""Conditions of a verdict in the form of Kubernetes' API (`metav1.Condition`)."""

from typing import Final

from shared.contracts.verdicts import Condition, Verdict
from shared.dialects.kubebatch_fields import instant
from shared.dialects.protocol import JsonObject

#: The limit of the API.
_MESSAGE_CHARACTERS_MAX: Final = 32_768


def condition_of(verdict: Verdict, kind: str) -> Condition | None:
    """The verdict's condition of this type; None: it has none."""
    return next((one for one in verdict.conditions if one.type == kind), None)


def written_condition(
    kind: str, status: str, reason: str, message: str, since_ms: int
) -> JsonObject:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message[:_MESSAGE_CHARACTERS_MAX],
        "lastTransitionTime": instant(since_ms),
    }


def disruption_target(verdict: Verdict) -> JsonObject | None:
    """Whether the group is disrupted: so many of its pods were evicted that it does not run. None:
    none of them was.
    """
    evicted = condition_of(verdict, "Evicted")
    if evicted is None:
        return None
    ends = evicted.status == "True" and verdict.phase not in {"Running", "Completed"}
    return written_condition(
        "DisruptionTarget",
        "True" if ends else "False",
        "PreemptionByScheduler",
        evicted.message,
        evicted.since_ms,
    )
