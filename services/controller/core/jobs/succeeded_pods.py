"""Pods of a Job that have succeeded and are gone, with their node or deleted: they are not run
again. Pure.

A controller remembers those whose deletion it has seen. Of the time before, it knows the counts in
the status: if a task lacks exactly as many pods as have succeeded and are gone, these are they. If
it lacks more, all of them run again, since a pod too many is better than one that never runs.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from services.controller.core.jobs.step import (
    JOB_VERSION,
    NO_NUMBER,
    Observed,
    PodStatus,
    SeenPod,
)
from shared.contracts.annotations import TASK_INDEX, TASK_SPEC
from shared.kinds.job import Job, JobPhase, TaskSpec
from shared.kinds.job_shape import pod_name, task_named
from shared.kinds.metadata import Metadata

_SUCCEEDED: Final = PodStatus(phase="Succeeded")


def remembered(pod: SeenPod) -> SeenPod:
    """What is kept of a pod that has succeeded and is gone."""
    return _succeeded(
        pod.metadata.namespace,
        pod.metadata.name,
        pod.metadata.uid,
        pod.task,
        pod.index,
        pod.version,
    )


def gone_succeeded(observed: Observed, job: Job, phase: JobPhase) -> tuple[SeenPod, ...]:
    """The job's pods (it has its defaults) that have succeeded in its present run and are gone."""
    state = job.status.state
    if phase == "Restarting" and state.reason == "RestartJob":
        return ()
    there = {pod.metadata.name for pod in observed.pods}
    succeeded = [
        pod
        for pod in observed.memory.succeeded
        if pod.metadata.name not in there and _is_wanted(job, pod)
    ]
    if not observed.memory.planned_before and phase in ("Pending", "Running"):
        there |= {pod.metadata.name for pod in succeeded}
        for task in job.spec.tasks:
            succeeded += _counted(job, task, [*observed.pods, *succeeded], there)
    return tuple(succeeded)


def _is_wanted(job: Job, pod: SeenPod) -> bool:
    task = task_named(job, pod.task)
    return task is not None and NO_NUMBER < pod.index < task.replicas


def _counted(
    job: Job, task: TaskSpec, pods: Sequence[SeenPod], there: set[str]
) -> Iterator[SeenPod]:
    """The gone pods of a task that the status counts as succeeded."""
    state = job.status.task_status_count.get(task.name)
    counted = state.phase.get("Succeeded", 0) if state is not None else 0
    known = sum(pod.task == task.name and pod.status.phase == "Succeeded" for pod in pods)
    if counted <= known:
        return
    names = [pod_name(job.metadata.name, task.name, index) for index in range(task.replicas)]
    missing = [(index, name) for index, name in enumerate(names) if name not in there]
    if len(missing) == counted - known:
        namespace, version = job.metadata.namespace, job.status.version
        for index, name in missing:
            yield _succeeded(namespace, name, name, task.name, index, version)


def _succeeded(namespace: str, name: str, uid: str, task: str, index: int, version: int) -> SeenPod:
    notes = {TASK_SPEC: task, TASK_INDEX: str(index), JOB_VERSION: str(version)}
    metadata = Metadata(name=name, namespace=namespace, uid=uid, annotations=notes)
    return SeenPod(metadata=metadata, status=_SUCCEEDED)
