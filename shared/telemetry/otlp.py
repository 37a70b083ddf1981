"""Exports spans over OTLP/HTTP from a queue of our own; imported only when there is an endpoint.

The SDK's BatchSpanProcessor does not count the spans that it drops, and its flush blocks the event
loop. Here one task collects spans; a thread converts them to the SDK's form and sends them, so a
span costs its caller a microsecond. That thread also imports the SDK, with the first batch, so that
no start waits for the import.

Without an answer from the endpoint, spans are lost and nothing else happens. After a failed export
all spans are dropped for a while (and counted as lost), then a few are tried.
"""

import asyncio
import collections
import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final

from shared.telemetry.tracing import EndedSpan, sampled

if TYPE_CHECKING:
    from shared.telemetry.otlp_export import Exporter

#: A burst of gangs makes tens of thousands of spans within a second (measured: with 2,048, the
#: SDK's default, a third of 20,000 was lost).
QUEUE_MAX: Final = 65536
#: Spans that are kept after a failed export, until an export succeeds again.
PROBE_MAX: Final = 1024
#: Encoding a batch competes with the event loop for the interpreter: 20 ms for so many spans.
BATCH_MAX: Final = 512
#: Delay in which further spans join a batch. A batch costs a millisecond of CPU, each of its spans
#: 40 us: with 0.2 s, the batches of seven services would cost more than their spans.
DELAY_S: Final = 1.0
#: Seconds without spans after a failed export: at first, and after doublings at most.
PAUSE_S: Final = (1.0, 30.0)

_log = logging.getLogger(__name__)


class OtlpTracer:
    """Sends spans to one endpoint. Losses are counted, never raised."""

    enabled = True

    def __init__(self, endpoint: str, *, service: str, instance: str, ratio: float = 1.0) -> None:
        self._endpoint = endpoint
        self._service = service
        self._instance = instance
        self._exporter: Exporter | None = None
        self._ratio = ratio
        self._loop = asyncio.get_running_loop()
        self._queue: collections.deque[EndedSpan] = collections.deque()
        self._queue_max = QUEUE_MAX
        #: The loop's time until which spans are dropped.
        self._paused_until_s = 0.0
        self._pause_s = PAUSE_S[0]
        self._news = asyncio.Event()
        #: Set when a batch is full, or the tracer is closing.
        self._due = asyncio.Event()
        self._closing = False
        self._closed = False
        self.lost = 0
        self._task = self._loop.create_task(self._export(), name="export spans")

    def keeps(self, trace_id: str) -> bool:
        """See `shared.telemetry.tracing.Tracer`."""
        return self._ratio >= 1.0 or sampled(trace_id, self._ratio)

    def span(self, name: str, *, trace_id: str, **fields: Any) -> None:
        """See `shared.telemetry.tracing.Tracer`; the fields are those of `EndedSpan`."""
        if not self.keeps(trace_id):
            return
        if len(self._queue) >= self._queue_max or self._paused_until_s > self._loop.time():
            self.lost += 1
            return
        self._queue.append(EndedSpan(name, trace_id, **fields))
        self._news.set()
        if len(self._queue) >= BATCH_MAX:
            self._due.set()

    async def close(self, timeout_s: float) -> None:
        """Send the queued spans, as many as possible within `timeout_s`, and stop."""
        self._closing = True
        self._news.set()
        self._due.set()
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.shield(self._task)
        except TimeoutError:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._lose_queue()
        self._closed = True
        if self._exporter is not None:
            self._exporter.close()

    async def _export(self) -> None:
        while not self._closing or self._queue:
            if not self._queue:
                self._news.clear()
                await self._news.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DELAY_S):
                    await self._due.wait()
            if not self._closing:
                self._due.clear()
            while self._queue:
                count = min(len(self._queue), BATCH_MAX)
                batch = [self._queue.popleft() for _ in range(count)]
                await self._send(batch)

    async def _send(self, batch: list[EndedSpan]) -> None:
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

    def _sent(self, batch: list[EndedSpan]) -> bool:
        """Export a batch in a thread, one at a time; returns whether the endpoint accepted it."""
        try:
            if self._exporter is None:
                from shared.telemetry.otlp_export import Exporter

                self._exporter = Exporter(
                    self._endpoint, service=self._service, instance=self._instance
                )
            return not self._closed and self._exporter.export(batch)
        except (OSError, ValueError):
            # The exporter reads the variables OTEL_EXPORTER_OTLP_… here; they may be invalid.
            _log.exception("the exporter of spans cannot be used")
            return False
