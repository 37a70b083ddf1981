"""The gang that a workload declares before its pods exist: for requests whether it would fit.

A workload contains its pods' templates. They are read as the pods that its controller would create,
with limits as requests where those are absent, as the API server fills them in. A Volcano Job
declares a group of its own; for other kinds all pods together are the gang, unless an annotation
gives a smaller number.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, cast

import msgspec

from shared.contracts import annotations
from shared.contracts.questions import FIT_PODS_MAX, FitRequest
from shared.dialects.discovery import readers
from shared.dialects.job_groups import PARTITION, group_spec
from shared.dialects.pods import read_pod
from shared.dialects.protocol import JsonObject, ReadingContext
from shared.kinds.job import Job
from shared.kinds.job_shape import completed
from shared.kinds.podgroup import PodGroup as StoredPodGroup
from shared.kube import objects as kube
from shared.kube.decoding import without_nulls
from shared.kube.pod_usage import usage_of
from shared.kube.quantities import QuantityError
from shared.kube.requests import extended_requests
from shared.kube.resources import JOBS_BATCH, JOBS_VOLCANO, PODGROUPS_VOLCANO
from shared.model.gang_keys import has_objects
from shared.model.objects import Pod, PodGroup, Resources

#: Kinds whose controller creates `spec.replicas` pods of one template.
REPLICATED: Final = frozenset({"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"})


class Part(NamedTuple):
    """Equal pods of a workload."""

    role: str
    replicas: int
    #: How many of them the gang needs.
    least: int
    template: JsonObject
    #: Pods of each sub-gang; 0: it has no sub-gangs.
    partition_size: int = 0
    #: `networkTopology` of each sub-gang.
    topology: object = None


def declared(workload: JsonObject, *, uid: str, context: ReadingContext) -> FitRequest | None:
    """The gang of a workload, as a request whether it would fit; None for an unknown kind.

    Args:
        workload: The object, with its namespace and a name.
        uid: UID for the gang's group.
        context: How pods are read.

    Raises:
        ValueError: Its pods cannot be read, or are too many; the message has the reason.
            (`msgspec.ValidationError` is a ValueError.)
    """
    kind = str(workload.get("kind", ""))
    api_group = str(workload.get("apiVersion", "")).rpartition("/")[0]
    spec = _section(workload, "spec")
    parts = [*parts_of(kind, api_group, spec)]
    if not parts:
        return None
    total = sum(part.replicas for part in parts)
    if total > FIT_PODS_MAX:
        raise ValueError(f"it creates {total} pods, at most {FIT_PODS_MAX} are supported")
    is_volcano = (kind, api_group) == (JOBS_VOLCANO.kind, JOBS_VOLCANO.group)
    body = _job_group(workload) if is_volcano else _group(workload, spec, parts)
    metadata = {
        "name": workload["metadata"].get("name") or "unnamed",
        "namespace": workload["metadata"]["namespace"],
        "uid": uid,
        "annotations": workload["metadata"].get("annotations"),
    }
    stored = msgspec.convert(without_nulls({"metadata": metadata, "spec": body}), StoredPodGroup)
    (groups,) = readers()[PODGROUPS_VOLCANO]
    group = cast("PodGroup", groups.neutral_object(stored, context))
    return FitRequest(
        group=group,
        pods=tuple(_pods(group, parts, context)),
        limits=_least_limits(parts, group.min_member),
    )


def named_members(
    workload: JsonObject, request: FitRequest, context: ReadingContext
) -> tuple[Pod, ...]:
    """The pods of a workload as members of the group object that its template names; (): it names
    none, or its controller names another one.

    Args:
        workload: The workload.
        request: What `declared` returns for it.
        context: How pods are read.
    """
    kind = str(workload["kind"]), str(workload.get("apiVersion", "")).rpartition("/")[0]
    if kind[0] not in REPLICATED and kind != (JOBS_BATCH.kind, JOBS_BATCH.group):
        return ()
    template = _section(_section(workload, "spec"), "template")
    metadata = {**_section(template, "metadata"), "namespace": request.group.namespace}
    read = template_pod({**template, "metadata": metadata}, context)
    if not read.group_name or not has_objects(read.group_scope):
        return ()
    return tuple(
        msgspec.structs.replace(
            pod,
            uid=f"{kind[0]}/{pod.uid}",
            group_name=read.group_name,
            group_scope=read.group_scope,
        )
        for pod in request.pods
    )


def template_pod(manifest: JsonObject, context: ReadingContext) -> Pod:
    """A pod, or a template of pods, read as if it named one of our schedulers.

    Raises:
        ValueError: It is no pod.
    """
    pod = msgspec.convert(without_nulls(manifest), kube.Pod)
    spec = pod.spec
    if not spec.containers:
        raise ValueError("its pods have no containers")
    spec = msgspec.structs.replace(
        spec,
        containers=tuple(map(_filled, spec.containers)),
        init_containers=tuple(map(_filled, spec.init_containers)),
    )
    read = read_pod(msgspec.structs.replace(pod, spec=spec), context)
    return msgspec.structs.replace(
        read, uid=read.uid or read.name, ours=True, extended=extended_requests(spec)
    )


def _filled(container: kube.Container) -> kube.Container:
    """The container with its limits as requests where it has no request."""
    resources = container.resources
    requests = {**resources.limits, **resources.requests}
    return msgspec.structs.replace(
        container, resources=msgspec.structs.replace(resources, requests=requests)
    )


def parts_of(kind: str, api_group: str, spec: JsonObject) -> Iterator[Part]:
    """The pods that a workload's controller would create; none for an unknown kind.

    Raises:
        ValueError: A field of the spec has the wrong type; the message names it.
    """
    if kind in REPLICATED:
        yield _whole("", _number(spec, "replicas", 1), spec)
    elif (kind, api_group) == (JOBS_BATCH.kind, JOBS_BATCH.group):
        parallel = _number(spec, "parallelism", 1)
        yield _whole("", min(parallel, _number(spec, "completions", parallel)), spec)
    elif (kind, api_group) == (JOBS_VOLCANO.kind, JOBS_VOLCANO.group):
        for index, task in enumerate(_items(spec, "tasks")):
            yield _task(task, f"default{index}")
    elif kind == "JobSet":
        for job in _items(spec, "replicatedJobs"):
            inner = _section(_section(job, "template"), "spec")
            count = _number(job, "replicas", 1) * _number(inner, "parallelism", 1)
            yield _whole(_text(job, "name"), count, inner)
    else:
        for key in spec:
            if key.endswith("ReplicaSpecs"):
                roles = _section(spec, key)
                for role in roles:
                    replicas = _section(roles, role)
                    yield _whole(role.lower(), _number(replicas, "replicas", 1), replicas)


def _whole(role: str, replicas: int, holder: JsonObject) -> Part:
    """A part all of whose pods the gang needs, with the template in `holder`."""
    return Part(role, replicas, replicas, _section(holder, "template"))


def _task(task: JsonObject, default_name: str) -> Part:
    replicas = _number(task, "replicas", 1)
    policy = _section(task, "partitionPolicy")
    size = _number(policy, "partitionSize", 0)
    least = _number(policy, "minPartitions", 0) * size or replicas
    return Part(
        _text(task, "name") or default_name,
        replicas,
        _number(task, "minAvailable", least),
        _section(task, "template"),
        size,
        policy.get("networkTopology"),
    )


def _number(holder: JsonObject, key: str, otherwise: int) -> int:
    number = holder.get(key)
    if number is None:
        return otherwise
    if not isinstance(number, int) or number < 0:
        raise ValueError(f"{key}: must be a number, 0 or more")
    return number


def _text(holder: JsonObject, key: str) -> str:
    text = holder.get(key)
    return text if isinstance(text, str) else ""


def _section(holder: JsonObject, key: str) -> JsonObject:
    section: object = holder.get(key)
    if section is None:
        return {}
    if not isinstance(section, dict):
        raise ValueError(f"{key}: must be an object")  # noqa: TRY004 (bad input, not a bug)
    return cast("JsonObject", section)


def _items(holder: JsonObject, key: str) -> list[JsonObject]:
    value: object = holder.get(key) or []
    items = cast("list[object]", value) if isinstance(value, list) else [None]
    if not all(isinstance(item, dict) for item in items):
        raise ValueError(f"{key}: must be a list of objects")
    return cast("list[JsonObject]", items)


def _job_group(workload: JsonObject) -> JsonObject:
    """The spec of the PodGroup that the controller would create for a Volcano Job."""
    job = msgspec.convert(without_nulls({"spec": workload.get("spec")}), Job)
    return group_spec(completed(job), frozenset(), {})


def _group(workload: JsonObject, spec: JsonObject, parts: list[Part]) -> JsonObject:
    policy = _section(_section(spec, "runPolicy"), "schedulingPolicy")
    of_pods = _section(_section(parts[0].template, "metadata"), "annotations")
    of_object = _section(workload["metadata"], "annotations")
    given = {**of_pods, **of_object}
    # As in Volcano, a Deployment and the like name a queue in the template only.
    named = of_pods if workload.get("kind") in REPLICATED else {**of_object, **of_pods}
    size_text = _text(given, annotations.OWNER_MIN_MEMBER) or _text(
        given, annotations.GROUP_MIN_MEMBER
    )
    size = sum(part.replicas for part in parts)
    if size_text.isascii() and size_text.isdigit() and len(size_text) < 10:
        size = int(size_text)
    return {
        "minMember": _number(policy, "minAvailable", size),
        "queue": policy.get("queue") or named.get(annotations.QUEUE_NAME),
        "priorityClassName": policy.get("priorityClass"),
    }


def _pods(group: PodGroup, parts: list[Part], context: ReadingContext) -> Iterator[Pod]:
    for part in parts:
        read: Pod | None = None
        for index in range(part.replicas):
            # The pods of one sub-gang, or of a part without sub-gangs, are equal.
            if read is None or (part.partition_size and index % part.partition_size == 0):
                read = template_pod(_as_made(group, part, index), context)
            yield msgspec.structs.replace(
                read,
                uid=f"{group.uid}/{part.role}/{index}",
                name=f"{group.name}-{part.role or 'pod'}-{index}",
                role=part.role or read.role,
                index=index,
                group_name=group.name,
                group_scope=group.scope,
                queue=group.queue,
            )


def _least_limits(parts: list[Part], members: int) -> Resources:
    """The smallest sum of limits that `members` of the pods can have, under the names of quotas."""
    limited = [(_limits(part.template), part.replicas) for part in parts]
    sums: list[tuple[str, int]] = []
    for name in sorted({name for limits, _ in limited for name in limits}):
        left, total = members, 0
        for amount, replicas in sorted((limits.get(name, 0), count) for limits, count in limited):
            total += amount * min(left, replicas)
            left -= min(left, replicas)
        sums.append((name, total))
    return tuple(sums)


def _limits(template: JsonObject) -> dict[str, int]:
    """Usage of one pod in quotas of limits; {} if its amounts cannot be read."""
    spec = msgspec.convert(without_nulls(template.get("spec") or {}), kube.PodSpec)
    try:
        usage = usage_of(spec)
    except QuantityError:
        return {}
    return {name: amount for name, amount in usage.items() if name.startswith("limits.")}


def _as_made(group: PodGroup, part: Part, index: int) -> JsonObject:
    """The template with the labels that its controller adds."""
    metadata = _section(part.template, "metadata")
    labels = dict(_section(metadata, "labels"))
    if part.role:
        labels[annotations.TASK_SPEC] = part.role
    if part.partition_size:
        labels[PARTITION] = str(index // part.partition_size)
    return {
        **part.template,
        "metadata": {**metadata, "namespace": group.namespace, "labels": labels},
    }
