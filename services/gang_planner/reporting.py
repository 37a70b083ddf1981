"""What a planner shows of itself: metrics, and a line of log per decision and start."""

import logging
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from services.gang_planner.inbox import Arrival, ClusterArrival, DecisionArrival, OutcomeArrival
from services.gang_planner.volcano_metrics import SchedulerMetrics
from shared.contracts.cluster import Synced
from shared.contracts.decisions import (
    Act,
    EvictionDecision,
    GangDecision,
    GangStarted,
    Note,
    NoteClosed,
    NoteOpened,
)
from shared.contracts.identity import gang_trace_id
from shared.contracts.outcomes import Outcome
from shared.contracts.verdicts import Verdict
from shared.telemetry.metrics import Metrics

log = logging.getLogger("services.gang_planner")

_CYCLE_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_WAIT_S: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 600.0, 3600.0)
#: What gangs are counted as while something of them is bound, and not all that they need.
_PARTIAL: Final = ("Repairing", "Releasing")


class _Begun(NamedTuple):
    """A decision that gives a gang its quorum."""

    decided_ms: int
    #: 0: it is not the gang's first.
    first_seen_ms: int
    trace_id: str


class Reporting:
    """Counts and tells; nothing depends on it."""

    def __init__(self, metrics: Metrics, now_ms: Callable[[], int]) -> None:
        """Register the metrics, once per process."""
        self._now_ms = now_ms
        self._synced_ms = now_ms()
        self._decisions = metrics.counter("decisions_total", "Gang decisions appended.")
        self._bindings = metrics.counter("bindings_total", "Bindings in those decisions.")
        self._started = metrics.counter("gangs_started_total", "Gangs whose quorum was placed.")
        self._releases = metrics.counters(
            "releases_total", "Releases begun of gangs that could not be whole.", "reason"
        )
        self._repairs = metrics.counters(
            "repairs_total", "Repairs of gangs bound in part that ended, by how.", "result"
        )
        self._verdicts = metrics.counter("verdicts_total", "Verdicts published.")
        self._cycles = metrics.counter("cycles_total", "Planning cycles run.")
        self._cycle_s = metrics.histogram("cycle_seconds", "One planning cycle.", _CYCLE_S)
        self._append_s = metrics.histogram(
            "append_seconds", "Making a cycle's decisions and notes durable.", _CYCLE_S
        )
        self._latency_s = metrics.histograms(
            "gang_latency_seconds",
            "Of whole gangs, by phase: queued (first seen to first decision), bound (a decision to "
            "its last binding), total (first seen to the last binding of the first decision).",
            _WAIT_S,
            "phase",
        )
        #: Decisions without an outcome yet, by gang id.
        self._begun: dict[str, _Begun] = {}
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
        self._gangs = metrics.gauges("gangs", "Gangs by phase, or Repairing, Releasing.", "phase")
        self._open = metrics.gauge(
            "decisions_open", "Decisions that the cluster does not show yet."
        )
        self._outcomes = metrics.counters(
            "outcomes_total", "Outcomes read, by what became of the decision.", "result"
        )
        self._holds = metrics.gauge("holds_open", "Lost members for which room is held or sought.")
        self._holds_closed = metrics.counters(
            "holds_closed_total", "Holds that ended, by how.", "reason"
        )
        self._lag_s = metrics.gauges(
            "log_lag_seconds", "Age of the newest record when it was applied, by stream.", "stream"
        )
        metrics.watch(
            "view_age_seconds",
            "Since the watcher last said that its picture is current.",
            lambda: max(0, now_ms() - self._synced_ms) / 1000,
        )
        #: The same under Volcano's names.
        self.volcano = SchedulerMetrics(metrics)

    def arrived(self, arrivals: list[Arrival]) -> None:
        """Take what was just applied: how old it is, and what outcomes say."""
        newest: dict[str, int] = {}
        for arrival in arrivals:
            match arrival:
                case ClusterArrival(_, record, _, stored_ms):
                    newest["CLUSTER"] = stored_ms
                    if isinstance(record, Synced):
                        self._synced_ms = record.at_ms
                case DecisionArrival(_, _, stored_ms):
                    newest["DECISIONS"] = stored_ms
                case OutcomeArrival(_, outcome, _, stored_ms):
                    newest["OUTCOMES"] = stored_ms
                    self._outcomes(_result_of(outcome)).inc()
                    self._bound(outcome)
                    self.volcano.bound(outcome, stored_ms)
                case _:
                    pass
        if newest:
            now_ms = self._now_ms()
            for stream, stored_ms in newest.items():
                self._lag_s(stream).set(max(0, now_ms - stored_ms) / 1000)

    def cycled(self, cycle_s: float) -> None:
        """One cycle was run."""
        self._cycles.inc()
        self._cycle_s.observe(cycle_s)
        self.volcano.cycled(cycle_s)

    def appended(self, record: Act | Note) -> None:
        """A record is in the log."""
        if isinstance(record, GangDecision):
            self._decided(record)
        elif isinstance(record, EvictionDecision):
            self.volcano.evicted(record)
        elif isinstance(record, NoteOpened) and record.kind == "release":
            self._releases(record.reason).inc()
            log.warning(
                "releasing %s: %s: %s",
                record.gang_id,
                record.reason,
                record.message,
                extra={"gang_id": record.gang_id},
            )
        elif isinstance(record, NoteClosed) and record.kind == "repair":
            self._repairs(record.reason).inc()
        elif isinstance(record, NoteOpened | NoteClosed) and record.kind == "hold":
            self._held(record)
        elif isinstance(record, GangStarted):
            self._started.inc()
            log.info(
                "started %s, attempt %d",
                record.gang_id,
                record.attempt,
                extra={
                    "trace_id": gang_trace_id(record.gang_id, max(record.attempt, 1)),
                    "gang_id": record.gang_id,
                },
            )

    def appending_took(self, append_s: float) -> None:
        """All records of a cycle are in the log."""
        self._append_s.observe(append_s)

    def published(self, verdict: Verdict) -> None:
        """A verdict was sent."""
        self._verdicts.inc()
        self.volcano.said(verdict)

    def observe(self, phases: Mapping[str, int], open_decisions: int, open_holds: int) -> None:
        """Take the gauges' values, once per cycle."""
        for phase, count in phases.items():
            self._gangs(phase).set(count)
        now_ms = self._now_ms()
        self._partial_ms = self._partial_until(now_ms)
        self._partial_since_ms = now_ms
        self._partial = sum(phases.get(phase, 0) for phase in _PARTIAL)
        self._open.set(open_decisions)
        self._holds.set(open_holds)

    def _held(self, note: NoteOpened | NoteClosed) -> None:
        if isinstance(note, NoteClosed):
            self._holds_closed(note.reason).inc()
            said = f"hold for a member of {note.gang_id} ended: {note.reason}"
        elif note.node:
            said = f"holding room on {note.node} for {note.gang_id}: {note.message}"
        else:
            said = f"no room to hold yet for {note.gang_id}: {note.message}"
        log.info("%s", said, extra={"gang_id": note.gang_id})

    def _decided(self, decision: GangDecision) -> None:
        self._decisions.inc()
        self._bindings.inc(len(decision.bindings))
        self.volcano.decided(decision)
        # What a running gang gets beyond its quorum says nothing of how gangs start.
        if decision.quorum and not decision.again:
            begun = _Begun(
                decided_ms=decision.cycle.now_ms,
                first_seen_ms=decision.first_seen_ms if decision.attempt == 1 else 0,
                trace_id=decision.trace_id,
            )
            self._begun[decision.gang_id] = begun
            if begun.first_seen_ms:
                self._took("queued", begun.decided_ms - begun.first_seen_ms, begun.trace_id)
        log.info(
            "decided %s: %d bindings, attempt %d",
            decision.gang,
            len(decision.bindings),
            decision.attempt,
            extra={"trace_id": decision.trace_id, "gang_id": decision.gang_id},
        )

    def _bound(self, outcome: Outcome) -> None:
        """A binder says what became of a decision."""
        begun = self._begun.pop(outcome.gang_id, None)
        if begun is None or not outcome.last_bound_ms or _result_of(outcome) != "whole":
            return
        self._took("bound", outcome.last_bound_ms - begun.decided_ms, begun.trace_id)
        if begun.first_seen_ms:
            self._took("total", outcome.last_bound_ms - begun.first_seen_ms, begun.trace_id)

    def _took(self, phase: str, took_ms: int, trace_id: str) -> None:
        exemplar = {"trace_id": trace_id} if trace_id else None
        self._latency_s(phase).observe(max(0, took_ms) / 1000, exemplar)

    def _partial_until(self, now_ms: int) -> int:
        return self._partial_ms + self._partial * max(0, now_ms - self._partial_since_ms)


def _result_of(outcome: Outcome) -> str:
    """One of few words: "whole", "partial", "none"."""
    if any(member.result != "bound" for member in outcome.members) or outcome.reason:
        return "partial" if outcome.bound else "none"
    return "whole"
