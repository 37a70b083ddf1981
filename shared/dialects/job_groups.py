"""Builds the spec of a Volcano Job's PodGroup: for the Job controller, which creates the group, and
for requests about a Job that does not have one yet.

A role that waits for another one (dependsOn) has no pods yet. Until its pods may be created, its
minima are left out, and the job's minimum is lowered to the number of pods that can be created now.
`minResources` covers the whole minimum. (Volcano's PodGroup requires pods that wait for the gang:
such a job never starts.)
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from shared.contracts.annotations import TASK_SPEC
from shared.dialects.protocol import JsonObject
from shared.kinds.fields import NetworkTopology
from shared.kinds.job import Job, PartitionPolicy, TaskSpec
from shared.kinds.job_shape import template_spec
from shared.kube.objects import PodSpec
from shared.kube.pod_usage import Usage, add, usage_of, written
from shared.kube.quantities import QuantityError

#: Label of a pod: the index of its partition in its role.
PARTITION: Final = "volcano.sh/partition-id"


def group_spec(job: Job, waiting: frozenset[str], priorities: Mapping[str, int]) -> JsonObject:
    """The spec of the job's PodGroup.

    Args:
        job: The job, with defaults filled in.
        waiting: Roles whose pods may not be created yet.
        priorities: Value of each priority class.
    """
    minima = {
        task.name: 0 if task.name in waiting else task.min_available or 0 for task in job.spec.tasks
    }
    startable = sum(task.replicas for task in job.spec.tasks if task.name not in waiting)
    member = min(job.spec.min_available, startable)
    spec: JsonObject = {
        "minMember": member,
        "minTaskMember": minima,
        "queue": job.spec.queue,
    }
    if job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name
    resources = min_resources(job, priorities)
    if resources:
        spec["minResources"] = resources
    if job.spec.network_topology is not None:
        spec["networkTopology"] = _topology(job.spec.network_topology)
    parts = [
        _sub_group(task, task.partition_policy, waits=task.name in waiting)
        for task in job.spec.tasks
        if task.partition_policy is not None
    ]
    if parts:
        spec["subGroupPolicy"] = parts
    return spec


def _topology(given: NetworkTopology) -> JsonObject:
    topology: JsonObject = {"mode": given.mode or "hard"}
    if given.highest_tier_allowed is not None:
        topology["highestTierAllowed"] = given.highest_tier_allowed
    elif given.highest_tier_name:
        topology["highestTierName"] = given.highest_tier_name
    return topology


def _sub_group(task: TaskSpec, parts: PartitionPolicy, *, waits: bool) -> JsonObject:
    policy: JsonObject = {
        "name": task.name,
        "subGroupSize": parts.partition_size,
        "minSubGroups": 0 if waits else parts.min_partitions,
        "labelSelector": {"matchLabels": {TASK_SPEC: task.name}},
        "matchLabelKeys": [PARTITION],
    }
    if parts.network_topology is not None:
        policy["networkTopology"] = _topology(parts.network_topology)
    return policy


def min_resources(job: Job, priorities: Mapping[str, int]) -> dict[str, str]:
    """Quota usage of the pods that the gang needs: the minimum of each role, by falling priority,
    then further pods up to minAvailable. {} if a template's amounts cannot be read: the API server
    will refuse its pods with the reason.

    Args:
        job: The job, with defaults filled in.
        priorities: Value of each priority class.
    """
    tasks = sorted(job.spec.tasks, key=lambda task: -priority_of(job, task, priorities))
    minima = {task.name: task.min_available or 0 for task in tasks}
    left = job.spec.min_available
    if left < sum(minima.values()):
        minima = dict.fromkeys(minima, 0)
    counts: dict[str, int] = {}
    for name, count in minima.items():
        counts[name] = count
        left -= count
    for task in tasks:
        more = max(0, min(left, task.replicas - counts[task.name]))
        counts[task.name] += more
        left -= more
    total: Usage = {}
    try:
        for task in tasks:
            spec = msgspec.convert(template_spec(task), PodSpec, strict=False)
            if counts[task.name]:
                add(total, usage_of(spec), counts[task.name])
    except (QuantityError, msgspec.ValidationError):
        return {}
    return written(total)


def priority_of(job: Job, task: TaskSpec, priorities: Mapping[str, int]) -> int:
    """Value of the priority class of a role's pods, else of its job; 0 without a class."""
    name = template_spec(task).get("priorityClassName") or job.spec.priority_class_name
    return priorities.get(name, 0) if isinstance(name, str) else 0
