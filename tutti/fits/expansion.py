"""From manifests to questions: the gangs that they declare, with the pods that would be created.
Pure.

A workload has the templates of its pods (`shared.dialects.workloads`); a PodGroup has the pods that
name it.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from shared.contracts.questions import FitRequest
from shared.dialects.discovery import dialects
from shared.dialects.protocol import ReadingContext
from shared.dialects.workloads import REPLICATED, declared, template_pod
from shared.kube.decoding import without_nulls
from shared.model.gang_keys import GangKey, key_of_group
from shared.model.minimums import group_declared_by
from shared.model.objects import Pod, PodGroup
from tutti.api.failures import Refusal

Json = dict[str, Any]


def expand(
    documents: Iterable[Any], *, namespace: str, scheduler_names: Iterable[str]
) -> list[FitRequest]:
    """One question for each gang of the parsed manifests; `namespace` is for objects without one.

    Raises:
        Refusal: A document is not a manifest, is of an unknown kind, or is too large.
    """
    context = ReadingContext(scheduler_names=frozenset(scheduler_names))
    groups: dict[GangKey, PodGroup] = {}
    members: dict[GangKey, list[Pod]] = {}
    questions: list[FitRequest] = []
    for where, one in flattened(documents):
        try:
            found = _read(one, namespace, context)
        except (msgspec.ValidationError, ValueError) as error:
            raise Refusal(f"{where}: {error}") from error
        match found:
            case FitRequest() if found.pods:
                questions.append(found)
            case FitRequest():
                groups[key_of_group(found.group)] = found.group
            case Pod():
                key = found.group_scope, found.namespace, found.group_name or found.name
                members.setdefault(key, []).append(found)
    for key in [*groups, *(key for key in members if key not in groups)]:
        pods = members.get(key, [])
        group = groups.get(key) or _of_pods(key, pods)
        questions.append(FitRequest(group=group, pods=tuple(pods)))
    return questions


def flattened(documents: Iterable[Any]) -> Iterator[tuple[str, Json]]:
    """Each object with its place in the file, lists expanded. Raises Refusal."""
    for number, document in enumerate(documents, 1):
        if document is None:
            continue
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            raise Refusal(f"document {number}: must be an object with a kind")
        items = document.get("items") if document["kind"].endswith("List") else None
        for one in items if isinstance(items, list) else [document]:
            metadata = one.get("metadata")
            name = metadata.get("name", "") if isinstance(metadata, dict) else ""
            yield f"document {number}, {one.get('kind', '')} {name}".rstrip(), without_nulls(one)


def _read(one: Json, namespace: str, context: ReadingContext) -> FitRequest | Pod:
    """A group with its pods, or a pod of a group that another document declares."""
    kind = one["kind"]
    api_group = str(one.get("apiVersion", "")).rpartition("/")[0]
    metadata = one.setdefault("metadata", {})
    metadata.setdefault("namespace", namespace)
    if kind == "PodGroup":
        return FitRequest(group=_declared(one, api_group, context))
    if kind == "Pod":
        return template_pod(one, context)
    name = metadata.get("name", "") or "unnamed"
    found = declared(one, uid=f"asked/{metadata['namespace']}/{name}", context=context)
    if found is None:
        raise ValueError(
            "its kind is not known: PodGroup, Pod, Job, JobSet, vcjob, the training operators' "
            f"kinds and {', '.join(sorted(REPLICATED))} are"
        )
    return found


def _declared(one: Json, api_group: str, context: ReadingContext) -> PodGroup:
    for dialect in dialects():
        for kind in dialect.kinds:
            if kind.resource.kind == "PodGroup" and kind.resource.group == api_group:
                found = kind.read(msgspec.convert(one, kind.decoded), context)
                if isinstance(found, PodGroup):
                    if found.errors:
                        raise ValueError("; ".join(found.errors))
                    return found
    raise ValueError(f"no dialect reads PodGroups of {api_group or 'the core group'}")


def _of_pods(key: GangKey, pods: list[Pod]) -> PodGroup:
    """The group of pods without an object: as they declare it, else of all of them."""
    scope, namespace, name = key
    uid = f"asked/{namespace}/{name}"
    declared = group_declared_by(pods)
    if declared is not None:
        return msgspec.structs.replace(declared, uid=uid)
    return PodGroup(
        uid=uid,
        dialect="",
        namespace=namespace,
        name=name,
        scope=scope,
        resource_version=0,
        min_member=len(pods),
        queue=pods[0].queue,
    )
