"""The spans of an object's admission, and their trace."""

from typing import Any

import pytest

from services.admission_webhook.admission_spans import AdmissionSpans
from shared.admission.admission import validate
from shared.admission.review import decode_review
from shared.contracts.identity import gang_trace_id
from shared.telemetry.tracing import gang_span
from tests.services.admission_webhook.reviews import (
    Object,
    a_job,
    a_pod,
    a_pod_group,
    a_task,
    asked,
    review,
)
from tests.support.kept_spans import KeptSpans, Span

NOW_MS = 5_000
OWNER = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "name": "trial",
    "uid": "u-job",
    "controller": True,
}


def spans_of(candidate: Object, *, enabled: bool = True, **request: Any) -> list[Span]:
    tracer = KeptSpans(enabled=enabled)
    body = review(candidate, **request)
    subject = asked(body)
    assert subject is not None
    spans = AdmissionSpans(tracer, lambda: NOW_MS)
    spans.validated(decode_review(body), subject, validate(subject), 0.0305)
    return tracer.spans


def made(candidate: Object, **metadata: Any) -> Object:
    """As validating webhooks see it: the API server has given it a UID."""
    candidate["metadata"] |= {"uid": "u-1", **metadata}
    return candidate


def test_a_job_is_in_the_trace_of_its_gang() -> None:
    (span,) = spans_of(made(a_job(a_task(), minAvailable=1, queue="default")))
    trace_id = gang_trace_id("team/u-1", 1)
    assert (span.name, span.trace_id, span.parent) == ("admit", trace_id, gang_span(trace_id))
    assert (span.start_ms, span.end_ms, span.error) == (4_970, 5_000, "")
    assert span.attributes == {"kind": "Job", "object": "team/trial", "result": "allowed"}


@pytest.mark.parametrize(
    ("notes", "owners", "root"),
    [
        pytest.param({"tutti.dev/trace-root": "u-job"}, [OWNER], "team/u-job", id="first of a job"),
        pytest.param({"tutti.dev/trace-root": "u-job"}, [], "u-1", id="a claim without an owner"),
        pytest.param({"tutti.dev/trace-root": "u-2"}, [OWNER], "u-1", id="another's job"),
        pytest.param({}, [OWNER], "u-1", id="a later one of a job"),
        pytest.param({}, "nonsense", "u-1", id="owners of the wrong type"),
    ],
)
def test_a_group_is_in_its_jobs_trace_or_in_its_own(
    notes: dict[str, str], owners: object, root: str
) -> None:
    group = made(a_pod_group(minMember=1), annotations=notes, ownerReferences=owners)
    (span,) = spans_of(group)
    assert span.trace_id == gang_trace_id(root, 1)


def test_what_is_refused_is_a_root_of_its_own_and_an_error() -> None:
    (span,) = spans_of(made(a_job(a_task(), minAvailable=9, queue="default")))
    assert span.parent == ""
    assert "minAvailable" in span.error
    assert span.attributes["result"] == "refused"


@pytest.mark.parametrize(
    ("candidate", "request_fields"),
    [
        pytest.param(made(a_job(a_task())), {"dryRun": True}, id="only tried"),
        pytest.param(made(a_job(a_task())), {"old": made(a_job(a_task()))}, id="an update"),
        pytest.param(a_job(a_task()), {}, id="without a uid"),
        pytest.param(made(a_pod()), {}, id="a pod"),
    ],
)
def test_only_created_jobs_and_groups_get_a_span(
    candidate: Object, request_fields: dict[str, Any]
) -> None:
    assert spans_of(candidate, **request_fields) == []


def test_without_an_endpoint_no_span_is_exported() -> None:
    assert spans_of(made(a_job(a_task())), enabled=False) == []
