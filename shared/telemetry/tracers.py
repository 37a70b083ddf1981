"""Makes the tracer that a service's settings configure: with an exporter, or without."""

from shared.telemetry.tracing import Tracer


class _NoTracer:
    """Drops all spans, without cost."""

    enabled = False
    lost = 0

    def keeps(self, trace_id: str) -> bool:
        del trace_id
        return False

    def span(self, name: str, **fields: object) -> None:
        """Drop the span."""

    async def close(self, timeout_s: float) -> None:
        """Return at once."""


def tracer_for(endpoint: str, *, service: str, instance: str, ratio: float = 1.0) -> Tracer:
    """The tracer that a service's settings configure; call it in the event loop that exports.

    `endpoint` takes OTLP/HTTP, `http://host:4318`; "": none. Service and instance are part of each
    span's resource. `ratio` is the share of all traces that is exported, 0 to 1.
    """
    if not endpoint or not ratio:
        return _NoTracer()
    # Not at the top: only services that export traces load the exporter.
    from shared.telemetry.otlp import OtlpTracer

    return OtlpTracer(endpoint, service=service, instance=instance, ratio=ratio)
