"""How whole gangs get on, in figures: how long they take to start, why they wait, and how long any
of them is bound in part.

For Prometheus only; what is kept here is one small entry per gang in flight or waiting.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from shared.contracts.decisions import GangDecision
from shared.contracts.outcomes import Outcome
from shared.contracts.verdicts import Verdict
from shared.telemetry.metrics import Metrics

_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 600.0, 3600.0)
_PHASES: Final = ("queued", "bound", "total")
#: Queues with series of their own, the first that gangs started from; all others share one.
_QUEUES_MAX: Final = 50
_OTHER_QUEUES: Final = "(others)"
#: One exemplar of each phase in so long.
_EXEMPLAR_MS: Final = 1_000
#: Why gangs wait on an ordinary day.
_REASONS: Final = ("NotEnoughResources", "NotEnoughQuota", "NotEnoughPods", "NotAdmitted")


class _Begun(NamedTuple):
    """A decision that gives a gang its quorum."""

    decided_ms: int
    #: 0: it is not the gang's first.
    first_seen_ms: int
    trace_id: str


class GangStarts:
    """The figures of one planner."""

    def __init__(self, metrics: Metrics, now_ms: Callable[[], int]) -> None:
        """Register the metrics, once per process."""
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
        #: Of gangs that have just become whole: how long they waited, by gang id. Their next
        #: verdict says in which queue.
        self._waited_ms: dict[str, int] = {}
        #: When the last observation with an exemplar was made, by phase.
        self._exemplars_ms: dict[str, int] = {}
        #: Decisions without an outcome yet, by gang id.
        self._begun: dict[str, _Begun] = {}
        self._waiting = metrics.gauges(
            "gangs_waiting",
            "Waiting gangs by the reason that is published for them.",
            "reason",
            _REASONS,
        )
        #: The reason that was said last, by gang id.
        self._reasons: dict[str, str] = {}
        #: Gangs bound in part now, since when, and the time that such gangs spent before.
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
        """A decision is in the log."""
        # What a running gang gets beyond its quorum says nothing of how gangs start.
        if not decision.quorum or decision.again:
            return
        begun = _Begun(
            decided_ms=decision.cycle.now_ms,
            first_seen_ms=decision.first_seen_ms if decision.attempt == 1 else 0,
            trace_id=decision.trace_id,
        )
        self._begun[decision.gang_id] = begun
        if begun.first_seen_ms:
            self._took("queued", begun.decided_ms - begun.first_seen_ms, begun.trace_id)

    def settled(self, outcome: Outcome, *, whole: bool) -> None:
        """A binder says what became of a decision; `whole`: it bound every member."""
        begun = self._begun.pop(outcome.gang_id, None)
        if begun is None or not whole or not outcome.last_bound_ms:
            return
        self._took("bound", outcome.last_bound_ms - begun.decided_ms, begun.trace_id)
        if begun.first_seen_ms:
            waited_ms = outcome.last_bound_ms - begun.first_seen_ms
            self._took("total", waited_ms, begun.trace_id)
            self._waited_ms[outcome.gang_id] = waited_ms

    def said(self, verdict: Verdict) -> None:
        """A verdict holds of a gang from now on."""
        waited_ms = self._waited_ms.pop(verdict.gang_id, None)
        if waited_ms is not None:
            self._waited_s(self._told_queue(verdict.queue)).observe(max(0, waited_ms) / 1000)
        before = self._reasons.pop(verdict.gang_id, "")
        if before:
            self._waiting(before).dec()
        if verdict.why is not None and verdict.phase != "Gone":
            self._reasons[verdict.gang_id] = verdict.why.reason
            self._waiting(verdict.why.reason).inc()

    def observe(self, partial: int) -> None:
        """So many gangs are bound in part from now on."""
        now_ms = self._now_ms()
        self._partial_ms = self._partial_until(now_ms)
        self._partial_since_ms = now_ms
        self._partial = partial

    def _took(self, phase: str, took_ms: int, trace_id: str) -> None:
        now_ms = self._now_ms()
        exemplar = None
        # It costs twice as much as the observation, and a thousand a second need no more.
        if trace_id and now_ms - self._exemplars_ms.get(phase, 0) >= _EXEMPLAR_MS:
            self._exemplars_ms[phase] = now_ms
            exemplar = {"trace_id": trace_id}
        self._latency_s(phase).observe(max(0, took_ms) / 1000, exemplar)

    def _told_queue(self, queue: str) -> str:
        if len(self._queues) < _QUEUES_MAX:
            self._queues.add(queue)
        return queue if queue in self._queues else _OTHER_QUEUES

    def _partial_until(self, now_ms: int) -> int:
        return self._partial_ms + self._partial * max(0, now_ms - self._partial_since_ms)
