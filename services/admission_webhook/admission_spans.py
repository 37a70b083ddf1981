"""One span per Job or PodGroup that is created, in the trace of its gang.

The API server sets an object's UID before it calls validating webhooks, and the gang's trace id is
made from that UID (a Job's first group continues the Job's trace: ADR 0037). A refused object
becomes no gang: its span is the root of its trace, and the only span.
"""

from collections.abc import Callable
from typing import Final

from shared.admission.admission import Subject
from shared.admission.parts import as_list, is_object, member, text_at
from shared.admission.review import AdmissionRequest, Verdict
from shared.contracts.annotations import TRACE_ROOT
from shared.contracts.identity import gang_trace_id, job_trace_root
from shared.dialects.group_metadata import trace_root
from shared.dialects.protocol import JsonObject
from shared.kube.resources import JOBS_VOLCANO, PODGROUPS_VOLCANO
from shared.model.objects import Owner
from shared.telemetry.tracing import Tracer, gang_span

ADMIT: Final = "admit"
_TRACED: Final = frozenset({JOBS_VOLCANO, PODGROUPS_VOLCANO})
_ERROR_CHARACTERS_MAX: Final = 256


class AdmissionSpans:
    def __init__(self, tracer: Tracer, now_ms: Callable[[], int]) -> None:
        self._tracer = tracer
        self._now_ms = now_ms

    def validated(
        self, review: AdmissionRequest, subject: Subject, verdict: Verdict, took_s: float
    ) -> None:
        """Export the validation of an object, which took `took_s`; dry runs and updates are
        skipped.
        """
        if not self._tracer.enabled or review.operation != "CREATE" or review.dry_run:
            return
        resource, candidate = subject.rules.resource, subject.case.candidate
        uid = text_at(candidate, "metadata", "uid")
        if resource not in _TRACED or not uid:
            return
        namespace = subject.case.namespace
        if resource is JOBS_VOLCANO:
            root = job_trace_root(namespace, uid)
        else:
            root = _root_of(candidate, namespace) or uid
        trace_id = gang_trace_id(root, 1)
        if not self._tracer.keeps(trace_id):
            return
        end_ms = self._now_ms()
        errors = "; ".join(error.text for error in verdict.errors)
        self._tracer.span(
            ADMIT,
            trace_id=trace_id,
            start_ms=end_ms - int(took_s * 1000),
            end_ms=end_ms,
            key=resource.kind,
            parent=gang_span(trace_id) if verdict.allowed else "",
            attributes={
                "kind": resource.kind,
                "object": f"{subject.case.namespace}/{subject.case.name}",
                "result": "allowed" if verdict.allowed else "refused",
            },
            error=errors[:_ERROR_CHARACTERS_MAX],
        )


def _root_of(group: JsonObject, namespace: str) -> str:
    """The root of the Job's trace that the group continues; "" for a group with its own trace."""
    listed = as_list(member(group, "metadata", "ownerReferences"))
    owners = (owner for owner in listed if is_object(owner))
    owner = next((owner for owner in owners if owner.get("controller") is True), None)
    if owner is None:
        return ""
    texts = (text_at(owner, key) for key in ("apiVersion", "kind", "name", "uid"))
    api_version, kind, name, uid = texts
    return trace_root(
        text_at(group, "metadata", "annotations", TRACE_ROOT),
        Owner(api_version=api_version, kind=kind, name=name, uid=uid),
        namespace,
    )
