"""Events in the words that users of Volcano and kube-scheduler search for.

An event's name follows from its content (object, reason, attempt), so that a second write finds
the first one: a repetition raises its count instead of adding an object. Core v1 events, because
their message may change with the count.
"""

import functools
import hashlib
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec

from shared.contracts.verdicts import PodRef, Verdict, Why
from shared.kube.resources import PODS, Resource

EventType = Literal["Normal", "Warning"]

_SOURCE: Final = "tutti"
#: Reasons of the condition Evicted, and the actions of Volcano that they come from.
_CAUSES: Final = {"Preempted": "preempt", "Reclaimed": "reclaim"}
#: The API server refuses longer messages.
MESSAGE_CHARS_MAX: Final = 1_024
_NAME_CHARS_MAX: Final = 220


class EventIntent(msgspec.Struct, frozen=True, kw_only=True):
    """One event to write, or to write again."""

    #: What it is about, for memory: equal topics are the same event.
    topic: str
    #: Its meaning: it is written again at once when this changes.
    why: str = ""
    namespace: str
    name: str
    body: dict[str, Any]
    #: Whether a second write raises its count and changes its words, or does nothing.
    repeats: bool

    @property
    def message(self) -> str:
        """Its words."""
        return str(self.body["message"])


def group_topic(verdict: Verdict, reason: str) -> str:
    """Topic of an event on the group of `verdict`."""
    return f"{verdict.uid}/{reason}"


def group_event(
    verdict: Verdict,
    resource: Resource,
    type_: EventType,
    reason: str,
    message: str,
    *,
    now_ms: int,
    why: str = "",
) -> EventIntent:
    """An event on the group of `verdict`."""
    reference = _reference(resource, verdict.namespace, verdict.name, verdict.uid)
    return _event(
        group_topic(verdict, reason), reference, type_, reason, message, now_ms, why, repeats=True
    )


def evicted_event(verdict: Verdict, pod: PodRef, now_ms: int) -> EventIntent:
    """`Evict` on a pod that went for another gang, in Volcano's words and why."""
    condition = next((one for one in verdict.conditions if one.type == "Evicted"), None)
    cause = _CAUSES.get(condition.reason, "eviction") if condition is not None else "eviction"
    words = condition.message if condition is not None else ""
    message = f"Pod is evicted, because of {cause}"
    reference = _reference(PODS, verdict.namespace, pod.name, pod.uid)
    return _event(
        f"{pod.uid}/Evict",
        reference,
        "Warning",
        "Evict",
        f"{message} (gang {verdict.name}: {words})" if words else message,
        now_ms,
        "",
        repeats=False,
    )


def pod_event(verdict: Verdict, pod: PodRef, now_ms: int) -> EventIntent:
    """`Scheduled` on a pod, in kube-scheduler's words."""
    reference = _reference(PODS, verdict.namespace, pod.name, pod.uid)
    message = f"Successfully assigned {verdict.namespace}/{pod.name} to {pod.node}"
    topic = f"{pod.uid}/Scheduled"
    return _event(topic, reference, "Normal", "Scheduled", message, now_ms, "", repeats=False)


def waiting_event(verdict: Verdict, pod: PodRef, why: Why, *, now_ms: int) -> EventIntent:
    """`FailedScheduling` on a pod that waits, as kube-scheduler writes it; the sentence is its
    whole gang's.
    """
    reference = _reference(PODS, verdict.namespace, pod.name, pod.uid)
    return _event(
        f"{pod.uid}/FailedScheduling",
        reference,
        "Warning",
        "FailedScheduling",
        why.sentence,
        now_ms,
        why.reason,
        repeats=True,
    )


def _reference(resource: Resource, namespace: str, name: str, uid: str) -> dict[str, str]:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "namespace": namespace,
        "name": name,
        "uid": uid,
    }


def _event(
    topic: str,
    reference: dict[str, str],
    type_: EventType,
    reason: str,
    message: str,
    now_ms: int,
    why: str,
    *,
    repeats: bool,
) -> EventIntent:
    name = (
        f"{reference['name'][:_NAME_CHARS_MAX]}.{hashlib.sha256(topic.encode()).hexdigest()[:16]}"
    )
    instant = rfc3339(now_ms)
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": reference["namespace"]},
        "involvedObject": reference,
        "reason": reason,
        "message": message[:MESSAGE_CHARS_MAX],
        "type": type_,
        "source": {"component": _SOURCE},
        "reportingComponent": _SOURCE,
        "firstTimestamp": instant,
        "lastTimestamp": instant,
        "count": 1,
    }
    return EventIntent(
        topic=topic,
        why=why,
        namespace=reference["namespace"],
        name=name,
        body=body,
        repeats=repeats,
    )


@functools.lru_cache(maxsize=64)
def _to_the_second(instant_s: int) -> str:
    return datetime.fromtimestamp(instant_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339(instant_ms: int) -> str:
    """An instant as Kubernetes writes it, to the second."""
    return _to_the_second(instant_ms // 1000)
