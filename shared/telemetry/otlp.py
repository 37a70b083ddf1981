"""Exports spans over OTLP/HTTP; imported only when there is an endpoint.

OpenTelemetry's BatchSpanProcessor is not used: it drops spans without saying how many, and its
flush blocks the event loop. Here one task collects what was handed in and sends it from a thread,
where it is also encoded: who hands in pays a microsecond.

An endpoint that does not answer costs nothing but its spans. After a failed export none is even
kept for a while (counted as lost), then a few are tried again.
"""

import asyncio
import collections
import contextlib
import logging
import os
from collections.abc import Sequence
from typing import Final

from shared.telemetry.otlp_post import ExportFailed, Poster
from shared.telemetry.otlp_wire import Handed, request
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
#: After a failed export nothing is kept for the first time, doubled each time up to the second.
PAUSE_S: Final = (1.0, 30.0)

_log = logging.getLogger(__name__)


class OtlpTracer:
    """Sends spans to one endpoint. Losses are counted, never raised."""

    enabled = True

    def __init__(self, endpoint: str, *, service: str, instance: str, ratio: float = 1.0) -> None:
        self._poster = Poster(endpoint, os.environ)
        self._resource = {"service.name": f"tutti-{service}", "service.instance.id": instance}
        self._ratio = ratio
        self._loop = asyncio.get_running_loop()
        self._queue: collections.deque[Handed] = collections.deque()
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
            Handed(
                name,
                trace_id,
                start_ms,
                end_ms,
                key,
                parent,
                attributes,
                tuple(links),
                tuple(events),
                error,
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
            self._poster.stop()
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._lose_queue()
        self._poster.close()

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

    async def _send(self, batch: list[Handed]) -> None:
        problem = "the process ends"
        try:
            problem = await asyncio.to_thread(self._post, batch)
        finally:
            if problem:
                self.lost += len(batch)
        if not problem:
            if self._queue_max < QUEUE_MAX:
                _log.info("spans are exported again; %d were lost so far", self.lost)
            self._queue_max, self._pause_s = QUEUE_MAX, PAUSE_S[0]
            return
        self._lose_queue()
        self._queue_max = PROBE_MAX
        self._paused_until_s = self._loop.time() + self._pause_s
        _log.warning(
            "spans could not be exported: %s; %d were lost so far; the next try is in %.0f s",
            problem,
            self.lost,
            self._pause_s,
        )
        self._pause_s = min(2 * self._pause_s, PAUSE_S[1])

    def _lose_queue(self) -> None:
        self.lost += len(self._queue)
        self._queue.clear()

    def _post(self, batch: list[Handed]) -> str:
        """Export a batch; what was wrong, or "". Runs in a thread."""
        try:
            self._poster.post(request(batch, self._resource))
        except ExportFailed as failed:
            return str(failed)
        return ""
