"""Runs the core through a plan: time jumps from one event to the next.

The core gets the records of CLUSTER and OUTCOMES that a watcher and binders would write: a job
arrives as a PodGroup and its pods; decided pods run at once; a job whose time has passed is gone at
that instant. So a binding takes no time, and no binding fails.

A job with an evicted pod ends whole and is submitted again, with its first creation time: it keeps
its turn, and runs from its beginning. A job that is evicted at its run limit does not return.
"""

import heapq
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec
from typing_extensions import override

from services.gang_planner.config import PlannerSettings
from services.gang_planner.core.configuration.configuration import (
    Configuration,
    parse_configuration,
    with_defaults,
)
from services.gang_planner.core.planner import Planner
from services.gang_planner.core.state.gang_settings import Defaults
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.verdicts.book import Book
from services.gang_planner.core.verdicts.pending_reason import Explainer
from shared.contracts.cluster import (
    ClusterRecord,
    Gone,
    NodeChanges,
    PodChanges,
    PodGroupChanges,
    PriorityClassChanges,
    QueueChanges,
    SnapshotPage,
    Synced,
)
from shared.contracts.decisions import EvictionDecision, GangDecision
from shared.contracts.outcomes import Outcome
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.simulation import (
    JobRun,
    RunEnd,
    SimulatedJob,
    SimulationPlan,
    SimulationResult,
)
from shared.contracts.verdicts import Verdict
from shared.model.objects import Owner, Pod, PodGroup

#: The instant at which simulations begin, on the planner's clock.
BEGIN_MS: Final = 1_700_000_000_000
_EPOCH: Final = 1
_NAMESPACE: Final = "simulation"
#: Cycles at one instant, cycles without an event before the simulation ends, and cycles per job.
_AT_ONCE_MAX: Final = 1_000
_IDLE_MAX: Final = 1_000
_PER_JOB_MAX: Final = 1_000
#: As the service does, but not as rarely: each cycle reads what gone gangs have left behind.
_RECORDS_PER_CHECKPOINT: Final = 256


