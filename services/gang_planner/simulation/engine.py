"""Runs the core through a plan: time jumps from one event to the next.

The core gets the records of CLUSTER and OUTCOMES that a watcher and binders would write: a job
arrives as a PodGroup and its pods; decided pods run at once; a job whose time has passed is gone at
that instant. So a binding takes no time, and no binding fails.

A job with an evicted pod ends whole and is submitted again, with its first creation time: it keeps
its turn, and runs from its beginning. A job that is evicted at its run limit does not return.
"""

import heapq
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from services.gang_planner.config import PlannerSettings
from services.gang_planner.core.configuration.configuration import (
    Configuration,
    parse_configuration,
    with_defaults,
)
from services.gang_planner.core.forecast.stage import Stage
from services.gang_planner.core.planner import Planner
from services.gang_planner.core.state.gang_settings import Defaults
from services.gang_planner.core.verdicts.book import Book
from shared.contracts.cluster import (
    NodeChanges,
    PriorityClassChanges,
    QueueChanges,
    SnapshotPage,
    Synced,
)
from shared.contracts.decisions import Act, EvictionDecision, GangDecision, Note
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.simulation import (
    JobRun,
    RunEnd,
    SimulatedJob,
    SimulationPlan,
    SimulationResult,
)
from shared.model.objects import Owner, Pod, PodGroup

#: The instant at which simulations begin, on the planner's clock.
BEGIN_MS: Final = 1_700_000_000_000
_EPOCH: Final = 1
#: Cycles without an event before the simulation ends, and cycles per job.
_IDLE_MAX: Final = 1_000
_PER_JOB_MAX: Final = 1_000


def configuration_of(text: str) -> Configuration:
    """The configuration as the service reads a file: the service's default number of reservations
    applies where the file has none.

    Raises:
        ConfigurationError: It is invalid.
    """
    configuration = parse_configuration(text)
    if configuration.defaults != Defaults():
        return configuration
    defaults = Defaults(reservations=PlannerSettings().reservations)
    return parse_configuration(with_defaults(text, defaults))


class _Job:
    """A job of the plan, and what exists of it."""

    __slots__ = ("begun_ms", "group", "plan", "pods", "runs", "unbound")

    def __init__(self, plan: SimulatedJob) -> None:
        self.plan = plan
        self.group: PodGroup | None = None
        self.pods: dict[str, Pod] = {}
        self.unbound = 0
        #: When its present run began; None: it does not run.
        self.begun_ms: int | None = None
        #: How often it was submitted.
        self.runs = 0


