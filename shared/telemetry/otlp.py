"""Exports spans over OTLP/HTTP with the SDK's exporter; imported only when there is an endpoint.

The SDK's BatchSpanProcessor is not used: it drops spans without saying how many, and its flush
blocks the event loop. Here one task collects what was handed in and sends it from a thread, where
it is also put into the SDK's form: who hands in pays a microsecond.

An endpoint that does not answer costs nothing but its spans. After a failed export none is even
kept for a while (counted as lost), then a few are tried again.
"""

import asyncio
import collections
import contextlib
import logging
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event as SdkEvent
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from shared.contracts.identity import span_id
from shared.telemetry.tracing import Attributes, Event, sampled

#: A burst of gangs makes tens of thousands of spans within a second (measured: with 2,048, the
#: SDK's default, a third of 20,000 was lost).
QUEUE_MAX: Final = 65536
#: While it is not known whether the endpoint answers (again), so many are kept to try it with.
PROBE_MAX: Final = 1024
#: While a batch is encoded, other threads get the interpreter in turns only: 20 ms for so many.
BATCH_MAX: Final = 512
#: How long a span may wait for company.
DELAY_S: Final = 0.2
EXPORT_TIMEOUT_S: Final = 5.0
#: After a failed export nothing is kept for the first time, doubled each time up to the second.
PAUSE_S: Final = (1.0, 30.0)

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_OK: Final = Status(StatusCode.UNSET)
_SCOPE: Final = InstrumentationScope("tutti")
_NS: Final = 1_000_000

_log = logging.getLogger(__name__)


class _Handed(NamedTuple):
    """A span as it was handed in."""

    name: str
    trace_id: str
    start_ms: int
    end_ms: int
    key: str
    parent: str
    attributes: Attributes | None
    links: Sequence[str]
    events: Sequence[Event]
    error: str


class OtlpTracer:
    """Sends spans to one endpoint. Losses are counted, never raised."""

    enabled = True

    def __init__(self, endpoint: str, *, service: str, instance: str, ratio: float = 1.0) -> None:
        base = endpoint.rstrip("/")
        url = base if base.endswith("/v1/traces") else f"{base}/v1/traces"
        # It warns of each try; that an export failed for good it says once, with the reason.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.ERROR)
        self._exporter = OTLPSpanExporter(endpoint=url, timeout=EXPORT_TIMEOUT_S)
        self._resource = Resource(
            {"service.name": f"tutti-{service}", "service.instance.id": instance}
        )
        self._ratio = ratio
        self._loop = asyncio.get_running_loop()
        self._queue: collections.deque[_Handed] = collections.deque()
        self._queue_max = QUEUE_MAX
        #: Until then, in the loop's seconds, the endpoint is left alone.
        self._paused_until_s = 0.0
        self._pause_s = PAUSE_S[0]
        self._news = asyncio.Event()
        self._closing = False
        self.lost = 0
        self._task = self._loop.create_task(self._export(), name="export spans")

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
        events: Sequence[Event] = (),
        error: str = "",
    ) -> None:
        """See `shared.telemetry.tracing.Tracer`."""
        if self._ratio < 1.0 and not sampled(trace_id, self._ratio):
            return
        if len(self._queue) >= self._queue_max or self._paused_until_s > self._loop.time():
            self.lost += 1
            return
        self._queue.append(
            _Handed(name, trace_id, start_ms, end_ms, key, parent, attributes, links, events, error)
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
        self._lose_queue()
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

    async def _send(self, batch: list[_Handed]) -> None:
        sent = False
        try:
            sent = await asyncio.to_thread(self._sent, batch)
        finally:
            if not sent:
                self.lost += len(batch)
        if sent:
            if self._queue_max < QUEUE_MAX:
                _log.info("spans are exported again; %d were lost so far", self.lost)
            self._queue_max, self._pause_s = QUEUE_MAX, PAUSE_S[0]
            return
        self._lose_queue()
        self._queue_max = PROBE_MAX
        self._paused_until_s = self._loop.time() + self._pause_s
        _log.warning(
            "spans could not be exported, %d were lost so far; the next try is in %.0f s",
            self.lost,
            self._pause_s,
        )
        self._pause_s = min(2 * self._pause_s, PAUSE_S[1])

    def _lose_queue(self) -> None:
        self.lost += len(self._queue)
        self._queue.clear()

    def _sent(self, batch: list[_Handed]) -> bool:
        """Export a batch and say whether the endpoint took it. Runs in a thread."""
        spans = [_readable(handed, self._resource) for handed in batch]
        return self._exporter.export(spans) is SpanExportResult.SUCCESS


def _readable(handed: _Handed, resource: Resource) -> ReadableSpan:
    """The same in the SDK's form."""
    trace_id, parent, error = handed.trace_id, handed.parent, handed.error
    return ReadableSpan(
        name=handed.name,
        context=_context(trace_id, span_id(trace_id, handed.name, handed.key)),
        parent=_context(trace_id, parent) if parent else None,
        resource=resource,
        attributes=handed.attributes,
        links=[link for text in handed.links if (link := _link(text)) is not None],
        events=[
            SdkEvent(event.name, dict(event.attributes), event.at_ms * _NS)
            for event in handed.events
        ],
        kind=SpanKind.INTERNAL,
        status=Status(StatusCode.ERROR, error) if error else _OK,
        start_time=handed.start_ms * _NS,
        end_time=max(handed.start_ms, handed.end_ms) * _NS,
        instrumentation_scope=_SCOPE,
    )


def _context(trace_id: str, own: str) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(own, 16), is_remote=False, trace_flags=_SAMPLED)


def _link(traceparent: str) -> Link | None:
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None:
        return None
    context = _context(found[1], found[2])
    return Link(context) if context.is_valid else None
