"""An OTLP/HTTP endpoint in the test's own process: decodes what arrives and keeps it.

It stands in for Jaeger where the assertion is about what is sent, and it can refuse or hang.
"""

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class OtlpSink:
    """Spans by arrival, with the service that sent each."""

    def __init__(self) -> None:
        self.requests = 0
        self._bodies: list[bytes] = []
        self._spans: list[tuple[str, Span]] = []
        self.status = 200
        self.gate = asyncio.Event()
        self.gate.set()
        self.endpoint = ""

    @property
    def spans(self) -> list[tuple[str, Span]]:
        """All that arrived; decoded when asked for, so that receiving costs next to nothing."""
        while self._bodies:
            self._decode(self._bodies.pop(0))
        return self._spans

    def named(self, name: str) -> list[Span]:
        """All spans of this name."""
        return [span for _, span in self.spans if span.name == name]

    async def receive(self, request: web.Request) -> web.Response:
        """Take one export request."""
        await self.gate.wait()
        if self.status == 200:
            self.requests += 1
            self._bodies.append(await request.read())
        return web.Response(status=self.status)

    def _decode(self, body: bytes) -> None:
        # aiohttp has undone the content encoding, unless a client sent gzip without saying so.
        content = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
        message = ExportTraceServiceRequest.FromString(content)
        for resource in message.resource_spans:
            service = next(
                attribute.value.string_value
                for attribute in resource.resource.attributes
                if attribute.key == "service.name"
            )
            for scope in resource.scope_spans:
                self._spans.extend((service, span) for span in scope.spans)


def attributes_of(described: Span | Span.Event) -> dict[str, Any]:
    """Attributes of a span or of its event as plain values."""
    values: dict[str, Any] = {}
    for attribute in described.attributes:
        kind = attribute.value.WhichOneof("value")
        assert kind is not None, attribute
        values[attribute.key] = getattr(attribute.value, kind)
    return values


@asynccontextmanager
async def otlp_sink() -> AsyncIterator[OtlpSink]:
    """Serve a sink on a free port of 127.0.0.1 for the length of the block."""
    sink = OtlpSink()
    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/traces", sink.receive)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    sink.endpoint = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield sink
    finally:
        sink.gate.set()
        await runner.cleanup()
