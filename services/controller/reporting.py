"""What the controllers show of themselves."""

from shared.contracts.verdicts import Verdict
from shared.telemetry.metrics import Metrics
from shared.telemetry.tracing import Tracer


class Reporting:
    """Counts; nothing depends on it."""

    def __init__(self, metrics: Metrics, tracer: Tracer) -> None:
        """Register the metrics, once per process."""
        self._tracer = tracer
        self._written = metrics.counters("writes_total", "Writes, by what was written.", "kind")
        self._refused = metrics.counters(
            "refused_total", "Writes that the API server refused for good, by what.", "kind"
        )
        self._retried = metrics.counter("retries_total", "Writes that have to be tried again.")
        self._dropped = metrics.counter(
            "pod_events_dropped_total", "Scheduled events of pods beyond the rate."
        )
        self._waiting = metrics.gauge("gangs_waiting", "Gangs with something left to write.")

    def wrote(self, kind: str) -> None:
        """Count a write."""
        self._written(kind).inc()

    def refused(self, kind: str) -> None:
        """Count a definite refusal."""
        self._refused(kind).inc()

    def retried(self) -> None:
        """Count a write that is tried again."""
        self._retried.inc()

    def dropped(self, events: int) -> None:
        """Count events that the rate did not allow."""
        self._dropped.inc(events)

    def waiting(self, gangs: int) -> None:
        """Show the backlog."""
        self._waiting.set(gangs)

    def settled(self, verdict: Verdict, seq: int, end_ms: int) -> None:
        """Trace a verdict from its making until all of it was written."""
        if verdict.trace_id:
            self._tracer.span(
                "report",
                trace_id=verdict.trace_id,
                start_ms=verdict.at_ms,
                end_ms=end_ms,
                key=str(seq),
                attributes={"gang": f"{verdict.namespace}/{verdict.name}", "phase": verdict.phase},
            )
