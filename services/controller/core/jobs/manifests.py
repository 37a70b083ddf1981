"""Manifests of a Job's pods, of the claims that they share, and of its PodGroup. Pure."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from services.controller.core.jobs.step import JOB_NAME, JOB_VERSION
from shared.contracts.annotations import GROUP_NAME, RUN_LIMIT, TASK_INDEX, TASK_SPEC, TRACE_ROOT
from shared.dialects.job_groups import PARTITION, group_spec
from shared.job_plugins.discovery import registered_plugins
from shared.job_plugins.plugin import JobPlugin, Manifest
from shared.kinds.job import Job, TaskSpec, VolumeSpec
from shared.kinds.job_shape import group_name, partition_of, pod_name
from shared.kinds.metadata import controlled_by
from shared.kinds.podgroup import PodGroup
from shared.kube.resources import PODGROUPS_VOLCANO

QUEUE_NAME: Final = "volcano.sh/queue-name"
JOB_NAMESPACE: Final = "volcano.sh/job-namespace"
_RETRY_COUNT: Final = "volcano.sh/job-retry-count"
_TEMPLATE_UID: Final = "volcano.sh/template-uid"
_NUMA: Final = "volcano.sh/numa-topology-policy"
#: Plugins that Volcano does not list.
_UNLISTED: Final = frozenset({"hcclrank"})
_BUDGETS: Final = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")
_PASSED_LABELS: Final = ("volcano.sh/preemptable", "volcano.sh/cooldown-time")
_PASSED_ANNOTATIONS: Final = (*_PASSED_LABELS, "volcano.sh/revocable-zone")
#: Fields that are updated when the job changes; the queue cannot change.
_FOLLOWS: Final = (
    "minMember",
    "minTaskMember",
    "minResources",
    "priorityClassName",
    "subGroupPolicy",
)
_MAPS: Final = frozenset({"minTaskMember", "minResources"})


def pod_for(job: Job, task: TaskSpec, index: int, plugins: list[JobPlugin]) -> Manifest:
    """The pod of that task and index, with the job's present version.

    Raises:
        PluginError: A plugin cannot change the pod; the message has the reason.
    """
    # A copy through JSON takes a seventh of deepcopy's time.
    template: Manifest = msgspec.json.decode(msgspec.json.encode(task.template))
    spec: Manifest = template.get("spec") or {}
    given: Manifest = template.get("metadata") or {}
    name, part = job.metadata.name, partition_of(task, index)
    spec.setdefault("schedulerName", job.spec.scheduler_name)
    if job.spec.priority_class_name:
        spec.setdefault("priorityClassName", job.spec.priority_class_name)
    for volume in job.spec.volumes:
        _mount(job, volume, spec)
    shared = {
        TASK_INDEX: str(index),
        TASK_SPEC: task.name,
        JOB_NAME: name,
        QUEUE_NAME: job.spec.queue,
    }
    pod: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(name, task.name, index),
            "namespace": job.metadata.namespace,
            "labels": {
                **(given.get("labels") or {}),
                **shared,
                JOB_NAMESPACE: job.metadata.namespace,
                **_passed(job.metadata.labels, _PASSED_LABELS),
                **({} if part is None else {PARTITION: str(part)}),
            },
            "annotations": {
                **(given.get("annotations") or {}),
                **shared,
                GROUP_NAME: group_name(job),
                JOB_VERSION: str(job.status.version),
                _RETRY_COUNT: str(job.status.retry_count),
                _TEMPLATE_UID: f"{name}-{task.name}",
                **({_NUMA: task.topology_policy} if task.topology_policy else {}),
                **_passed(job.metadata.annotations, _PASSED_ANNOTATIONS),
                **_budget(job.metadata.annotations),
            },
            "ownerReferences": [controlled_by(job).manifest],
        },
        "spec": spec,
    }
    if given.get("finalizers"):
        pod["metadata"]["finalizers"] = given["finalizers"]
    for plugin in plugins:
        plugin.change_pod(pod, task, index)
    return pod


def claim_name(job: Job, volume: VolumeSpec) -> str:
    """The name of a volume's claim: the given one, or a unique one made from the job's UID."""
    if volume.volume_claim_name:
        return volume.volume_claim_name
    return f"{job.metadata.name}-pvc-{_twelve(job.metadata.uid, volume.mount_path)}"


def claim_for(job: Job, volume: VolumeSpec) -> Manifest:
    """The manifest of the claim for a volume with a template."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": claim_name(job, volume),
            "namespace": job.metadata.namespace,
            "ownerReferences": [controlled_by(job).manifest],
        },
        "spec": volume.volume_claim or {},
    }


