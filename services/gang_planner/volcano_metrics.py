"""The metrics that Volcano's scheduler has, from decisions, verdicts and queues.

One small row is kept per gang: series are built when the metrics are read, by the active planner
only, or sums over replicas would count everything twice. Volcano's metrics of sessions and plugins
have no counterpart here (docs/compatibility.md).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from services.gang_planner.core.queries.queue_figures import QueueFigures
from shared.contracts.decisions import EvictionDecision, GangDecision
from shared.contracts.outcomes import Outcome
from shared.contracts.verdicts import Verdict
from shared.telemetry.metrics import Metrics
from shared.telemetry.volcano import Column, Latencies, Row, VolcanoMetrics

#: Gangs that have series, those that changed last. A series costs 15 us to write, during which the
#: planner decides nothing.
JOBS_SHOWN_MAX: Final = 200
#: Milliseconds.
_CYCLE_MS: Final = (0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500)
_WAIT_MS: Final = (5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 10_000, 60_000, 600_000, 3_600_000)

_ACTIONS: Final = {"Preempted": "preempt", "Reclaimed": "reclaim"}
_WAITS: Final = frozenset({"Pending", "Inqueue"})
_AMOUNTS: Final = ("allocated", "request", "deserved", "capacity", "real_capacity", "inqueue")
_ALWAYS: Final = ("queue_allocated_", "queue_request_", "queue_inqueue_")
#: Resources with metrics of their own in Volcano, and the ending of these.
_OWN_METRIC: Final = {"cpu": "milli_cpu", "memory": "memory_bytes"}
#: A resource that Volcano counts in whole units; it counts all others in thousandths.
_WHOLE: Final = "pods"

_JOB: Final = ("job_name", "queue", "job_namespace")
_JOB_COLUMNS: Final = (
    Column("unschedule_task_count", "Members of a waiting gang that have no node.", ("job_id",)),
    Column(
        "job_retry_counts", "Attempts after the first to place a gang.", ("job_id",), counts=True
    ),
    Column("e2e_job_scheduling_start_time", "When a gang was first seen, in seconds.", _JOB),
    Column("e2e_job_scheduling_last_time", "When it was placed, in seconds.", _JOB),
    Column("e2e_job_scheduling_duration", "Milliseconds between the two.", _JOB),
)
_QUEUE: Final = ("queue_name",)
_QUEUE_COLUMNS: Final = (
    *(
        Column(f"queue_{amount}_{ending}", f"What queues have as {amount}: {resource}.", _QUEUE)
        for amount in _AMOUNTS
        for resource, ending in _OWN_METRIC.items()
    ),
    *(
        Column(
            f"queue_{amount}_scalar_resources",
            f"What queues have as {amount}: other resources, in thousandths.",
            (*_QUEUE, "resource"),
        )
        for amount in _AMOUNTS
    ),
    Column("queue_share", "The largest part that a queue holds of what it deserves.", _QUEUE),
    Column("queue_weight", "Weights of queues.", _QUEUE),
    Column("queue_overused", "1 where a queue holds all that it deserves.", _QUEUE),
)


class _Job(NamedTuple):
    """The row of a gang."""

    namespace: str
    name: str
    queue: str
    waits: bool
    pending: int
    attempt: int
    first_seen_ms: int
    changed_ms: int


class SchedulerMetrics:
    """The metrics; no decision depends on them."""

    def __init__(self, metrics: Metrics) -> None:
        made = VolcanoMetrics(metrics)
        self._cycle_ms = made.histogram(
            "e2e_scheduling_latency_milliseconds", "One planning cycle.", _CYCLE_MS
        )
        self._wait_ms = made.histogram(
            "e2e_job_scheduling_latency_milliseconds",
            "From a gang first seen to its first decision.",
            _WAIT_MS,
        )
        self._task_ms = Latencies(
            metrics,
            "task_scheduling_latency_milliseconds",
            "From a gang first seen until its pods were decided (Assumed), and Bound.",
            "stage",
            _WAIT_MS,
        )
        self._action_ms = Latencies(
            metrics,
            "action_scheduling_latency_milliseconds",
            "One run of an action.",
            "action",
            _CYCLE_MS,
        )
        #: When gangs were first seen whose decision has no outcome yet, by gang id.
        self._decided: dict[str, int] = {}
        self._action = ""
        self._action_began_s = 0.0
        self._attempts = made.counters(
            "schedule_attempts_total",
            "Pods decided, or reported as unschedulable.",
            "result",
            ("scheduled", "unschedulable"),
        )
        self._evictions = made.counters(
            "eviction_transactions_total",
            "Decisions to evict pods for a gang.",
            "action",
            sorted(_ACTIONS.values()),
        )
        self._victims = made.gauge("pod_preemption_victims", "Pods that the last one evicts.")
        self._preemptions = 0
        #: By gang id, those that changed last at the end.
        self._jobs: dict[str, _Job] = {}
        self._queues: Callable[[], Sequence[QueueFigures]] = lambda: ()
        totals = (
            Column("unschedule_job_count", "Gangs that wait.", ()),
            Column("total_preemption_attempts", "Decisions to evict.", (), counts=True),
        )
        made.table(totals, self._total)
        made.table(_JOB_COLUMNS, self._of_jobs)
        made.table(_QUEUE_COLUMNS, self._of_queues)

    def watch(self, queues: Callable[[], Sequence[QueueFigures]]) -> None:
        """Report these queues from now on; `queues` is called when metrics are read."""
        self._queues = queues

    def cycled(self, cycle_s: float) -> None:
        self._cycle_ms.observe(cycle_s * 1000)

    def decided(self, decision: GangDecision) -> None:
        """Count a decision to bind a gang."""
        pods = len(decision.bindings)
        waited_ms = max(0, decision.cycle.now_ms - decision.first_seen_ms)
        self._attempts["scheduled"].inc(pods)
        self._decided[decision.gang_id] = decision.first_seen_ms
        self._task_ms.observe("Assumed", waited_ms, pods)
        if decision.attempt == 1:
            self._wait_ms.observe(waited_ms)

    def outcome_applied(self, outcome: Outcome, at_ms: int) -> None:
        first_seen_ms = self._decided.pop(outcome.gang_id, None)
        if first_seen_ms is not None and outcome.bound:
            self._task_ms.observe("Bound", max(0, at_ms - first_seen_ms), outcome.bound)

    def action_began(self, action: str) -> None:
        """Record that an action begins; "": the last one has ended."""
        now_s = time.perf_counter()
        if self._action:
            self._action_ms.observe(self._action, (now_s - self._action_began_s) * 1000)
        self._action, self._action_began_s = action, now_s

    def evicted(self, decision: EvictionDecision) -> None:
        """Count a decision to evict pods."""
        action = _ACTIONS.get(decision.reason)
        if action is not None:
            self._evictions[action].inc()
            self._victims.set(len(decision.victims))
            self._preemptions += 1

    def verdict_published(self, verdict: Verdict) -> None:
        if _waits(verdict):
            self._attempts["unschedulable"].inc(verdict.pending)
        self.verdict_recalled(verdict)

    def verdict_recalled(self, verdict: Verdict) -> None:
        """Take a verdict that an earlier planner published."""
        if not verdict.dialect:
            # Gangs without an object are single pods: too many, and without a job.
            return
        known = self._jobs.pop(verdict.gang_id, None)
        if verdict.phase == "Gone":
            return
        waits = _waits(verdict)
        same = known is not None and known.waits == waits
        self._jobs[verdict.gang_id] = _Job(
            namespace=verdict.namespace,
            name=verdict.name,
            queue=verdict.queue,
            waits=waits,
            pending=verdict.pending,
            attempt=verdict.attempt,
            first_seen_ms=verdict.first_seen_ms,
            changed_ms=known.changed_ms if same and known is not None else verdict.at_ms,
        )

    # ------------------------------------------------------------------ series

    def _total(self, name: str) -> Iterator[Row]:
        if name == "unschedule_job_count":
            yield (), sum(job.waits for job in self._jobs.values())
        else:
            yield (), self._preemptions

    def _of_jobs(self, name: str) -> Iterator[Row]:
        newest = list(self._jobs.values())[-JOBS_SHOWN_MAX:]
        for job in newest:
            value = _VALUES[name](job)
            if value is not None:
                yield _labels(name, job), value

    def _of_queues(self, name: str) -> Iterator[Row]:
        for queue in self._queues():
            yield from _queue_rows(name, queue)


def _waits(verdict: Verdict) -> bool:
    return verdict.phase in _WAITS and verdict.why is not None


_VALUES: Final[Mapping[str, Callable[[_Job], float | None]]] = {
    "unschedule_task_count": lambda job: job.pending if job.waits else None,
    "job_retry_counts": lambda job: job.attempt - 1 if job.attempt > 1 else None,
    "e2e_job_scheduling_start_time": lambda job: job.first_seen_ms / 1000,
    "e2e_job_scheduling_last_time": lambda job: None if job.waits else job.changed_ms / 1000,
    "e2e_job_scheduling_duration": lambda job: (
        None if job.waits else max(0, job.changed_ms - job.first_seen_ms)
    ),
}


def _labels(name: str, job: _Job) -> tuple[str, ...]:
    if name.startswith("e2e_"):
        return job.name, job.queue, job.namespace
    return (f"{job.namespace}/{job.name}",)


def _queue_rows(name: str, queue: QueueFigures) -> Iterator[Row]:
    labels = (queue.name,)
    if name == "queue_share":
        yield labels, queue.share
    elif name == "queue_weight":
        yield labels, queue.weight
    elif name == "queue_overused":
        yield labels, int(queue.overused)
    elif name.endswith("_scalar_resources"):
        amounts = _amounts(queue, name.removesuffix("_scalar_resources"))
        for resource, amount in sorted(amounts.items()):
            if resource not in _OWN_METRIC:
                yield (queue.name, resource), amount if resource == _WHOLE else amount * 1000
    else:
        for resource, ending in _OWN_METRIC.items():
            if name.endswith(f"_{ending}"):
                amounts = _amounts(queue, name.removesuffix(f"_{ending}"))
                # A queue without limit or share has no series, rather than 0.
                if resource in amounts or name.startswith(_ALWAYS):
                    yield labels, amounts.get(resource, 0)


def _amounts(queue: QueueFigures, name: str) -> Mapping[str, int]:
    amounts: Mapping[str, int] = getattr(queue, name.removeprefix("queue_"))
    return amounts
