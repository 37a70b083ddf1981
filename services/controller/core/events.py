"""Bodies of Events, in the words that users of Volcano and kube-scheduler search for.

An Event's name follows from its topic (object and reason), so that a second write finds the first
and raises its count instead of creating another object. They are core/v1 Events, because their
message may change with the count.
"""

import functools
import hashlib
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec

from shared.contracts.verdicts import PodRef, Verdict, Why
from shared.kube.resources import PODS, Resource
from shared.model.bounded_text import shortened

EventType = Literal["Normal", "Warning"]

_SOURCE: Final = "tutti"
#: Reasons of the condition Evicted, and the actions of Volcano that they come from.
_CAUSES: Final = {"Preempted": "preempt", "Reclaimed": "reclaim"}
#: Reason of the Event about a Command that is deleted without having been carried out.
COMMAND_REFUSED: Final = "CommandRefused"
#: The longest note of an Event that the API server accepts in every version of its API.
MESSAGE_BYTES_MAX: Final = 1_024
_NAME_CHARS_MAX: Final = 220


class ControllerEvent(msgspec.Struct, frozen=True):
    """An Event about the object that a controller reconciles."""

    type: EventType
    reason: str
    message: str


class StoredEvent(msgspec.Struct, frozen=True):
    """The count of a written Event."""

    count: int | None = None


class EventIntent(msgspec.Struct, frozen=True, kw_only=True):
    """One Event to write, or to write again."""

    #: Object and reason: equal topics are the same Event.
    topic: str
    #: The Event is written again at once when this changes.
    why: str = ""
    namespace: str
    name: str
    body: dict[str, Any]
    #: Whether a second write raises the count and updates the message, or does nothing.
    repeats: bool

    @property
    def message(self) -> str:
        return str(self.body["message"])


def group_topic(verdict: Verdict, reason: str) -> str:
    """Topic of an Event on the verdict's group."""
    return f"{verdict.uid}/{reason}"


def group_event(
    verdict: Verdict, resource: Resource, event: ControllerEvent, *, now_ms: int, why: str = ""
) -> EventIntent:
    """An Event on the verdict's group."""
    reference = object_reference(resource, verdict.namespace, verdict.name, verdict.uid)
    return _intent(reference, event, now_ms, why, repeats=True)


def evicted_event(verdict: Verdict, pod: PodRef, now_ms: int) -> EventIntent:
    """`Evict` on a pod that was evicted for another gang, in Volcano's words, with the reason."""
    condition = next(
        (condition for condition in verdict.conditions if condition.type == "Evicted"), None
    )
    cause = _CAUSES.get(condition.reason, "eviction") if condition is not None else "eviction"
    details = condition.message if condition is not None else ""
    message = f"Pod is evicted, because of {cause}"
    if details:
        message = f"{message} (gang {verdict.name}: {details})"
    event = ControllerEvent("Warning", "Evict", message)
    return _intent(_reference_to(verdict, pod), event, now_ms, "", repeats=False)


def pod_event(verdict: Verdict, pod: PodRef, now_ms: int) -> EventIntent:
    """`Scheduled` on a pod, in kube-scheduler's words."""
    message = f"Successfully assigned {verdict.namespace}/{pod.name} to {pod.node}"
    event = ControllerEvent("Normal", "Scheduled", message)
    return _intent(_reference_to(verdict, pod), event, now_ms, "", repeats=False)


def waiting_event(verdict: Verdict, pod: PodRef, why: Why, *, now_ms: int) -> EventIntent:
    """`FailedScheduling` on a waiting pod, as kube-scheduler writes it, with its gang's reason."""
    event = ControllerEvent("Warning", "FailedScheduling", why.sentence)
    return _intent(_reference_to(verdict, pod), event, now_ms, why.reason, repeats=True)


def event_body(
    reference: dict[str, str], name: str, event: ControllerEvent, at: str, component: str
) -> dict[str, Any]:
    """An Event `name` about the object of `reference`, first seen at the instant `at`.

    It is in the object's namespace; for an object without one, in `default`.
    """
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": reference["namespace"] or "default"},
        "involvedObject": reference,
        "reason": event.reason,
        "message": shortened(event.message, MESSAGE_BYTES_MAX),
        "type": event.type,
        "source": {"component": component},
        "reportingComponent": component,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }


def object_reference(resource: Resource, namespace: str, name: str, uid: str) -> dict[str, str]:
    """An Event's reference to the object that it is about."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "namespace": namespace,
        "name": name,
        "uid": uid,
    }


def _reference_to(verdict: Verdict, pod: PodRef) -> dict[str, str]:
    return object_reference(PODS, verdict.namespace, pod.name, pod.uid)


def _intent(
    reference: dict[str, str], event: ControllerEvent, now_ms: int, why: str, *, repeats: bool
) -> EventIntent:
    topic = f"{reference['uid']}/{event.reason}"
    name = (
        f"{reference['name'][:_NAME_CHARS_MAX]}.{hashlib.sha256(topic.encode()).hexdigest()[:16]}"
    )
    return EventIntent(
        topic=topic,
        why=why,
        namespace=reference["namespace"],
        name=name,
        body=event_body(reference, name, event, rfc3339(now_ms), _SOURCE),
        repeats=repeats,
    )


@functools.lru_cache(maxsize=64)
def _to_the_second(instant_s: int) -> str:
    return datetime.fromtimestamp(instant_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339(instant_ms: int) -> str:
    """An instant as Kubernetes writes it, to the second."""
    return _to_the_second(instant_ms // 1000)
