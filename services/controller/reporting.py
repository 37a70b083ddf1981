"""Metrics of the status controller, and for each written verdict a span and a log line."""

import logging
from typing import Final, get_args

from services.controller.core.statuses.intents import Intent
from shared.contracts.verdicts import Verdict
from shared.telemetry.metrics import Metrics
from shared.telemetry.tracing import Tracer, gang_span

logger = logging.getLogger("services.controller")

#: A verdict that is later than this after the gang's start does not belong to the start.
_STARTING_MS: Final = 60_000
_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class Reporting:
    """Metrics, spans and log lines; no controller depends on them."""

    def __init__(self, metrics: Metrics, tracer: Tracer) -> None:
        self._tracer = tracer
        self.wrote = metrics.counters(
            "writes_total",
            "Writes, by what was written.",
            "kind",
            ("group", "condition", "event", "pod event"),
        )
        self.refused = metrics.counters(
            "refused_total",
            "Writes that the API server refused permanently, by what.",
            "kind",
            [intent.__name__ for intent in get_args(Intent)],
        )
        self.retries = metrics.counter("retries_total", "Writes that have to be tried again.")
        self.dropped = metrics.counter(
            "pod_events_dropped_total", "Scheduled events of pods beyond the rate."
        )
        self.waiting = metrics.gauge("gangs_waiting", "Gangs with something left to write.")
        self._seconds = metrics.histogram(
            "report_seconds", "From a verdict to the last write that it asks for.", _SECONDS
        )

    def settled(self, verdict: Verdict, seq: int, end_ms: int) -> None:
        """Report a verdict after its last write, from its publication until `end_ms`."""
        took_ms = max(0, end_ms - verdict.at_ms)
        self._seconds.observe(took_ms / 1000)
        logger.info(
            "gang %s/%s: %s is written, %d ms after it was published",
            verdict.namespace,
            verdict.name,
            verdict.phase,
            took_ms,
            extra={
                "gang": f"{verdict.namespace}/{verdict.name}",
                "gang_id": verdict.gang_id,
                "trace_id": verdict.trace_id,
            },
        )
        if (
            verdict.trace_id
            and self._tracer.keeps(verdict.trace_id)
            and _belongs_to_attempt(verdict)
        ):
            self._tracer.span(
                "report",
                trace_id=verdict.trace_id,
                start_ms=verdict.at_ms,
                end_ms=end_ms,
                key=str(seq),
                parent=gang_span(verdict.trace_id),
                attributes={
                    "gang": f"{verdict.namespace}/{verdict.name}",
                    "phase": verdict.phase,
                    "decision.attempt": verdict.attempt,
                    "reason": verdict.why.reason if verdict.why is not None else "",
                },
            )


def _belongs_to_attempt(verdict: Verdict) -> bool:
    """Whether the verdict belongs to the gang's start, which is the subject of its trace. A gang
    without a decision of Tutti has no trace.
    """
    if verdict.phase in {"Pending", "Inqueue", "Starting"}:
        return True
    if verdict.attempt == 0:
        return verdict.phase == "Gone"
    scheduled = (condition for condition in verdict.conditions if condition.type == "Scheduled")
    began_ms = next(
        (condition.since_ms for condition in scheduled if condition.status == "True"), 0
    )
    return verdict.at_ms - began_ms <= _STARTING_MS
