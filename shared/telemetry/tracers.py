"""Makes the tracer that a service's settings ask for."""

from collections.abc import Sequence

from shared.telemetry.tracing import Attributes, Event, Tracer


class _NoTracer:
    """No endpoint: no cost."""

    enabled = False
    lost = 0

    def keeps(self, trace_id: str) -> bool:
        """None."""
        del trace_id
        return False

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
        """Drop it."""

    async def close(self, timeout_s: float) -> None:
        """Nothing waits."""


def tracer_for(endpoint: str, *, service: str, instance: str, ratio: float = 1.0) -> Tracer:
    """A tracer that exports the share `ratio` of all traces to `endpoint` (OTLP/HTTP,
    `http://host:4318`), or none when it is "" or the share is nothing.

    Must be called with a running event loop, in which it exports.
    """
    if not endpoint or not ratio:
        return _NoTracer()
    # Here, not above: only services that trace pay for it.
    from shared.telemetry.otlp import OtlpTracer

    return OtlpTracer(endpoint, service=service, instance=instance, ratio=ratio)
