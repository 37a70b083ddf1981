"""Metrics of whole gangs: how long they take to start, why they wait, and how long they are bound
in part.

It keeps one small entry per gang in flight or waiting.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from shared.contracts.decisions import GangDecision
from shared.contracts.outcomes import Outcome
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.verdicts import Verdict
from shared.telemetry.metrics import Metrics

_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 600.0, 3600.0)
_PHASES: Final = ("queued", "bound", "total")
#: Queues with series of their own, the first ones that gangs started from; the rest share one.
_QUEUES_MAX: Final = 50
_OTHER_QUEUES: Final = "(others)"
#: At most one exemplar per phase in this time.
_EXEMPLAR_MS: Final = 1_000
#: The usual reasons for waiting, whose series exist from the start.
_REASONS: Final = tuple(
    reason.value
    for reason in (
        PendingReason.NOT_ENOUGH_RESOURCES,
        PendingReason.NOT_ENOUGH_QUOTA,
        PendingReason.NOT_ENOUGH_PODS,
        PendingReason.NOT_ADMITTED,
    )
)


class _Decided(NamedTuple):
    """A decision that gives a gang its quorum."""

    decided_ms: int
    #: None: it is not the gang's first decision.
    first_seen_ms: int | None
    trace_id: str


class GangStarts:
    """The metrics of one planner."""

    def __init__(self, metrics: Metrics, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._latency_s = metrics.histograms(
            "gang_latency_seconds",
            "Of whole gangs, by phase: queued (first seen to first decision), bound (a decision to "
            "its last binding), total (first seen to the last binding of the first decision).",
            _SECONDS,
            "phase",
            _PHASES,
        )
        self._waited_s = metrics.histograms(
            "gang_waiting_seconds",
            "From a gang first seen until it was whole, by queue: the first 50, and (others).",
            _SECONDS,
            "queue",
        )
        self._queues: set[str] = set()
        #: How long gangs waited that have just become whole, by gang id. Their next verdict has
        #: the queue.
        self._waited_ms: dict[str, int] = {}
        #: When the last observation with an exemplar was made, by phase.
        self._exemplars_ms: dict[str, int] = {}
        #: Decisions without an outcome yet, by gang id.
        self._decided: dict[str, _Decided] = {}
        self._waiting = metrics.gauges(
            "gangs_waiting",
            "Waiting gangs by the reason that is published for them.",
            "reason",
            _REASONS,
        )
        #: The reason published last, by gang id.
        self._reasons: dict[str, str] = {}
        #: Gangs bound in part now, since when, and the sum of earlier such times.
        self._partial = 0
        self._partial_since_ms = now_ms()
        self._partial_ms = 0
        metrics.totals(
            "partial_gang_seconds_total",
            "Time that gangs were bound in part while repaired or released, summed: reads 0.",
            (),
            lambda: {(): self._partial_until(self._now_ms()) / 1000},
        )

    def decided(self, decision: GangDecision) -> None:
        """Observe a decision that is in the log."""
        # Members beyond the quorum of a running gang do not count: it has started.
        if not decision.quorum or decision.again:
            return
        decided = _Decided(
            decided_ms=decision.cycle.now_ms,
            first_seen_ms=(decision.first_seen_ms or None) if decision.attempt == 1 else None,
            trace_id=decision.trace_id,
        )
        self._decided[decision.gang_id] = decided
        if decided.first_seen_ms:
            self._took("queued", decided.decided_ms - decided.first_seen_ms, decided.trace_id)

    def outcome_applied(self, outcome: Outcome, *, whole: bool) -> None:
        """Observe the outcome of a decision; `whole`: every member is bound."""
        decided = self._decided.pop(outcome.gang_id, None)
        if decided is None or not whole or not outcome.last_bound_ms:
            return
        self._took("bound", outcome.last_bound_ms - decided.decided_ms, decided.trace_id)
        if decided.first_seen_ms:
            waited_ms = outcome.last_bound_ms - decided.first_seen_ms
            self._took("total", waited_ms, decided.trace_id)
            self._waited_ms[outcome.gang_id] = waited_ms

    def verdict_published(self, verdict: Verdict) -> None:
        waited_ms = self._waited_ms.pop(verdict.gang_id, None)
        if waited_ms is not None:
            self._waited_s(self._queue_label(verdict.queue)).observe(max(0, waited_ms) / 1000)
        before = self._reasons.pop(verdict.gang_id, "")
        if before:
            self._waiting(before).dec()
        if verdict.why is not None and verdict.phase != "Gone":
            self._reasons[verdict.gang_id] = verdict.why.reason
            self._waiting(verdict.why.reason).inc()

    def observe(self, partial: int) -> None:
        """Set how many gangs are bound in part from now on."""
        now_ms = self._now_ms()
        self._partial_ms = self._partial_until(now_ms)
        self._partial_since_ms = now_ms
        self._partial = partial

    def _took(self, phase: str, took_ms: int, trace_id: str) -> None:
        now_ms = self._now_ms()
        exemplar = None
        # An exemplar costs twice as much as the observation.
        if trace_id and now_ms - self._exemplars_ms.get(phase, 0) >= _EXEMPLAR_MS:
            self._exemplars_ms[phase] = now_ms
            exemplar = {"trace_id": trace_id}
        self._latency_s(phase).observe(max(0, took_ms) / 1000, exemplar)

    def _queue_label(self, queue: str) -> str:
        if len(self._queues) < _QUEUES_MAX:
            self._queues.add(queue)
        return queue if queue in self._queues else _OTHER_QUEUES

    def _partial_until(self, now_ms: int) -> int:
        return self._partial_ms + self._partial * max(0, now_ms - self._partial_since_ms)
