"""Spans as they arrive at an OTLP endpoint; without one nothing of OpenTelemetry is loaded."""

import subprocess
import sys
import time

import pytest

from shared.contracts.identity import gang_trace_id
from shared.telemetry import otlp
from shared.telemetry.tracing import span_id, tracer_for
from tests.support.otlp_sink import attributes_of, otlp_sink
from tests.support.waiting import eventually

TRACE = gang_trace_id("gang", 1)


def test_ids_follow_from_what_they_name() -> None:
    assert span_id(TRACE, "bind", "7") == span_id(TRACE, "bind", "7")
    assert len({span_id(TRACE, name, key) for name in "ab" for key in "12"}) == 4
    assert len(span_id(TRACE, "bind")) == 16


async def test_a_span_arrives_with_all_that_it_was_given() -> None:
    async with otlp_sink() as sink:
        tracer = tracer_for(sink.endpoint, service="binder", instance="binder-0")
        root = span_id(TRACE, "gang")
        linked = f"00-{'a' * 32}-{'b' * 16}-01"
        tracer.span(
            "bind",
            trace_id=TRACE,
            start_ms=1_000,
            end_ms=1_250,
            key="7",
            parent=root,
            attributes={"gang": "ns/g", "bindings": 8, "whole": True},
            links=[linked, "nonsense", f"00-{'0' * 32}-{'b' * 16}-01"],
            error="one refused",
        )
        await tracer.close(2.0)
        ((service, span),) = sink.spans
    assert service == "tutti-binder"
    assert (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()) == (
        TRACE,
        span_id(TRACE, "bind", "7"),
        root,
    )
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (10**9, 125 * 10**7)
    assert attributes_of(span) == {"gang": "ns/g", "bindings": 8, "whole": True}
    assert [link.span_id.hex() for link in span.links] == ["b" * 16]
    assert (span.status.code, span.status.message) == (2, "one refused")
    assert tracer.lost == 0


async def test_a_root_has_no_parent_and_a_span_never_ends_before_it_starts() -> None:
    async with otlp_sink() as sink:
        tracer = tracer_for(sink.endpoint, service="s", instance="i")
        tracer.span("gang", trace_id=TRACE, start_ms=1_000, end_ms=900)
        await tracer.close(2.0)
        ((_, span),) = sink.spans
    assert span.parent_span_id == b""
    assert span.end_time_unix_nano == span.start_time_unix_nano
    assert span.status.code == 0


async def test_spans_are_sent_without_being_asked_for() -> None:
    async with otlp_sink() as sink:
        tracer = tracer_for(sink.endpoint, service="s", instance="i")
        for key in "abc":
            tracer.span("x", trace_id=TRACE, start_ms=1, end_ms=2, key=key)
        await eventually(lambda: len(sink.spans) == 3, timeout_s=3.0)
        await tracer.close(2.0)


async def test_a_burst_of_ten_thousand_loses_none() -> None:
    async with otlp_sink() as sink:
        tracer = tracer_for(sink.endpoint, service="s", instance="i")
        for key in range(10_000):
            tracer.span("x", trace_id=TRACE, start_ms=1, end_ms=2, key=str(key))
        await tracer.close(20.0)
        assert len(sink.spans) == 10_000
    assert tracer.lost == 0


async def test_what_does_not_fit_into_the_queue_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "QUEUE_MAX", 5)
    async with otlp_sink() as sink:
        tracer = tracer_for(sink.endpoint, service="s", instance="i")
        for key in range(8):
            tracer.span("x", trace_id=TRACE, start_ms=1, end_ms=2, key=str(key))
        await tracer.close(2.0)
        assert len(sink.spans) == 5
    assert tracer.lost == 3


async def test_what_the_endpoint_refuses_is_counted() -> None:
    async with otlp_sink() as sink:
        sink.status = 400
        tracer = tracer_for(sink.endpoint, service="s", instance="i")
        tracer.span("x", trace_id=TRACE, start_ms=1, end_ms=2)
        await tracer.close(2.0)
    assert tracer.lost == 1


async def test_an_endpoint_that_hangs_does_not_hold_up_the_end() -> None:
    async with otlp_sink() as sink:
        sink.gate.clear()
        tracer = tracer_for(sink.endpoint, service="s", instance="i")
        tracer.span("x", trace_id=TRACE, start_ms=1, end_ms=2)
        begun = time.monotonic()
        await tracer.close(0.2)
        assert time.monotonic() - begun < 1.0
        sink.gate.set()
    assert tracer.lost == 1


async def test_without_an_endpoint_a_span_goes_nowhere() -> None:
    tracer = tracer_for("", service="s", instance="i")
    assert not tracer.enabled
    tracer.span("x", trace_id=TRACE, start_ms=1, end_ms=2)
    await tracer.close(1.0)
    assert tracer.lost == 0


def test_without_an_endpoint_nothing_of_opentelemetry_is_loaded() -> None:
    program = (
        "import sys, asyncio\n"
        "import shared.runtime.lifecycle\n"
        "from shared.telemetry.tracing import tracer_for\n"
        "tracer_for('', service='s', instance='i').span('x', trace_id='0', start_ms=0, end_ms=0)\n"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", program])
    assert done.returncode == 0
