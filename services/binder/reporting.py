"""What a binder shows of itself: metrics, one span per decision, one line of log per decision."""

import logging

from shared.contracts.decisions import GangDecision
from shared.contracts.outcomes import Outcome
from shared.telemetry.metrics import Metrics
from shared.telemetry.tracing import Tracer

logger = logging.getLogger("services.binder")

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Reporting:
    """Counts and tells; nothing depends on it."""

    def __init__(self, metrics: Metrics, tracer: Tracer) -> None:
        """Register the metrics, once per process."""
        self._tracer = tracer
        self._pods_bound = metrics.counter("pods_bound_total", "Pods bound by this binder.")
        self._decisions = metrics.counters(
            "decisions_total", "Decisions finished, by the outcome's reason.", "reason"
        )
        self._members = metrics.counters(
            "members_unbound_total", "Members that were not bound, by result.", "result"
        )
        self._abandoned = metrics.counter(
            "abandoned_total", "Deliveries that were not ours any more before they were finished."
        )
        self._in_progress = metrics.gauge("decisions_in_progress", "Decisions being carried out.")
        self._seconds = metrics.histogram(
            "decision_seconds", "From taking a decision to its outcome.", _SECONDS
        )

    def in_progress(self, decisions: int) -> None:
        """Show how many decisions are being carried out."""
        self._in_progress.set(decisions)

    def abandoned(self) -> None:
        """Count a delivery that was lost to the ack wait."""
        self._abandoned.inc()

    def refused(self, outcome: Outcome) -> None:
        """Count and tell a decision that is not carried out."""
        self._decisions(outcome.reason).inc()
        logger.warning(
            "gang %s: decision %d is not carried out: %s",
            outcome.gang_id,
            outcome.decision_seq,
            outcome.reason,
        )

    def finished(self, decision: GangDecision, outcome: Outcome, end_ms: int) -> None:
        """Count, trace and tell a decision that was carried out."""
        self._pods_bound.inc(outcome.bound)
        self._decisions(outcome.reason or "Done").inc()
        for member in outcome.members:
            self._members(member.result).inc()
        self._seconds.observe(max(0, end_ms - outcome.received_ms) / 1000)
        self._tracer.span(
            "bind",
            trace_id=decision.trace_id,
            start_ms=outcome.received_ms,
            end_ms=end_ms,
            key=str(outcome.decision_seq),
            attributes={
                "gang": decision.gang,
                "decision.seq": outcome.decision_seq,
                "decision.attempt": decision.attempt,
                "delivered": outcome.delivered,
                "bindings": len(decision.bindings),
                "bound": outcome.bound,
            },
            error=outcome.reason,
        )
        level = logging.INFO if not outcome.reason and not outcome.members else logging.WARNING
        logger.log(
            level,
            "gang %s: decision %d: %d of %d bound in %d ms%s",
            decision.gang,
            outcome.decision_seq,
            outcome.bound,
            len(decision.bindings),
            end_ms - outcome.received_ms,
            f", {outcome.reason}" if outcome.reason else "",
            extra={"trace_id": decision.trace_id},
        )
        for note in outcome.notes:
            logger.warning("gang %s: %s", decision.gang, note)
