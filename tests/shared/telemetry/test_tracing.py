"""Spans as they arrive at an OTLP endpoint; without one not even the exporter is loaded."""

import logging
import subprocess
import sys
import time

import pytest

from shared.contracts.identity import gang_trace_id, span_id
from shared.telemetry import otlp, otlp_export
from shared.telemetry.tracers import tracer_for
from shared.telemetry.tracing import Event, sampled
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
            events=[Event("repair begun", 1_100, {"reason": "BindingRefused"})],
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
    (event,) = span.events
    assert (event.name, event.time_unix_nano) == ("repair begun", 11 * 10**8)
    assert [each.value.string_value for each in event.attributes] == ["BindingRefused"]
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
        await eventually(lambda: len(sink.spans) == 3, timeout_s=20.0)
        await tracer.close(2.0)


async def test_a_burst_of_ten_thousand_loses_none() -> None:
    async with otlp_sink() as sink:
        tracer = tracer_for(sink.endpoint, service="s", instance="i")
        for key in range(10_000):
            tracer.span("x", trace_id=TRACE, start_ms=1, end_ms=2, key=str(key))
        await tracer.close(20.0)
        assert len(sink.spans) == 10_000
    assert tracer.lost == 0


async def test_a_full_batch_does_not_wait_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "DELAY_S", 3600.0)
    monkeypatch.setattr(otlp, "BATCH_MAX", 3)
    async with otlp_sink() as sink:
        tracer = tracer_for(sink.endpoint, service="s", instance="i")
        for key in "abc":
            tracer.span("x", trace_id=TRACE, start_ms=1, end_ms=2, key=key)
        await eventually(lambda: len(sink.spans) == 3)
        tracer.span("x", trace_id=TRACE, start_ms=1, end_ms=2, key="d")
        await tracer.close(2.0)
        assert len(sink.spans) == 4, "the end does not wait for more either"


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


async def test_an_endpoint_that_fails_is_left_alone_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(otlp, "PAUSE_S", (3600.0, 3600.0))
    async with otlp_sink() as sink:
        sink.status = 400
        tracer = tracer_for(sink.endpoint, service="s", instance="i")
        tracer.span("x", trace_id=TRACE, start_ms=1, end_ms=2)
        await eventually(lambda: tracer.lost == 1)
        sink.status = 200
        for key in "abc":
            tracer.span("x", trace_id=TRACE, start_ms=1, end_ms=2, key=key)
        assert tracer.lost == 4, "not even kept"
        await tracer.close(2.0)
        assert not sink.spans


async def test_an_endpoint_that_failed_is_tried_again_with_a_few(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger=otlp.__name__)
    monkeypatch.setattr(otlp, "PAUSE_S", (0.0, 0.0))
    monkeypatch.setattr(otlp, "PROBE_MAX", 2)
    async with otlp_sink() as sink:
        sink.status = 400
        tracer = tracer_for(sink.endpoint, service="s", instance="i")
        tracer.span("x", trace_id=TRACE, start_ms=1, end_ms=2)
        await eventually(lambda: tracer.lost == 1)
        sink.status = 200
        for key in "abc":
            tracer.span("x", trace_id=TRACE, start_ms=1, end_ms=2, key=key)
        await eventually(lambda: "exported again; 2 were lost" in caplog.text)
        assert len(sink.spans) == 2
        for key in "defg":
            tracer.span("x", trace_id=TRACE, start_ms=1, end_ms=2, key=key)
        await tracer.close(2.0)
        assert len(sink.spans) == 6, "it answers, so all are kept again"
    assert tracer.lost == 2


def test_every_service_samples_the_same_share() -> None:
    ids = [gang_trace_id(f"gang-{number}", 1) for number in range(4_000)]
    kept = [trace_id for trace_id in ids if sampled(trace_id, 0.25)]
    assert 900 < len(kept) < 1_100
    assert set(kept) <= {trace_id for trace_id in ids if sampled(trace_id, 0.5)}
    assert all(sampled(trace_id, 1.0) for trace_id in ids)
    assert not any(sampled(trace_id, 0.0) for trace_id in ids)


