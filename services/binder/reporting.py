"""A binder's metrics, and per decision its spans and a log line."""

import logging
from typing import get_args

from shared.contracts.decisions import Act, EvictionDecision, GangDecision
from shared.contracts.outcomes import MemberResult, Outcome, refusal_without_words
from shared.telemetry.metrics import Metrics
from shared.telemetry.tracing import Attributes, Tracer, gang_span

logger = logging.getLogger("services.binder")

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Reporting:
    """Metrics, spans and logs; no decision depends on them."""

    def __init__(self, metrics: Metrics, tracer: Tracer) -> None:
        self._tracer = tracer
        self._pods_bound = metrics.counter("pods_bound_total", "Pods bound by this binder.")
        self._decisions = metrics.counters(
            "decisions_total",
            "Decisions finished, by the outcome's reason.",
            "reason",
            ("Done", "PreflightFailed", "PreparationFailed", "BinderGaveUp", "StaleEpoch"),
        )
        self._members = metrics.counters(
            "members_unbound_total",
            "Members that were not bound, by result.",
            "result",
            [result for result in get_args(MemberResult) if result != "bound"],
        )
        self._pods_removed = metrics.counter(
            "pods_removed_total", "Pods of released gangs that are deleted, or were gone already."
        )
        self._victims = metrics.counters(
            "victims_left_total",
            "Pods that were to be removed and may still be there, by result.",
            "result",
            ("refused", "conflict", "unknown"),
        )
        self.abandoned = metrics.counter(
            "abandoned_total", "Deliveries that were not ours any more before they were finished."
        )
        self.outcomes_refused = metrics.counter(
            "outcomes_refused_total",
            "Outcomes that NATS refused to store, because its storage is full, say.",
        )
        self.in_progress = metrics.gauge("decisions_in_progress", "Decisions being carried out.")
        self.requests_max = metrics.gauge(
            "requests_max",
            "Limit of requests to the API server in flight: lower while it sheds load.",
        )
        self._seconds = metrics.histogram(
            "decision_seconds", "From taking a decision to its outcome.", _SECONDS
        )

    def refused(self, outcome: Outcome, decision: Act | None, end_ms: int) -> None:
        """Count, trace and log a decision that is not carried out; None: it cannot be decoded."""
        self._decisions(outcome.reason).inc()
        if decision is not None:
            name = "bind" if isinstance(decision, GangDecision) else "remove"
            self._span(name, decision, outcome, end_ms, {}, outcome.reason)
        logger.warning(
            "gang %s: decision %d is not carried out: %s",
            # Of a decision that cannot be decoded, only the id in its subject is known.
            decision.gang if decision is not None else f"with id {outcome.gang_id}",
            outcome.decision_seq,
            outcome.reason,
            extra=_facts(decision, outcome),
        )

    def finished(self, decision: Act, outcome: Outcome, end_ms: int) -> None:
        """Count, trace and log a decision that was carried out."""
        self._decisions(outcome.reason or "Done").inc()
        self._seconds.observe(max(0, end_ms - outcome.received_ms) / 1000)
        if isinstance(decision, GangDecision):
            self._bound(decision, outcome, end_ms)
        else:
            self._removed(decision, outcome, end_ms)
        for note in outcome.notes:
            logger.warning("gang %s: %s", decision.gang, note, extra=_facts(decision, outcome))

    def _bound(self, decision: GangDecision, outcome: Outcome, end_ms: int) -> None:
        self._pods_bound.inc(outcome.bound)
        for member in outcome.members:
            self._members(member.result).inc()
        if self._tracer.keeps(decision.trace_id):
            self._trace(decision, outcome, end_ms)
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
            extra=_facts(decision, outcome),
        )

    def _removed(self, decision: EvictionDecision, outcome: Outcome, end_ms: int) -> None:
        self._pods_removed.inc(outcome.evicted)
        for member in outcome.members:
            self._victims(member.result).inc()
        error = outcome.reason
        failures = f"{len(outcome.members)} not removed: "
        if not error and outcome.members:
            error = failures + _first_failure(outcome)
        more: Attributes = {"reason": decision.reason, "victims": len(decision.victims)}
        shown = error
        if error and not outcome.reason and decision.via == "eviction":
            # The span is in the trace of the preemptor, whose users may not read its victims.
            shown = failures + refusal_without_words(outcome.members[0])
        self._span("remove", decision, outcome, end_ms, more, shown)
        # A release deletes a user's pods, and is rare: it is a warning even when it succeeds.
        logger.warning(
            "gang %s: decision %d: %d of %d pods removed, %s%s",
            decision.gang,
            outcome.decision_seq,
            outcome.evicted,
            len(decision.victims),
            decision.reason,
            f"; {error}" if error else "",
            extra=_facts(decision, outcome),
        )

    def _trace(self, decision: GangDecision, outcome: Outcome, end_ms: int) -> None:
        """Export the pre-flight and the binding, each if it took place."""
        more: Attributes = {"bindings": len(decision.bindings)}
        disproved = outcome.reason == "PreflightFailed"
        if outcome.preflight_ms:
            error = f"{outcome.reason}: {_first_failure(outcome)}" if disproved else ""
            self._span("preflight", decision, outcome, outcome.preflight_ms, more, error)
        if disproved:
            return
        error = outcome.reason
        if not error and outcome.members:
            error = f"{len(outcome.members)} not bound: {_first_failure(outcome)}"
        self._span(
            "bind",
            decision,
            outcome,
            end_ms if error else outcome.last_bound_ms,
            {**more, "bound": outcome.bound},
            error,
            start_ms=outcome.preflight_ms,
        )

    def _span(
        self,
        name: str,
        decision: Act,
        outcome: Outcome,
        end_ms: int,
        more: Attributes,
        error: str,
        start_ms: int = 0,
    ) -> None:
        """Export one span of a decision; `start_ms` 0: it began when the decision was received."""
        self._tracer.span(
            name,
            trace_id=decision.trace_id,
            start_ms=start_ms or outcome.received_ms,
            end_ms=end_ms,
            key=str(outcome.decision_seq),
            parent=gang_span(decision.trace_id),
            attributes={
                "gang": decision.gang,
                "decision.seq": outcome.decision_seq,
                "decision.attempt": decision.attempt,
                "delivered": outcome.delivered,
                **more,
            },
            error=error,
        )


def _facts(decision: Act | None, outcome: Outcome) -> dict[str, str | int]:
    """The fields of a log line; None: the decision cannot be decoded."""
    facts: dict[str, str | int] = {"gang_id": outcome.gang_id, "decision": outcome.decision_seq}
    if decision is not None:
        facts["gang"] = decision.gang
        facts["attempt"] = decision.attempt
        facts["trace_id"] = decision.trace_id
    return facts


def _first_failure(outcome: Outcome) -> str:
    """The API server's words about the first member that was not skipped."""
    for member in outcome.members:
        if member.result != "skipped":
            return f"{member.result} {member.code} {member.reason} {member.message}".rstrip()
    return "no request was sent"
