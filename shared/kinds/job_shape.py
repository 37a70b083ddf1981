"""Fills in a Job's defaults, and derives the names of its pods, its PodGroup and its hosts.

The defaults are the webhook's, so that a Job created without the webhook runs, too.
"""

from typing import Any, Final

import msgspec

from shared.kinds.job import Job, TaskSpec
from shared.kinds.queue import DEFAULT_QUEUE

_MAX_RETRY: Final = 3
#: Of one Job. Each of its steps lists all of them: this many take about 100 ms, and Volcano accepts
#: as many. A task's replicas may be 2,147,483,647, whose names no memory holds.
PODS_MAX: Final = 100_000


def completed(job: Job) -> Job:
    """The job with the defaults that the webhook fills in."""
    spec = job.spec
    tasks = tuple(_task(index, task) for index, task in enumerate(spec.tasks))
    # The webhook fills in each role's minimum. Where it has, a minAvailable of 0 is intended.
    bare = not spec.min_available and any(task.min_available is None for task in spec.tasks)
    minimum = sum(task_minimum(task) for task in tasks) if bare else spec.min_available
    return msgspec.structs.replace(
        job,
        spec=msgspec.structs.replace(
            spec,
            scheduler_name=spec.scheduler_name or "volcano",
            queue=queue_name(job),
            max_retry=spec.max_retry or _MAX_RETRY,
            min_available=minimum,
            tasks=tasks,
        ),
    )


def _task(index: int, task: TaskSpec) -> TaskSpec:
    return msgspec.structs.replace(
        task, name=task.name or f"default{index}", min_available=task_minimum(task)
    )


def task_minimum(task: TaskSpec) -> int:
    """How many pods of the role must be placed at once."""
    if task.min_available is not None:
        return task.min_available
    parts = task.partition_policy
    if parts is not None and parts.min_partitions > 0:
        return parts.min_partitions * parts.partition_size
    return task.replicas


def replicas(job: Job) -> int:
    """All pods of the job."""
    return sum(task.replicas for task in job.spec.tasks)


def pod_name(job: str, task: str, index: int) -> str:
    """The name of a job's pod."""
    return f"{job}-{task}-{index}"


def group_name(job: Job) -> str:
    """The name of a job's PodGroup."""
    return f"{job.metadata.name}-{job.metadata.uid}"


def queue_name(job: Job) -> str:
    """The job's queue; the default queue if it names none."""
    return job.spec.queue or DEFAULT_QUEUE


def partition_of(task: TaskSpec, index: int) -> int | None:
    """Index of the partition that a pod of the role belongs to; None: the role has none."""
    parts = task.partition_policy
    if parts is None or parts.partition_size <= 0:
        return None
    return index // parts.partition_size


def task_named(job: Job, name: str) -> TaskSpec | None:
    """The role of that name."""
    return next((task for task in job.spec.tasks if task.name == name), None)


def template_spec(task: TaskSpec) -> dict[str, Any]:
    """The spec in the role's template; {} when it has none, or something else than an object, with
    which the API server refuses the pods.
    """
    spec = task.template.get("spec")
    return spec if isinstance(spec, dict) else {}


def hosts(job: Job, task: TaskSpec) -> list[str]:
    """Host names of the role's pods, by index; only one if the template sets `hostname`."""
    given = template_spec(task)
    subdomain = given.get("subdomain") or job.metadata.name
    if given.get("hostname"):
        return [f"{given['hostname']}.{subdomain}"]
    return [
        f"{pod_name(job.metadata.name, task.name, index)}.{subdomain}"
        for index in range(task.replicas)
    ]
