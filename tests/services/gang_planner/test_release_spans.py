"""A release is a span of the trace of the attempt that it gives back."""

import pytest

from services.gang_planner.inbox import CheckpointArrival
from services.gang_planner.tracing import RECENT_MS, GangTraces
from shared.contracts.decisions import (
    Checkpoint,
    DecisionRecord,
    EvictionDecision,
    NoteClosed,
    NoteOpened,
    OpenGang,
    Victim,
)
from shared.contracts.identity import gang_trace_id
from shared.telemetry.tracing import gang_span
from tests.services.gang_planner.test_tracing import decision, stored
from tests.support.kept_spans import KeptSpans

OPENED = NoteOpened(
    gang_id="g",
    epoch=2,
    kind="release",
    at_ms=3_000,
    until_ms=0,
    reason="BindingRefused",
    attempt=2,
    message="w-1: denied",
)
DECIDED = EvictionDecision(
    gang_id="g",
    gang="default/g",
    epoch=2,
    attempt=2,
    victims=tuple(Victim(uid=f"u-{i}", namespace="default", name=f"w-{i}") for i in range(2)),
    via="delete",
    reason="BindingRefused",
    trace_id=gang_trace_id("g", 2),
    cycle=decision().cycle,
)
CLOSED = NoteClosed(gang_id="g", epoch=2, kind="release", at_ms=3_400, reason="Released")


def follow(traces: GangTraces, *records: DecisionRecord) -> None:
    traces.take([stored(seq, record) for seq, record in enumerate(records, start=10)])


def test_a_release_is_reported_when_it_ends_in_the_trace_of_its_attempt() -> None:
    tracer = KeptSpans()
    traces = GangTraces(tracer)
    traces.lead(0)
    follow(traces, OPENED, DECIDED, DECIDED)
    assert tracer.spans == []
    follow(traces, CLOSED)
    (span,) = tracer.spans
    trace_id = gang_trace_id("g", 2)
    assert (span.name, span.trace_id, span.parent) == ("release", trace_id, gang_span(trace_id))
    assert (span.start_ms, span.end_ms, span.error) == (3_000, 3_400, "BindingRefused")
    assert span.attributes["victims"] == 2, "asked for twice, they are the same pods"
    assert span.attributes["message"] == "w-1: denied"


@pytest.mark.parametrize(("took_over_ms", "reported"), [(4_000, 1), (3_401 + RECENT_MS, 0)])
def test_a_standby_reports_releases_that_ended_just_before_it_took_over(
    took_over_ms: int, reported: int
) -> None:
    tracer = KeptSpans()
    traces = GangTraces(tracer)
    follow(traces, OPENED, DECIDED, CLOSED)
    assert tracer.spans == []
    traces.lead(took_over_ms)
    assert len(tracer.spans) == reported


def test_a_release_that_is_open_in_a_checkpoint_is_reported_when_it_ends() -> None:
    tracer = KeptSpans()
    traces = GangTraces(tracer)
    traces.lead(0)
    page = Checkpoint(
        epoch=2,
        up_to=10,
        outcomes_seq=0,
        page=0,
        pages=1,
        gangs=(OpenGang(gang_id="g", attempt=2, notes=(OPENED,)),),
    )
    traces.take([CheckpointArrival((page,), {})])
    follow(traces, CLOSED)
    assert [span.name for span in tracer.spans] == ["release"]


def test_other_notes_are_no_releases() -> None:
    tracer = KeptSpans()
    traces = GangTraces(tracer)
    traces.lead(0)
    hold = NoteOpened(gang_id="g", epoch=2, kind="hold", at_ms=1, until_ms=2, reason="NodeLost")
    follow(traces, hold, NoteClosed(gang_id="g", epoch=2, kind="hold", at_ms=3, reason="Expired"))
    assert tracer.spans == []
