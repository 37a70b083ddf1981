"""Makes the tracer that a service's settings configure: with an exporter, or without."""

from shared.telemetry.tracing import Tracer


class _NoTracer:
    """Drops all spans, without cost."""

    enabled = False
    lost = 0

    def keeps(self, trace_id: str) -> bool:
        """Whether spans of the trace are exported: never."""
        del trace_id
        return False

    def span(self, name: str, **fields: object) -> None:
        """Drop the span."""

    async def close(self, timeout_s: float) -> None:
        """Return at once: no spans wait."""


def tracer_for(endpoint: str, *, service: str, instance: str, ratio: float = 1.0) -> Tracer:
    """The tracer that a service's settings configure; call it in the event loop that exports.

    Args:
        endpoint: Where to export by OTLP/HTTP, `http://host:4318`; "": nowhere.
        service: The service's name, part of each span's resource.
        instance: Which of the service's instances this is.
        ratio: Share of all traces that is exported, 0 to 1.
    """
    if not endpoint or not ratio:
        return _NoTracer()
    # Not at the top: only services that export traces load the exporter.
    from shared.telemetry.otlp import OtlpTracer

    return OtlpTracer(endpoint, service=service, instance=instance, ratio=ratio)
