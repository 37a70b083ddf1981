"""A planner's metrics, and by `decision_log` a log line per record."""

import functools
import logging
from collections.abc import Callable, Mapping
from typing import Final, get_args

from services.gang_planner.core.lifecycle.run_limits import OVERRUN
from services.gang_planner.core.state.gang_history import NOTED_REASONS
from services.gang_planner.gang_starts import GangStarts
from services.gang_planner.inbox import Arrival, ClusterArrival, DecisionArrival, OutcomeArrival
from services.gang_planner.log_lines import DecisionLog
from services.gang_planner.volcano_metrics import SchedulerMetrics
from shared.bus.errors import MessageTooLarge
from shared.contracts.decisions import (
    Act,
    EvictionDecision,
    GangDecision,
    GangStarted,
    Note,
    NoteClosed,
    NoteOpened,
)
from shared.contracts.outcomes import Outcome
from shared.contracts.subjects import CLUSTER, DECISIONS, OUTCOMES
from shared.contracts.verdicts import GangPhase, Verdict
from shared.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

_CYCLE_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
#: For how long a stream's lag is reported after its last record.
_RECENT_MS: Final = 60_000
#: How gangs are counted that are bound in part.
_PARTIAL: Final = ("Repairing", "Releasing")
#: The streams that a planner applies.
_STREAMS: Final[tuple[str, ...]] = (CLUSTER, DECISIONS, OUTCOMES)


