"""The metrics of Volcano's controllers, computed from the caches of ours.

They need no further reads or watches. Only the replica that owns a key reports it, so that sums
over replicas count nothing twice. Changes before the start of this process are not counted.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Final, TypeVar

from services.controller.reconciling.controller import Share
from services.controller.reconciling.informer import Informer, Informers, latest
from shared.kinds.job import Job
from shared.kinds.jobflow import JobFlow
from shared.kinds.podgroup import PodGroup
from shared.kinds.queue import DEFAULT_QUEUE
from shared.kube.resources import JOBFLOWS, JOBS_VOLCANO, PODGROUPS_VOLCANO
from shared.telemetry.metrics import Metrics
from shared.telemetry.volcano import SERIES_MAX, Column, Row, VolcanoMetrics

#: Milliseconds.
_CREATION_MS: Final = (5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000)

_JOB: Final = ("job_name", "queue_name")
_JOB_PHASES: Final = {
    "Completed": "job_completed_phase_count",
    "Failed": "job_failed_phase_count",
}
_JOB_COLUMNS: Final = tuple(
    Column(name, f"How often a Job was {phase}.", _JOB, counts=True)
    for phase, name in _JOB_PHASES.items()
)
_FLOW: Final = ("jobflow_namespace",)
_FLOW_COLUMNS: Final = (
    Column("jobflow_succeed_phase_count", "JobFlows that succeeded.", _FLOW, counts=True),
    Column("jobflow_failed_phase_count", "JobFlows that failed.", _FLOW, counts=True),
)
_FLOW_PHASES: Final = {
    "Succeed": "jobflow_succeed_phase_count",
    "Failed": "jobflow_failed_phase_count",
}
_GROUP_PHASES: Final = {
    f"queue_pod_group_{phase.lower()}_count": phase
    for phase in ("Inqueue", "Pending", "Running", "Unknown", "Completed")
}
_GROUP_COLUMNS: Final = tuple(
    Column(name, f"PodGroups of a queue that are {phase}.", ("queue_name",))
    for name, phase in _GROUP_PHASES.items()
)


_Labels = TypeVar("_Labels")


class ControllerMetrics:
    """The metrics; no controller depends on them."""

    def __init__(self, metrics: Metrics, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        #: By metric, then by (job, queue), the most recently changed at the end.
        self._jobs: dict[str, Counter[tuple[str, str]]] = {
            name: Counter() for name in _JOB_PHASES.values()
        }
        self._flows: dict[str, Counter[str]] = {name: Counter() for name in _FLOW_PHASES.values()}
        self._groups: Informer[PodGroup] | None = None
        self._owns: Callable[[str], bool] = lambda _key: True
        made = VolcanoMetrics(metrics)
        self._creation_ms = made.histogram(
            "controller_job_to_pod_creation_latency_milliseconds",
            "From a Job's creation until the controller saw its first pods.",
            _CREATION_MS,
        )
        made.table(_JOB_COLUMNS, self._of_jobs)
        made.table(_FLOW_COLUMNS, self._of_flows)
        made.table(_GROUP_COLUMNS, self._of_groups)

    def watch(self, informers: Informers, controllers: Collection[str], share: Share) -> None:
        """Follow the caches of these controllers. Call it before the caches run."""
        self._owns = share.owns
        if "job" in controllers:
            informers.of(JOBS_VOLCANO, Job).on_change(self._job_changed)
        if "jobflow" in controllers:
            informers.of(JOBFLOWS, JobFlow).on_change(self._flow_changed)
        if "queue" in controllers:
            self._groups = informers.of(PODGROUPS_VOLCANO, PodGroup)

    def _job_changed(self, old: Job | None, new: Job | None) -> None:
        job = latest(old, new)
        key = job.metadata.key
        if new is None:
            for counts in self._jobs.values():
                counts.pop((key, job.spec.queue or DEFAULT_QUEUE), None)
            return
        if old is None or not self._owns(key):
            return
        before, now = old.status, new.status
        # The version counts the deletions of its pods: 0 means that these pods are its first.
        if not _pods(old) and _pods(new) and not now.version:
            self._creation_ms.observe(max(0, self._now_ms() - job.metadata.created_ms))
        name = _JOB_PHASES.get(now.state.phase)
        if name is not None and before.state.phase != now.state.phase:
            _count(self._jobs[name], (key, job.spec.queue or DEFAULT_QUEUE))

    def _flow_changed(self, old: JobFlow | None, new: JobFlow | None) -> None:
        if old is None or new is None or not self._owns(new.metadata.key):
            return
        name = _FLOW_PHASES.get(new.status.state.phase)
        if name is not None and old.status.state.phase != new.status.state.phase:
            _count(self._flows[name], new.metadata.namespace)

    def _of_jobs(self, name: str) -> Iterator[Row]:
        # The most recently changed series are of the most interest.
        yield from list(self._jobs[name].items())[-SERIES_MAX:]

    def _of_flows(self, name: str) -> Iterator[Row]:
        for namespace, count in self._flows[name].items():
            yield (namespace,), count

    def _of_groups(self, name: str) -> Iterator[Row]:
        if self._groups is None or not self._owns(name):
            return
        wanted = _GROUP_PHASES[name]
        counts: Counter[str] = Counter()
        for group in self._groups.all():
            # Each queue with a group has all five series, since an alert on 0 needs one. A group
            # without a phase is Pending.
            phase = group.status.phase or "Pending"
            counts[group.spec.queue or DEFAULT_QUEUE] += phase == wanted
        for queue, count in sorted(counts.items()):
            yield (queue,), count


def _count(counts: Counter[_Labels], at: _Labels) -> None:
    """Count one more under these labels, and forget the series that changed least recently: users
    choose the names of jobs and namespaces, which come and go.
    """
    counts[at] = counts.pop(at, 0) + 1
    if len(counts) > SERIES_MAX:
        del counts[next(iter(counts))]


def _pods(job: Job) -> int:
    status = job.status
    return status.pending + status.running + status.succeeded + status.failed
