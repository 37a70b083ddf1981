"""The spans of making a Job's group and pods, and when they are exported again."""

import msgspec
import pytest

from services.controller.core.jobs.step import Step
from services.controller.job_spans import JobSpans
from shared.contracts.identity import gang_trace_id
from shared.kinds.job import Job
from shared.telemetry.tracing import gang_span
from tests.services.controller.core.jobs.making import a_job, a_task, step
from tests.support.kept_spans import KeptSpans

NOW_MS = 5_000


@pytest.fixture
def tracer() -> KeptSpans:
    return KeptSpans()


@pytest.fixture
def spans(tracer: KeptSpans) -> JobSpans:
    return JobSpans(tracer, lambda: NOW_MS)


def pending(version: int = 0) -> Job:
    return a_job(a_task(replicas=2), phase="Pending", status={"version": version})


def making_group(version: int = 0) -> Step:
    planned = step(pending(version), grouped=False)
    assert planned.make_group is not None
    return msgspec.structs.replace(planned, make_pods=())


def making_pods(version: int = 0) -> Step:
    planned = step(pending(version))
    assert len(planned.make_pods) == 2
    return planned


def test_a_first_group_and_its_pods_are_in_the_jobs_trace(
    spans: JobSpans, tracer: KeptSpans
) -> None:
    spans.performed(making_group(), 1_000, 1_020, "g-1")
    spans.performed(making_pods(), 2_000, 0, "g-1")
    group, pods = tracer.spans
    trace_id = gang_trace_id("ns/u-1", 1)
    assert {span.trace_id for span in tracer.spans} == {trace_id}
    assert {span.parent for span in tracer.spans} == {gang_span(trace_id)}
    assert (group.name, group.start_ms, group.end_ms) == ("make group", 1_000, 1_020)
    assert (pods.name, pods.start_ms, pods.end_ms) == ("make pods", 2_000, NOW_MS)
    assert pods.attributes == {"job": "ns/a", "version": 0, "pods": 2}


def test_after_a_restart_the_job_is_in_the_new_groups_trace(
    spans: JobSpans, tracer: KeptSpans
) -> None:
    spans.performed(making_group(1), 1_000, 1_020, "g-2")
    spans.performed(making_pods(1), 2_000, 0, "g-2")
    assert {span.trace_id for span in tracer.spans} == {gang_trace_id("g-2", 1)}


def test_a_failure_is_reported_once_for_each_reason(spans: JobSpans, tracer: KeptSpans) -> None:
    for began_ms, error in ((1, "quota"), (2, "quota"), (3, "policy"), (4, "quota")):
        spans.performed(making_pods(), began_ms, 0, "g-1", error)
    assert [span.error for span in tracer.spans] == ["quota", "policy", "quota"]


def test_a_group_that_could_not_be_made_is_an_error(spans: JobSpans, tracer: KeptSpans) -> None:
    spans.performed(making_group(), 1_000, 0, "", "forbidden")
    (span,) = tracer.spans
    assert (span.name, span.error, span.end_ms) == ("make group", "forbidden", NOW_MS)


def test_pods_of_a_job_that_started_get_no_span(spans: JobSpans, tracer: KeptSpans) -> None:
    running = step(a_job(a_task(replicas=2), phase="Running"))
    assert running.make_pods
    spans.performed(running, 1_000, 0, "g-1")
    assert tracer.spans == []


def test_without_an_endpoint_no_span_is_exported() -> None:
    tracer = KeptSpans(enabled=False)
    JobSpans(tracer, lambda: NOW_MS).performed(making_pods(), 1_000, 0, "g-1")
    assert tracer.spans == []
