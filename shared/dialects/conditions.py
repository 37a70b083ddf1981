"""Conditions of a verdict as the statuses of group objects have them."""

from datetime import UTC, datetime
from typing import Any, Final

from shared.contracts.verdicts import Condition, Verdict
from shared.dialects.protocol import JsonObject

#: The limit of the API.
_MESSAGE_CHARACTERS_MAX: Final = 32_768


def condition_of(verdict: Verdict, kind: str) -> Condition | None:
    """The verdict's condition of this type; None: it has none."""
    return next((condition for condition in verdict.conditions if condition.type == kind), None)


def instant(at_ms: int) -> Any:
    """RFC 3339 in whole seconds, as metav1.Time is; None (the field is left out) when unknown."""
    if not at_ms:
        return None
    return datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def conditions_of(verdict: Verdict) -> list[JsonObject]:
    """The verdict's conditions, as kube-batch's heirs have them."""
    return [
        {
            **written_condition(
                condition.type,
                condition.status,
                condition.reason,
                condition.message,
                condition.since_ms,
            ),
            "transitionID": verdict.trace_id,
        }
        for condition in verdict.conditions
    ]


def written_condition(
    kind: str, status: str, reason: str, message: str, since_ms: int
) -> JsonObject:
    """A condition in the form of Kubernetes' API (`metav1.Condition`)."""
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