class Engine:
    """One simulation."""

    def __init__(
        self,
        plan: SimulationPlan,
        on_end: Callable[[int], None] | None = None,
        on_wait: Callable[[int, Planner, int], None] | None = None,
    ) -> None:
        """Prepare it; `on_end` gets the number of jobs that have ended, `on_wait` the number of a
        job that arrived and waits, the planner, and the instant on its clock.

        Raises:
            ConfigurationError: The configuration is invalid.
        """
        self._on_end = on_end or (lambda _: None)
        self._on_wait = on_wait
        self._configuration = configuration_of(plan.configuration)
        self._planner = Planner(self._configuration, Book(publishes=False))
        self._jobs = [_Job(job) for job in plan.jobs]
        self._job_of: dict[str, int] = {}
        #: (instant, 0 for an end and 1 for an arrival, job, run).
        self._events = [(job.arrival_ms, 1, place, 0) for place, job in enumerate(plan.jobs)]
        heapq.heapify(self._events)
        self._runs: list[JobRun] = []
        self._now_ms = 0
        self._ended = 0
        self._load(plan)
        self._stage = Stage(self._planner, _EPOCH, self._carry_out, version=1)

    def run(self) -> SimulationResult:
        """Run it to its end."""
        begun_s = time.process_time()
        problem = self._play()
        end_ms = self._now_ms
        for place, job in enumerate(self._jobs):
            if job.begun_ms is not None:
                self._note_run(place, "unfinished")
        return SimulationResult(
            runs=tuple(self._runs),
            end_ms=end_ms,
            cycles=self._stage.cycles,
            cpu_s=time.process_time() - begun_s,
            warnings=self._configuration.warnings,
            problem=problem,
        )

    # -------------------------------------------------------------------- time

    def _play(self) -> str:
        """Go from event to event; return why that ended before the last job did, if it did."""
        wakeup_ms: int | None = None
        idle = 0
        while self._events or wakeup_ms is not None:
            if self._events and (wakeup_ms is None or self._events[0][0] <= wakeup_ms):
                self._now_ms = self._events[0][0]
                idle = 0
            elif idle == _IDLE_MAX and not self._events:
                break
            elif wakeup_ms is not None:
                self._now_ms = max(self._now_ms, wakeup_ms)
                idle += 1
            arrived = self._happen()
            decided, wakeup_ms = self._decide()
            self._report_waits(arrived)
            if decided:
                idle = 0
            if self._ended == len(self._jobs):
                break
            cycles = self._stage.cycles
            if cycles > _PER_JOB_MAX * len(self._jobs) + _IDLE_MAX:
                return f"it was ended after {cycles:,} cycles: decisions go round in a circle"
        return ""

    def _report_waits(self, arrived: Iterable[int]) -> None:
        for place in arrived:
            job = self._jobs[place]
            if self._on_wait is not None and job.begun_ms is None and job.runs == 1:
                self._on_wait(place, self._planner, BEGIN_MS + self._now_ms)

    def _happen(self) -> list[int]:
        """Let all events of this instant happen; the jobs that arrived."""
        arrived: list[int] = []
        while self._events and self._events[0][0] <= self._now_ms:
            _, arrives, place, run = heapq.heappop(self._events)
            job = self._jobs[place]
            if arrives:
                self._submit(place)
                arrived.append(place)
            elif job.begun_ms is not None and job.runs == run:
                self._note_run(place, "finished")
                self._remove(job, succeeded=True)
                self._end_job()
        return arrived

    def _decide(self) -> tuple[bool, int | None]:
        """As `Stage.decide`, on the clock of the plan."""
        decided, wakeup_ms = self._stage.decide(BEGIN_MS + self._now_ms)
        return decided, None if wakeup_ms is None else wakeup_ms - BEGIN_MS

    def _carry_out(self, record: Act | Note) -> None:
        if isinstance(record, GangDecision):
            self._bind(record)
        elif isinstance(record, EvictionDecision):
            self._evict(record)

    # ----------------------------------------------------------------- objects

    def _submit(self, place: int) -> None:
        """Create the job's group and pods."""
        job, plan = self._jobs[place], self._jobs[place].plan
        job.runs += 1
        name = f"{plan.name}-{place}"
        uid = f"{place}.{job.runs}"
        created_ms = BEGIN_MS + plan.arrival_ms
        job.group = PodGroup(
            uid=f"group-{uid}",
            dialect="volcano",
            namespace=plan.namespace,
            name=name,
            resource_version=1,
            created_ms=created_ms,
            min_member=sum(count for count, _ in plan.members),
            run_limit_s=plan.limit_s,
            queue=plan.queue,
            priority=plan.priority,
        )
        owner = Owner(
            api_version="batch.volcano.sh/v1alpha1", kind="Job", name=name, uid=f"job-{uid}"
        )
        shapes = [shape for count, shape in plan.members for _ in range(count)]
        job.pods = {
            f"pod-{uid}-{index}": Pod(
                uid=f"pod-{uid}-{index}",
                namespace=plan.namespace,
                name=f"{name}-{index}",
                resource_version=1,
                created_ms=created_ms,
                shape=shape,
                ours=True,
                scheduler_name="tutti",
                group_name=name,
                index=index,
                priority=plan.priority,
                owner=owner,
            )
            for index, shape in enumerate(shapes)
        }
        job.unbound = len(job.pods)
        for pod_uid in job.pods:
            self._job_of[pod_uid] = place
        self._stage.put_group(job.group)
        self._stage.put(*job.pods.values())

    def _bind(self, decision: GangDecision) -> None:
        """The pods of a decision run."""
        job = None
        for binding in decision.bindings:
            place = self._job_of[binding.uid]
            job = self._jobs[place]
            self._stage.run_pod(job.pods[binding.uid], binding.node, BEGIN_MS + self._now_ms)
            job.unbound -= 1
            if not job.unbound:
                job.begun_ms = self._now_ms
                end = (self._now_ms + job.plan.run_ms, 0, place, job.runs)
                heapq.heappush(self._events, end)
        self._stage.answer(decision, self._stage.decision_seq)

    def _evict(self, decision: EvictionDecision) -> None:
        """The pods of a decision are gone, and with them their jobs."""
        self._stage.answer(decision, self._stage.decision_seq)
        places = {self._job_of[each.uid] for each in decision.victims if each.uid in self._job_of}
        for place in sorted(places):
            job = self._jobs[place]
            limit = decision.reason == PendingReason.RUN_LIMIT
            if job.begun_ms is not None:
                self._note_run(place, "limit" if limit else "evicted")
            self._remove(job, succeeded=False)
            if limit:
                self._end_job()
            else:
                # Behind the cycle that reads that the pods are gone.
                heapq.heappush(self._events, (self._now_ms + 1, 1, place, job.runs))

    def _remove(self, job: _Job, *, succeeded: bool) -> None:
        for uid in job.pods:
            del self._job_of[uid]
        self._stage.remove(*job.pods, succeeded=succeeded)
        if job.group is not None:
            self._stage.remove_group(job.group.uid)
        job.pods, job.group = {}, None

    def _note_run(self, place: int, end: RunEnd) -> None:
        job = self._jobs[place]
        start_ms = job.begun_ms
        job.begun_ms = None
        if start_ms is not None:
            run = JobRun(job=place, start_ms=start_ms, end_ms=self._now_ms, end=end)
            self._runs.append(run)

    def _end_job(self) -> None:
        self._ended += 1
        self._on_end(self._ended)

    # ----------------------------------------------------------------- records

    def _load(self, plan: SimulationPlan) -> None:
        """Give the planner the cluster before the first job, and make it the writer."""
        stamp: dict[str, Any] = {"epoch": _EPOCH, "at_ms": BEGIN_MS}
        page = SnapshotPage(
            snapshot="simulation",
            page=0,
            pages=1,
            epoch=_EPOCH,
            cluster_seq=1,
            synced=Synced(**stamp, watcher="simulation"),
            records=(
                PriorityClassChanges(**stamp, changed=plan.priority_classes),
                QueueChanges(**stamp, changed=plan.queues),
                NodeChanges(**stamp, changed=plan.nodes),
            ),
        )
        self._planner.load_snapshot([page])
        self._planner.lead(1)