class Unpublished(Book):
    """No verdicts: no decision depends on one, and they take most of a crowded cycle."""

    @override
    def write(
        self,
        state: State,
        explainer: Explainer,
        changed: Mapping[str, Gang],
        now_ms: int,
        *,
        stale: bool,
    ) -> list[Verdict]:
        state.gangs.retired.clear()
        return []

    @override
    def next_ms(self, freed: int, now_ms: int) -> int | None:
        return None


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

    def __init__(self, plan: SimulationPlan, on_end: Callable[[int], None] | None = None) -> None:
        """Prepare it; `on_end` gets the number of jobs that have ended.

        Raises:
            ConfigurationError: The configuration is invalid.
        """
        self._on_end = on_end or (lambda _: None)
        self._configuration = configuration_of(plan.configuration)
        self._planner = Planner(self._configuration, Unpublished())
        self._jobs = [_Job(job) for job in plan.jobs]
        self._job_of: dict[str, int] = {}
        #: (instant, 0 for an end and 1 for an arrival, job, run).
        self._events = [(job.arrival_ms, 1, place, 0) for place, job in enumerate(plan.jobs)]
        heapq.heapify(self._events)
        self._runs: list[JobRun] = []
        self._now_ms = 0
        self._version = 1
        self._cluster_seq = self._decision_seq = self._checkpoint_seq = 1
        self._outcome_seq = 0
        self._cycles = self._ended = 0
        self._changed: list[Pod] = []
        self._removed: list[Gone] = []
        self._groups: list[PodGroup] = []
        self._groups_removed: list[Gone] = []
        self._load(plan)

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
            cycles=self._cycles,
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
            self._happen()
            decided, wakeup_ms = self._decide()
            if decided:
                idle = 0
            if self._ended == len(self._jobs):
                break
            if self._cycles > _PER_JOB_MAX * len(self._jobs) + _IDLE_MAX:
                return f"it was ended after {self._cycles:,} cycles: decisions go round in a circle"
        return ""

    def _happen(self) -> None:
        """Let all events of this instant happen."""
        while self._events and self._events[0][0] <= self._now_ms:
            _, arrives, place, run = heapq.heappop(self._events)
            job = self._jobs[place]
            if arrives:
                self._submit(place)
            elif job.begun_ms is not None and job.runs == run:
                self._note_run(place, "finished")
                self._remove(job, succeeded=True)
                self._end_job()

    def _decide(self) -> tuple[bool, int | None]:
        """Run cycles until nothing is left to do at this instant: whether there were decisions, and
        the time of the next cycle.
        """
        decided = False
        for _ in range(_AT_ONCE_MAX):
            self._flush()
            now_ms = BEGIN_MS + self._now_ms
            step = self._planner.step(now_ms)
            self._cycles += 1
            for record in (*step.decisions, *step.notes):
                self._decision_seq += 1
                self._planner.decided(self._decision_seq, record)
                if isinstance(record, GangDecision):
                    self._bind(record)
                elif isinstance(record, EvictionDecision):
                    self._evict(record)
            if self._decision_seq - self._checkpoint_seq >= _RECORDS_PER_CHECKPOINT:
                self._checkpoint_seq = self._decision_seq
                self._planner.checkpoint(self._outcome_seq)
            decided = decided or bool(step.decisions)
            wakeup_ms = step.next_wakeup_ms
            due = wakeup_ms is not None and wakeup_ms <= now_ms
            if not due and not self._changed and not self._removed and not self._groups_removed:
                return decided, None if wakeup_ms is None else wakeup_ms - BEGIN_MS
        return decided, self._now_ms + 1

    # ----------------------------------------------------------------- objects

    def _submit(self, place: int) -> None:
        """Create the job's group and pods."""
        job, plan = self._jobs[place], self._jobs[place].plan
        job.runs += 1
        self._version += 1
        name = f"{plan.name}-{place}"
        uid = f"{place}.{job.runs}"
        created_ms = BEGIN_MS + plan.arrival_ms
        job.group = PodGroup(
            uid=f"group-{uid}",
            dialect="volcano",
            namespace=_NAMESPACE,
            name=name,
            resource_version=self._version,
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
                namespace=_NAMESPACE,
                name=f"{name}-{index}",
                resource_version=self._version,
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
        self._groups.append(job.group)
        self._changed += job.pods.values()

    def _bind(self, decision: GangDecision) -> None:
        """The pods of a decision run."""
        job = None
        for binding in decision.bindings:
            place = self._job_of[binding.uid]
            job = self._jobs[place]
            self._version += 1
            pod = job.pods[binding.uid] = msgspec.structs.replace(
                job.pods[binding.uid],
                resource_version=self._version,
                node=binding.node,
                phase="Running",
                scheduled_ms=BEGIN_MS + self._now_ms,
                started_ms=BEGIN_MS + self._now_ms,
                decision_seq=self._decision_seq,
            )
            self._changed.append(pod)
            job.unbound -= 1
            if not job.unbound:
                job.begun_ms = self._now_ms
                end = (self._now_ms + job.plan.run_ms, 0, place, job.runs)
                heapq.heappush(self._events, end)
        self._answer(decision, len(decision.bindings))

    def _evict(self, decision: EvictionDecision) -> None:
        """The pods of a decision are gone, and with them their jobs."""
        self._answer(decision, 0)
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

    def _answer(self, decision: GangDecision | EvictionDecision, bound: int) -> None:
        self._outcome_seq += 1
        outcome = Outcome(
            gang_id=decision.gang_id,
            decision_seq=self._decision_seq,
            epoch=decision.epoch,
            binder="simulation",
            delivered=1,
            bound=bound,
        )
        self._planner.apply_outcome(self._outcome_seq, outcome)

    def _remove(self, job: _Job, *, succeeded: bool) -> None:
        self._version += 1
        for uid in job.pods:
            del self._job_of[uid]
            gone = Gone(uid=uid, resource_version=self._version, succeeded=succeeded)
            self._removed.append(gone)
        if job.group is not None:
            gone = Gone(uid=job.group.uid, resource_version=self._version)
            self._groups_removed.append(gone)
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
            cluster_seq=self._cluster_seq,
            synced=Synced(**stamp, watcher="simulation"),
            records=(
                PriorityClassChanges(**stamp, changed=plan.priority_classes),
                QueueChanges(**stamp, changed=plan.queues),
                NodeChanges(**stamp, changed=plan.nodes),
            ),
        )
        self._planner.load_snapshot([page])
        self._planner.lead(self._decision_seq)

    def _flush(self) -> None:
        """Write what has changed as the watcher does: groups before pods, and a heartbeat."""
        for record in self._records():
            self._cluster_seq += 1
            self._planner.apply_cluster(self._cluster_seq, record)

    def _records(self) -> Iterator[ClusterRecord]:
        stamp: dict[str, Any] = {"epoch": _EPOCH, "at_ms": BEGIN_MS + self._now_ms}
        if self._groups or self._groups_removed:
            groups, gone = tuple(self._groups), tuple(self._groups_removed)
            self._groups, self._groups_removed = [], []
            yield PodGroupChanges(**stamp, changed=groups, removed=gone)
        if self._changed or self._removed:
            pods, gone = tuple(self._changed), tuple(self._removed)
            self._changed, self._removed = [], []
            yield PodChanges(**stamp, changed=pods, removed=gone)
        yield Synced(**stamp, watcher="simulation")