def controlled_resources(job: Job) -> dict[str, str]:
    """The objects that the job's status lists as created for it."""
    known = registered_plugins()
    made = {
        f"plugin-{name}": name
        for name in sorted(job.spec.plugins)
        if name in known and name not in _UNLISTED
    }
    for volume in job.spec.volumes:
        if volume.volume_claim is not None:
            claim = claim_name(job, volume)
            made[f"volume-pvc-{claim}"] = claim
    return made


def _mount(job: Job, volume: VolumeSpec, spec: Manifest) -> None:
    """Add the volume to the pod, once per claim, and its mount to each container."""
    claim = claim_name(job, volume)
    name = f"{job.metadata.name}-{_twelve(job.metadata.uid, claim)}"
    volumes = spec.setdefault("volumes", [])
    if all(known.get("name") != name for known in volumes):
        volumes.append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
    for container in spec.get("containers") or ():
        mounts = container.setdefault("volumeMounts", [])
        mounts.append({"name": name, "mountPath": volume.mount_path})


def _twelve(*parts: str) -> str:
    """Twelve characters, always the same for equal parts."""
    return hashlib.sha256("/".join(parts).encode()).hexdigest()[:12]


def _passed(given: dict[str, str], keys: tuple[str, ...]) -> dict[str, str]:
    return {key: given[key] for key in keys if key in given}


def _budget(given: dict[str, str]) -> dict[str, str]:
    """The first of the two annotations, since a pod may have only one."""
    for key in _BUDGETS:
        if key in given:
            return {key: given[key]}
    return {}


def group_for(job: Job, waiting: frozenset[str], priorities: Mapping[str, int]) -> Manifest:
    """The manifest of the PodGroup of a job (with its defaults). Pods of `waiting` tasks may not be
    created yet; `priorities` are the values of PriorityClasses.
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
        "spec": group_spec(job, waiting, priorities),
    }


def _annotations(job: Job) -> dict[str, str]:
    """The job's annotations. The first group continues the job's trace; a group created after a
    restart is a new gang with a trace of its own.
    """
    own = {key: value for key, value in job.metadata.annotations.items() if key != TRACE_ROOT}
    return own | ({} if job.status.version else {TRACE_ROOT: job.metadata.uid})


def change_of(group: PodGroup, wanted: Manifest) -> Manifest | None:
    """The merge patch that updates a group's spec, and its run limit if the job states one; None
    when they are current.
    """
    have: dict[str, Any] = msgspec.to_builtins(group.spec)
    want = wanted["spec"]
    change: Manifest = {}
    for field in _FOLLOWS:
        old, new = have.get(field), want.get(field)
        if (old or None) == (new or None):  # absent, zero and empty are the same on the wire
            continue
        # A merge patch merges maps: removed members are set to null.
        if field in _MAPS:
            change[field] = dict.fromkeys(old or {}) | (new or {})
        else:
            change[field] = new
    patch: Manifest = {"spec": change} if change else {}
    limit = wanted["metadata"]["annotations"].get(RUN_LIMIT)
    if limit is not None and limit != group.metadata.annotations.get(RUN_LIMIT):
        patch["metadata"] = {"annotations": {RUN_LIMIT: limit}}
    return patch or None
