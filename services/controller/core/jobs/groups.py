"""The PodGroup of a Job. Pure.

A role that waits for another one (dependsOn) has no pods yet, so the gang cannot ask for them: as
long as they are missing, the gang is what can be made now, while `minResources` asks for room for
all. (Volcano's gang asks for pods that wait for the gang: such a job never starts.)
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from services.controller.core.jobs.pods import Manifest
from services.controller.core.jobs.shape import group_name, template_spec
from services.controller.core.pod_usage import Usage, add, usage_of, written
from shared.contracts.annotations import TASK_SPEC, TRACE_ROOT
from shared.kinds.fields import NetworkTopology
from shared.kinds.job import Job, TaskSpec
from shared.kinds.metadata import controlled_by
from shared.kinds.podgroup import PodGroup
from shared.kube.objects import PodSpec
from shared.kube.quantities import QuantityError
from shared.kube.resources import PODGROUPS_VOLCANO

_PARTITION: Final = "volcano.sh/partition-id"
#: What follows the job when it changes; the queue cannot.
_FOLLOWS: Final = (
    "minMember",
    "minTaskMember",
    "minResources",
    "priorityClassName",
    "subGroupPolicy",
)
_MAPS: Final = frozenset({"minTaskMember", "minResources"})


def group_for(job: Job, waiting: frozenset[str], priorities: Mapping[str, int]) -> Manifest:
    """The manifest of the job's PodGroup.

    Args:
        job: The job, completed.
        waiting: Roles whose pods may not be made yet.
        priorities: Value of each priority class.
    """
    return {
        "apiVersion": PODGROUPS_VOLCANO.api_version,
        "kind": PODGROUPS_VOLCANO.kind,
        "metadata": {
            "name": group_name(job),
            "namespace": job.metadata.namespace,
            "labels": job.metadata.labels,
            "annotations": _annotations(job),
            "ownerReferences": [controlled_by(job).manifest],
        },
        "spec": _spec(job, waiting, priorities),
    }


def _annotations(job: Job) -> dict[str, str]:
    """The job's, and of its first group that it continues the job's trace. One that is made after a
    restart is a new gang with a trace of its own.
    """
    notes = {key: value for key, value in job.metadata.annotations.items() if key != TRACE_ROOT}
    return notes | ({} if job.status.version else {TRACE_ROOT: job.metadata.uid})


def change_of(group: PodGroup, wanted: Manifest) -> Manifest | None:
    """The merge patch that brings a group's spec up to date; None when it is."""
    have: dict[str, Any] = msgspec.to_builtins(group.spec)
    want = wanted["spec"]
    change: Manifest = {}
    for field in _FOLLOWS:
        old, new = have.get(field), want.get(field)
        if _plain(old) == _plain(new):
            continue
        # A merge patch merges maps: what is no longer in one has to be said.
        if field in _MAPS:
            change[field] = _map_change(old or {}, new or {})
        else:
            change[field] = new
    return {"spec": change} if change else None


def _map_change(old: Manifest, new: Manifest) -> Manifest:
    return {key: None for key in old if key not in new} | new


def _plain(value: Any) -> Any:
    """Absent, zero and empty are the same on the wire."""
    return value or None


def _spec(job: Job, waiting: frozenset[str], priorities: Mapping[str, int]) -> Manifest:
    minima = {task.name: task.min_available or 0 for task in job.spec.tasks}
    member = job.spec.min_available
    startable = sum(task.replicas for task in job.spec.tasks if task.name not in waiting)
    if member > startable:
        minima = {name: 0 if name in waiting else count for name, count in minima.items()}
        member = min(member, sum(minima.values()))
    spec: Manifest = {
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
    parts = [_sub_group(task) for task in job.spec.tasks if task.partition_policy is not None]
    if parts:
        spec["subGroupPolicy"] = parts
    return spec


def _topology(given: NetworkTopology) -> Manifest:
    topology: Manifest = {"mode": given.mode or "hard"}
    if given.highest_tier_allowed is not None:
        topology["highestTierAllowed"] = given.highest_tier_allowed
    elif given.highest_tier_name:
        topology["highestTierName"] = given.highest_tier_name
    return topology


def _sub_group(task: TaskSpec) -> Manifest:
    parts = task.partition_policy
    assert parts is not None, task.name
    policy: Manifest = {
        "name": task.name,
        "subGroupSize": parts.partition_size,
        "minSubGroups": parts.min_partitions,
        "labelSelector": {"matchLabels": {TASK_SPEC: task.name}},
        "matchLabelKeys": [_PARTITION],
    }
    if parts.network_topology is not None:
        policy["networkTopology"] = _topology(parts.network_topology)
    return policy


def min_resources(job: Job, priorities: Mapping[str, int]) -> dict[str, str]:
    """What the gang's pods count against a quota: roles of higher priority come first, each with
    its minimum, then whatever of the others is needed for minAvailable. {} when a template's
    amounts cannot be read: then the API server will refuse its pods and say why.
    """
    tasks = sorted(job.spec.tasks, key=lambda task: -_priority(job, task, priorities))
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


def _priority(job: Job, task: TaskSpec, priorities: Mapping[str, int]) -> int:
    name = template_spec(task).get("priorityClassName") or job.spec.priority_class_name
    return priorities.get(name, 0)
