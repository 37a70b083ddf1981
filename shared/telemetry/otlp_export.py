"""Puts spans into the SDK's form and sends them with its OTLP/HTTP exporter.

Importing this costs 0.1 to 0.2 s of CPU (the SDK, requests, protobuf). So it is imported where that
delays no service: by `shared.telemetry.otlp` in its thread, with the first batch; by `tutti up`
once, before it forks its services.
"""

import logging
import re
from collections.abc import Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event as SdkEvent
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from shared.contracts.identity import span_id
from shared.model.bounded_text import shortened
from shared.telemetry.tracing import Attributes, EndedSpan

EXPORT_TIMEOUT_S: Final = 5.0

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_OK: Final = Status(StatusCode.UNSET)
_SCOPE: Final = InstrumentationScope("tutti")
_NS: Final = 1_000_000
#: Of one attribute, and of an error.
TEXT_BYTES_MAX: Final = 1_024


class Exporter:
    """Exports to one endpoint. Its methods block, and are not safe for concurrent threads."""

    def __init__(self, endpoint: str, *, service: str, instance: str) -> None:
        base = endpoint.rstrip("/")
        url = base if base.endswith("/v1/traces") else f"{base}/v1/traces"
        # It warns of each attempt; a failed export is logged once, with the reason.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.ERROR)
        self._exporter = OTLPSpanExporter(endpoint=url, timeout=EXPORT_TIMEOUT_S)
        self._resource = Resource(
            {"service.name": f"tutti-{service}", "service.instance.id": instance}
        )

    def export(self, batch: Sequence[EndedSpan]) -> bool:
        """Send a batch; returns whether the endpoint accepted it."""
        spans = [_readable(handed, self._resource) for handed in batch]
        return self._exporter.export(spans) is SpanExportResult.SUCCESS

    def close(self) -> None:
        """End an export that is still being retried."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # the SDK's


def _readable(handed: EndedSpan, resource: Resource) -> ReadableSpan:
    """The span in the SDK's form."""
    trace_id, parent, error = handed.trace_id, handed.parent, handed.error
    return ReadableSpan(
        name=handed.name,
        context=_context(trace_id, span_id(trace_id, handed.name, handed.key)),
        parent=_context(trace_id, parent) if parent else None,
        resource=resource,
        attributes=_bounded(handed.attributes or {}),
        links=[link for text in handed.links if (link := _link(text)) is not None],
        events=[
            SdkEvent(event.name, _bounded(event.attributes), event.at_ms * _NS)
            for event in handed.events
        ],
        kind=SpanKind.INTERNAL,
        status=Status(StatusCode.ERROR, shortened(error, TEXT_BYTES_MAX)) if error else _OK,
        start_time=handed.start_ms * _NS,
        end_time=max(handed.start_ms, handed.end_ms) * _NS,
        instrumentation_scope=_SCOPE,
    )


def _bounded(attributes: Attributes) -> dict[str, str | int | bool | float]:
    """The attributes, their texts shortened: some are users' or the API server's."""
    return {
        key: shortened(value, TEXT_BYTES_MAX) if isinstance(value, str) else value
        for key, value in attributes.items()
    }


def _context(trace_id: str, own: str) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(own, 16), is_remote=False, trace_flags=_SAMPLED)


def _link(traceparent: str) -> Link | None:
    matched = _TRACEPARENT.fullmatch(traceparent)
    if matched is None:
        return None
    context = _context(matched[1], matched[2])
    return Link(context) if context.is_valid else None
