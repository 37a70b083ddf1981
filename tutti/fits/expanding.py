"""From manifests to questions: the gangs that they declare, with the pods that would be made. Pure.

A kind of workload brings its pods' templates; a PodGroup takes the pods that name it. Templates are
read as the pods that they become, with limits as requests where those are absent, as the API server
would fill them in.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from shared.contracts.asking import FitRequest
from shared.dialects.discovery import dialects
from shared.dialects.pods import read_pod
from shared.dialects.protocol import ReadingContext
from shared.kube import objects as kube
from shared.kube.decoding import without_nulls
from shared.model.objects import Pod, PodGroup

Json = dict[str, Any]
#: Kinds whose controller makes `spec.replicas` pods of one template.
_REPLICATED: Final = frozenset({"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"})
#: A question with more pods does not fit into a message.
PODS_MAX: Final = 2_000


class BadManifest(ValueError):
    """A document cannot be expanded; the message says which and why."""


class _Part(NamedTuple):
    """Equal pods of a workload."""

    role: str
    replicas: int
    template: Json


def expand(
    documents: Iterable[Any], *, namespace: str, scheduler_names: Iterable[str]
) -> list[FitRequest]:
    """One question for each gang.

    Args:
        documents: Parsed manifests; lists are taken apart.
        namespace: For objects that name none.
        scheduler_names: Names that are ours.

    Raises:
        BadManifest: A document is no manifest, of a kind that is not known, or too large.
    """
    context = ReadingContext(scheduler_names=frozenset(scheduler_names))
    groups: dict[tuple[str, str], PodGroup] = {}
    members: dict[tuple[str, str], list[Pod]] = {}
    questions: list[FitRequest] = []
    for where, one in _flattened(documents):
        try:
            group, pods = _read(one, namespace, context)
        except (msgspec.ValidationError, ValueError) as error:
            raise BadManifest(f"{where}: {error}") from error
        if len(pods) > PODS_MAX:
            raise BadManifest(f"{where}: it makes {len(pods)} pods, at most {PODS_MAX} are asked")
        if group is not None and pods:
            questions.append(FitRequest(group=group, pods=tuple(pods)))
        elif group is not None:
            groups[group.namespace, group.name] = group
        for pod in pods if group is None else ():
            members.setdefault((pod.namespace, pod.group_name or pod.name), []).append(pod)
    for key in [*groups, *(key for key in members if key not in groups)]:
        pods = members.get(key, [])
        group = groups.get(key) or _group(*key, size=len(pods), queue=pods[0].queue)
        questions.append(FitRequest(group=group, pods=tuple(pods)))
    return questions


def _flattened(documents: Iterable[Any]) -> Iterator[tuple[str, Json]]:
    for number, document in enumerate(documents, 1):
        if document is None:
            continue
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            raise BadManifest(f"document {number}: must be an object with a kind")
        items = document.get("items") if document["kind"].endswith("List") else None
        for one in items if isinstance(items, list) else [document]:
            name = (one.get("metadata") or {}).get("name", "")
            yield f"document {number}, {one.get('kind', '')} {name}".rstrip(), without_nulls(one)


def _read(one: Json, namespace: str, context: ReadingContext) -> tuple[PodGroup | None, list[Pod]]:
    """A group, with the pods that come with it; or pods that go into others' groups."""
    kind = one["kind"]
    api_group = str(one.get("apiVersion", "")).rpartition("/")[0]
    metadata = one.setdefault("metadata", {})
    metadata.setdefault("namespace", namespace)
    if kind == "PodGroup":
        return _declared(one, api_group, context), []
    if kind == "Pod":
        return None, [_pod(one, context)]
    spec = one.get("spec") or {}
    parts = list(_parts(kind, api_group, spec))
    if not parts:
        raise ValueError(
            "its kind is not known: PodGroup, Pod, Job, JobSet, vcjob, the training operators' "
            f"kinds and {', '.join(sorted(_REPLICATED))} are"
        )
    total = sum(part.replicas for part in parts)
    policy = (spec.get("runPolicy") or {}).get("schedulingPolicy") or {}
    size = spec.get("minAvailable") or policy.get("minAvailable") or total
    group = _group(
        metadata["namespace"],
        metadata.get("name", "") or "unnamed",
        size=size,
        queue=spec.get("queue") or policy.get("queue") or "",
    )
    return group, [pod for part in parts for pod in _pods(group, part, context)]


def _parts(kind: str, api_group: str, spec: Json) -> Iterator[_Part]:
    if kind in _REPLICATED:
        yield _Part("", spec.get("replicas", 1), spec.get("template") or {})
    elif kind == "Job" and api_group == "batch":
        count = min(spec.get("parallelism", 1), spec.get("completions", spec.get("parallelism", 1)))
        yield _Part("", count, spec.get("template") or {})
    elif kind == "Job" and api_group == "batch.volcano.sh":
        for index, task in enumerate(spec.get("tasks") or ()):
            role = task.get("name") or f"default{index}"
            yield _Part(role, task.get("replicas", 1), task.get("template") or {})
    elif kind == "JobSet":
        for job in spec.get("replicatedJobs") or ():
            inner = (job.get("template") or {}).get("spec") or {}
            count = job.get("replicas", 1) * inner.get("parallelism", 1)
            yield _Part(job.get("name", ""), count, inner.get("template") or {})
    else:
        for key, roles in spec.items():
            if key.endswith("ReplicaSpecs") and isinstance(roles, dict):
                for role, replicas in roles.items():
                    count = replicas.get("replicas", 1)
                    yield _Part(role.lower(), count, replicas.get("template") or {})


def _declared(one: Json, api_group: str, context: ReadingContext) -> PodGroup:
    for dialect in dialects():
        for kind in dialect.KINDS:
            if kind.resource.kind == "PodGroup" and kind.resource.group == api_group:
                found = kind.read(msgspec.convert(one, kind.decoded), context)
                if isinstance(found, PodGroup):
                    if found.errors:
                        raise ValueError("; ".join(found.errors))
                    return found
    raise ValueError(f"no dialect reads PodGroups of {api_group or 'the core group'}")


def _pods(group: PodGroup, part: _Part, context: ReadingContext) -> list[Pod]:
    found = _pod(part.template, context)
    return [
        msgspec.structs.replace(
            found,
            uid=f"{group.name}/{part.role}/{index}",
            namespace=group.namespace,
            name=f"{group.name}-{part.role or 'pod'}-{index}",
            role=part.role or found.role,
            index=index,
            ours=True,
            group_name=group.name,
            queue=group.queue,
        )
        for index in range(part.replicas)
    ]


def _pod(one: Json, context: ReadingContext) -> Pod:
    spec = one.get("spec") or {}
    if not spec.get("containers"):
        raise ValueError("its pods have no containers")
    for container in (*spec["containers"], *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        if resources.get("limits"):
            requests = {**resources["limits"], **(resources.get("requests") or {})}
            container["resources"] = {**resources, "requests": requests}
    found = read_pod(msgspec.convert(one, kube.Pod), context)
    return msgspec.structs.replace(found, uid=found.uid or found.name, ours=True)


def _group(namespace: str, name: str, *, size: int, queue: str) -> PodGroup:
    return PodGroup(
        uid=f"asked/{namespace}/{name}",
        dialect="",
        namespace=namespace,
        name=name,
        resource_version=0,
        min_member=size,
        queue=queue,
    )
