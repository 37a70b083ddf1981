"""PodScheduled=False on a member that waits: what `kubectl describe pod` and cluster autoscalers
read.

Its reason is always Unschedulable, as kube-scheduler writes it: autoscalers look for that word. The
sentence says what is missing, for the whole gang.
"""

from typing import Any, Final

import msgspec

from services.controller.core.events import rfc3339
from shared.contracts.verdicts import PodRef, Why

_MESSAGE_CHARS_MAX: Final = 1_024


class MarkWaiting(msgspec.Struct, frozen=True, kw_only=True):
    """Patch the status of one waiting pod."""

    pod: PodRef
    namespace: str
    #: Memory of what was reported.
    why: str
    words: str
    body: dict[str, Any]


def mark_waiting(namespace: str, pod: PodRef, why: Why, *, at_ms: int) -> MarkWaiting:
    """A strategic merge patch that leaves the pod's other conditions alone."""
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": why.sentence[:_MESSAGE_CHARS_MAX],
        "lastProbeTime": None,
        "lastTransitionTime": rfc3339(at_ms),
    }
    return MarkWaiting(
        pod=pod,
        namespace=namespace,
        why=why.reason,
        words=why.sentence,
        body={"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}},
    )


def bound_after_all(mark: MarkWaiting) -> dict[str, Any]:
    """The patch that takes a mark back from a pod that was bound while it was written."""
    condition = {
        "type": "PodScheduled",
        "status": "True",
        "reason": "",
        "message": "",
        "lastProbeTime": None,
    }
    return {"metadata": {"uid": mark.pod.uid}, "status": {"conditions": [condition]}}
