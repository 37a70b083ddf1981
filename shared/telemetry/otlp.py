"""Exports spans over OTLP/HTTP with the SDK's exporter; imported only when there is an endpoint.

The SDK's BatchSpanProcessor is not used: it drops spans without saying how many, and its flush
blocks the event loop. Here one task collects what was handed in and sends it from a thread.
"""

import asyncio
import collections
import contextlib
import logging
import re
from collections.abc import Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from shared.telemetry.tracing import Attributes, span_id

#: A burst of gangs makes tens of thousands of spans within a second (measured: with 2,048, the
#: SDK's default, a third of 20,000 was lost).
QUEUE_MAX: Final = 65536
BATCH_MAX: Final = 2048
#: How long a span may wait for company.
DELAY_S: Final = 0.2
EXPORT_TIMEOUT_S: Final = 5.0

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_OK: Final = Status(StatusCode.UNSET)

_log = logging.getLogger(__name__)


class OtlpTracer:
    """Sends spans to one endpoint. Losses are counted, never raised."""

    enabled = True

    def __init__(self, endpoint: str, *, service: str, instance: str) -> None:
        base = endpoint.rstrip("/")
        url = base if base.endswith("/v1/traces") else f"{base}/v1/traces"
        self._exporter = OTLPSpanExporter(endpoint=url, timeout=EXPORT_TIMEOUT_S)
        self._resource = Resource(
            {"service.name": f"tutti-{service}", "service.instance.id": instance}
        )
        self._scope = InstrumentationScope("tutti")
        self._queue: collections.deque[ReadableSpan] = collections.deque()
        self._news = asyncio.Event()
        self._closing = False
        self.lost = 0
        self._task = asyncio.get_running_loop().create_task(self._export(), name="export spans")

    def span(
        self,
        name: str,
        *,
        trace_id: str,
        start_ms: int,
        end_ms: int,
        key: str = "",
        parent: str = "",
        attributes: Attributes | None = None,
        links: Sequence[str] = (),
        error: str = "",
    ) -> None:
        """See `shared.telemetry.tracing.Tracer`."""
        if len(self._queue) >= QUEUE_MAX:
            self.lost += 1
            return
        own = span_id(trace_id, name, key)
        self._queue.append(
            ReadableSpan(
                name=name,
                context=_context(trace_id, own),
                parent=_context(trace_id, parent) if parent else None,
                resource=self._resource,
                attributes=attributes,
                links=[link for text in links if (link := _link(text)) is not None],
                kind=SpanKind.INTERNAL,
                status=Status(StatusCode.ERROR, error) if error else _OK,
                start_time=start_ms * 1_000_000,
                end_time=max(start_ms, end_ms) * 1_000_000,
                instrumentation_scope=self._scope,
            )
        )
        self._news.set()

    async def close(self, timeout_s: float) -> None:
        """Send what waits, as far as that goes within `timeout_s`, and end."""
        self._closing = True
        self._news.set()
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.shield(self._task)
        except TimeoutError:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self.lost += len(self._queue)
        self._queue.clear()
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # the SDK's

    async def _export(self) -> None:
        while not self._closing or self._queue:
            if not self._queue:
                self._news.clear()
                await self._news.wait()
            if not self._closing:
                await asyncio.sleep(DELAY_S)
            while self._queue:
                count = min(len(self._queue), BATCH_MAX)
                batch = [self._queue.popleft() for _ in range(count)]
                await self._send(batch)

    async def _send(self, batch: list[ReadableSpan]) -> None:
        sent = False
        try:
            result = await asyncio.to_thread(self._exporter.export, batch)
            sent = result is SpanExportResult.SUCCESS
        finally:
            if not sent:
                self.lost += len(batch)
                _log.warning("%d spans could not be exported", len(batch))


def _context(trace_id: str, own: str) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(own, 16), is_remote=False, trace_flags=_SAMPLED)


def _link(traceparent: str) -> Link | None:
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None:
        return None
    context = _context(found[1], found[2])
    return Link(context) if context.is_valid else None