async def test_a_trace_that_is_not_sampled_is_neither_sent_nor_lost() -> None:
    ids = [gang_trace_id(f"gang-{number}", 1) for number in range(40)]
    async with otlp_sink() as sink:
        tracer = tracer_for(sink.endpoint, service="s", instance="i", ratio=0.5)
        for trace_id in ids:
            tracer.span("gang", trace_id=trace_id, start_ms=1, end_ms=2)
            tracer.span("bind", trace_id=trace_id, start_ms=1, end_ms=2)
        await tracer.close(2.0)
        sent = [span.trace_id.hex() for _, span in sink.spans]
    kept = [trace_id for trace_id in ids if sampled(trace_id, 0.5)]
    assert kept == [trace_id for trace_id in ids if tracer.keeps(trace_id)]
    assert 0 < len(kept) < len(ids)
    assert sorted(sent) == sorted(2 * kept)
    assert tracer.lost == 0


async def test_an_exporter_that_cannot_work_costs_its_spans_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(**_: object) -> None:
        raise ValueError("no such compression")

    monkeypatch.setattr(otlp_export, "OTLPSpanExporter", refuse)
    tracer = tracer_for("http://127.0.0.1:9", service="s", instance="i")
    tracer.span("x", trace_id=TRACE, start_ms=1, end_ms=2)
    await tracer.close(20.0)
    assert tracer.lost == 1
    assert "no such compression" in caplog.text


async def test_an_endpoint_that_hangs_does_not_hold_up_the_end() -> None:
    async with otlp_sink() as sink:
        sink.gate.clear()
        tracer = tracer_for(sink.endpoint, service="s", instance="i")
        tracer.span("x", trace_id=TRACE, start_ms=1, end_ms=2)
        begun = time.monotonic()
        await tracer.close(0.2)
        assert time.monotonic() - begun < 10.0
        sink.gate.set()
    assert tracer.lost == 1


async def test_without_an_endpoint_a_span_goes_nowhere() -> None:
    tracer = tracer_for("", service="s", instance="i")
    assert not tracer.enabled
    tracer.span("x", trace_id=TRACE, start_ms=1, end_ms=2)
    await tracer.close(1.0)
    assert tracer.lost == 0


def test_without_an_endpoint_the_exporter_is_not_loaded() -> None:
    program = (
        "import sys, asyncio\n"
        "import shared.runtime.lifecycle\n"
        "from shared.telemetry.tracers import tracer_for\n"
        "tracer_for('', service='s', instance='i').span('x', trace_id='0', start_ms=0, end_ms=0)\n"
        "sys.exit('shared.telemetry.otlp' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program])
    assert done.returncode == 0


def test_a_start_does_not_wait_for_the_sdk() -> None:
    program = (
        "import sys, asyncio\n"
        "from shared.telemetry.tracers import tracer_for\n"
        "async def main():\n"
        "    tracer = tracer_for('http://127.0.0.1:9', service='s', instance='i')\n"
        "    assert not any(name.startswith('opentelemetry') for name in sys.modules)\n"
        "    tracer.span('x', trace_id='0' * 32, start_ms=0, end_ms=0)\n"
        "    await tracer.close(30.0)\n"
        "    assert 'opentelemetry.sdk.trace' in sys.modules\n"
        "asyncio.run(main())\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


async def test_texts_of_a_span_are_bounded() -> None:
    async with otlp_sink() as sink:
        tracer = tracer_for(sink.endpoint, service="binder", instance="binder-0")
        tracer.span(
            "bind",
            trace_id=TRACE,
            start_ms=1_000,
            end_ms=1_250,
            attributes={"message": "m" * 100_000},
            events=[Event("repair begun", 1_100, {"message": "m" * 100_000})],
            error="e" * 100_000,
        )
        await tracer.close(5.0)
        (span,) = sink.named("bind")
    assert len(span.SerializeToString()) < 4 * otlp_export.TEXT_BYTES_MAX
    assert span.status.message.endswith("more characters)")