class _LogLag:
    """The age of each stream's newest record when it was applied."""

    def __init__(self, metrics: Metrics, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        lag_s = metrics.gauges(
            "log_lag_seconds",
            "Age of the newest record when it was applied, by stream; 0 when none came for a "
            "minute.",
            "stream",
        )
        #: By stream: when its newest record was applied, and its age then.
        self._lags: dict[str, tuple[int, int]] = dict.fromkeys(_STREAMS, (0, 0))
        for stream in self._lags:
            lag_s(stream).set_function(functools.partial(self._lag_s, stream))

    def applied(self, newest: Mapping[str, int]) -> None:
        """Take the instants at which the newest applied records were stored, by stream."""
        now_ms = self._now_ms()
        for stream, stored_ms in newest.items():
            self._lags[stream] = now_ms, max(0, now_ms - stored_ms)

    def _lag_s(self, stream: str) -> float:
        applied_ms, lag_ms = self._lags[stream]
        # Records that were read at the start are old without any lag.
        return lag_ms / 1000 if self._now_ms() - applied_ms < _RECENT_MS else 0.0


class Reporting:
    """Metrics and logs; no decision depends on them."""

    def __init__(
        self,
        metrics: Metrics,
        now_ms: Callable[[], int],
        view_age_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        metrics.watch(
            "view_age_seconds",
            "Since the newest report of the watcher that its cluster state is current.",
            view_age_s,
        )
        self._decisions = metrics.counter("decisions_total", "Gang decisions appended.")
        self._bindings = metrics.counter("bindings_total", "Bindings in those decisions.")
        self._started = metrics.counter("gangs_started_total", "Gangs whose quorum was placed.")
        self._releases = metrics.counters(
            "releases_total",
            "Releases begun of gangs that could not be whole.",
            "reason",
            tuple(NOTED_REASONS),
        )
        self._repairs = metrics.counters(
            "repairs_total",
            "Repairs of gangs bound in part that ended, by how.",
            "result",
            ("Started", "NothingBound", "Released"),
        )
        self._verdicts = metrics.counter("verdicts_total", "Verdicts published.")
        self._verdicts_too_large = metrics.counter(
            "verdicts_too_large_total",
            "Verdicts not published, because NATS accepts only shorter messages.",
        )
        self._cycles = metrics.counter("cycles_total", "Planning cycles run.")
        self._cycle_s = metrics.histogram("cycle_seconds", "One planning cycle.", _CYCLE_S)
        self._append_s = metrics.histogram(
            "append_seconds", "Making a cycle's decisions and notes durable.", _CYCLE_S
        )
        self._gangs = metrics.gauges(
            "gangs",
            "Gangs by phase, or Repairing, Releasing.",
            "phase",
            (*(phase for phase in get_args(GangPhase) if phase != "Gone"), *_PARTIAL),
        )
        self._open = metrics.gauge(
            "decisions_open", "Decisions that the cluster does not show yet."
        )
        self._pods_in_flight = metrics.gauge(
            "pods_under_way", "Pods decided that no binder has answered for."
        )
        self._in_flight_max = metrics.gauge(
            "pods_under_way_max", "How many of them there may be; 0: any number."
        )
        self._outcomes = metrics.counters(
            "outcomes_total",
            "Outcomes read, by what became of the decision.",
            "result",
            ("whole", "partial", "none"),
        )
        self._holds = metrics.gauge(
            "holds_open", "Lost members for which capacity is reserved or sought."
        )
        self._holds_closed = metrics.counters(
            "holds_closed_total", "Holds that ended, by how.", "reason", ("Filled", "Expired")
        )
        self._overruns = metrics.counter(
            "run_limit_overruns_total",
            "Gangs that ran for longer than a run limit that is not enforced.",
        )
        self._reservations = metrics.gauge(
            "reservations_open", "Waiting gangs for which capacity is kept, or will be."
        )
        self._lag = _LogLag(metrics, now_ms)
        self._starts = GangStarts(metrics, now_ms)
        self._log = DecisionLog()
        #: The same metrics under Volcano's names.
        self.volcano = SchedulerMetrics(metrics)

    def arrived(self, arrivals: list[Arrival]) -> None:
        """Count arrivals that were just applied: their age, and the results in outcomes."""
        newest: dict[str, int] = {}
        for arrival in arrivals:
            match arrival:
                case ClusterArrival(_, _, _, stored_ms):
                    newest[CLUSTER] = stored_ms
                case DecisionArrival(_, _, stored_ms):
                    newest[DECISIONS] = stored_ms
                case OutcomeArrival(_, outcome, _, stored_ms):
                    newest[OUTCOMES] = stored_ms
                    self._outcomes(_result_of(outcome)).inc()
                    self._starts.outcome_applied(outcome, whole=_result_of(outcome) == "whole")
                    self.volcano.outcome_applied(outcome, stored_ms)
                case _:
                    pass
        self._lag.applied(newest)

    def cycled(self, cycle_s: float) -> None:
        self._cycles.inc()
        self._cycle_s.observe(cycle_s)
        self.volcano.cycled(cycle_s)

    def appended(self, seq: int, record: Act | Note, name: str = "") -> None:
        """Count and log a record that is in DECISIONS under this sequence; `name` is its gang's
        "namespace/name", "" if the planner does not know it.
        """
        self._log.appended(seq, record, name)
        if isinstance(record, GangDecision):
            self._decided(record)
        elif isinstance(record, EvictionDecision):
            self.volcano.evicted(record)
        elif isinstance(record, NoteOpened) and record.kind == "release":
            self._releases(record.reason).inc()
        elif isinstance(record, NoteClosed) and record.kind == "repair":
            self._repairs(record.reason).inc()
        elif isinstance(record, NoteClosed) and record.kind == "hold":
            self._holds_closed(record.reason).inc()
        elif isinstance(record, NoteOpened) and record.reason == OVERRUN:
            self._overruns.inc()
        elif isinstance(record, GangStarted):
            self._started.inc()

    def appending_took(self, append_s: float) -> None:
        """Observe how long the append of a cycle's records took."""
        self._append_s.observe(append_s)

    def published(self, verdict: Verdict) -> None:
        """Count a verdict that was sent."""
        self._verdicts.inc()
        if verdict.phase == "Gone":
            self._log.forget(verdict.gang_id)
        self._starts.verdict_published(verdict)
        self.volcano.verdict_published(verdict)

    def verdict_too_large(self, verdict: Verdict, error: MessageTooLarge) -> None:
        """Count and log a verdict that the server's limit of messages does not allow."""
        self._verdicts_too_large.inc()
        log.error("the verdict on %s is not sent: %s", verdict.gang, error)

    def recalled(self, verdict: Verdict) -> None:
        """Take the last verdict that an earlier planner published of a gang."""
        self._starts.verdict_published(verdict)
        self.volcano.verdict_recalled(verdict)

    def pods_in_flight(self, pods: int, limit: int) -> None:
        """Set the pods in flight and their limit; 0, as in the metric: no limit."""
        self._pods_in_flight.set(pods)
        self._in_flight_max.set(limit)

    def observe(
        self, phases: Mapping[str, int], open_decisions: int, open_holds: int, reservations: int
    ) -> None:
        """Set the gauges, once per cycle."""
        self._starts.observe(sum(phases.get(phase, 0) for phase in _PARTIAL))
        for phase, count in phases.items():
            self._gangs(phase).set(count)
        self._open.set(open_decisions)
        self._holds.set(open_holds)
        self._reservations.set(reservations)

    def _decided(self, decision: GangDecision) -> None:
        self._decisions.inc()
        self._bindings.inc(len(decision.bindings))
        self._starts.decided(decision)
        self.volcano.decided(decision)


def _result_of(outcome: Outcome) -> str:
    """The label of an outcome: "whole", "partial" or "none"."""
    if any(member.result != "bound" for member in outcome.members) or outcome.reason:
        return "partial" if outcome.bound else "none"
    return "whole"
