"""From manifests to questions: the gangs that they declare, with the pods that would be created.
Pure.

A workload has the templates of its pods (`shared.dialects.workloads`); a PodGroup has the pods that
name it, those of workloads too; a tree of groups (`shared.model.group_trees`) is one gang with the
pods of all its groups.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple, cast

import msgspec

from shared.contracts.questions import FIT_PODS_MAX, FitRequest
from shared.dialects.discovery import dialects, kinds
from shared.dialects.protocol import JsonObject, ReadingContext
from shared.dialects.workloads import declared, named_members, template_pod
from shared.kube.decoding import without_nulls
from shared.model.gang_keys import GangKey, key_of_group
from shared.model.group_trees import GroupTrees, is_in_tree
from shared.model.minimums import group_declared_by
from shared.model.objects import Pod, PodGroup

#: Pods of all manifests together: a short text can ask for millions.
PODS_IN_ALL_MAX: Final = 20_000


class InvalidManifest(ValueError):
    """Manifests declare no gangs that could be asked about; the message names the document."""


class Expanded(NamedTuple):
    """The gangs of manifests."""

    #: In the order in which the manifests name the gangs first.
    questions: list[FitRequest]
    #: Places of the objects that declare neither a gang nor pods, such as ConfigMaps, or whose kind
    #: is not known.
    passed_over: list[str]


def expand(
    placed: Iterable[tuple[str, JsonObject]], *, namespace: str, scheduler_names: Iterable[str]
) -> Expanded:
    """One question for each gang of the objects, as `flattened` returns them; `namespace` is for
    objects without one.

    Raises:
        InvalidManifest: An object cannot be read, or is too large; or a tree of groups is invalid,
            or not complete.
    """
    context = ReadingContext(scheduler_names=frozenset(scheduler_names))
    groups: dict[GangKey, PodGroup] = {}
    trees = GroupTrees()
    members: dict[GangKey, list[Pod]] = {}
    passed_over: list[str] = []
    #: Number of the first object of each gang.
    first: dict[GangKey, int] = {}
    numbered: list[tuple[int, FitRequest]] = []
    for number, (where, reading) in enumerate(_readings(placed, namespace, context)):
        match reading:
            case None:
                passed_over.append(where)
            case FitRequest() if reading.pods:
                numbered.append((number, reading))
            case FitRequest():
                key = key_of_group(reading.group)
                groups[key] = reading.group
                first.setdefault(key, number)
                if is_in_tree(reading.group):
                    trees.put(reading.group)
            case tuple():
                pod = reading[0]
                key = pod.group_scope, pod.namespace, pod.group_name or pod.name
                members.setdefault(key, []).extend(reading)
                first.setdefault(key, number)
    of_gangs: dict[GangKey, list[Pod]] = {}
    beginnings: dict[GangKey, int] = {}
    for key, number in first.items():
        gang = trees.gang_of(key)
        of_gangs.setdefault(gang, []).extend(members.get(key, ()))
        beginnings[gang] = min(number, beginnings.get(gang, number))
    for key, pods in of_gangs.items():
        if len(pods) > FIT_PODS_MAX:
            raise InvalidManifest(
                f"{key[1]}/{key[2]}: it has {len(pods)} pods, at most {FIT_PODS_MAX} are supported"
            )
        group = _of_tree(key, trees) or groups.get(key) or _of_pods(key, pods)
        numbered.append((beginnings[key], FitRequest(group=group, pods=tuple(pods))))
    numbered.sort(key=lambda pair: pair[0])
    return Expanded([question for _, question in numbered], passed_over)


def flattened(documents: Iterable[Any]) -> Iterator[tuple[str, JsonObject]]:
    """Each object with its place in the file, lists expanded. Raises InvalidManifest."""
    for number, parsed in enumerate(documents, 1):
        if parsed is None:
            continue
        document = _with_kind(parsed)
        if document is None:
            raise InvalidManifest(f"document {number}: must be an object with a kind")
        items: object = document.get("items") if document["kind"].endswith("List") else None
        for item in cast("list[object]", items) if isinstance(items, list) else [document]:
            listed = _with_kind(item)
            if listed is None:
                raise InvalidManifest(f"document {number}: items: must be objects with a kind")
            metadata: object = listed.get("metadata")
            named = cast("JsonObject", metadata) if isinstance(metadata, dict) else {}
            where = f"document {number}, {listed['kind']} {named.get('name', '')}"
            yield where.rstrip(), without_nulls(listed)


def _with_kind(value: object) -> JsonObject | None:
    """A value that is an object with a kind; None: it is not."""
    if not isinstance(value, dict):
        return None
    candidate = cast("JsonObject", value)
    return candidate if isinstance(candidate.get("kind"), str) else None


def _readings(
    placed: Iterable[tuple[str, JsonObject]], namespace: str, context: ReadingContext
) -> Iterator[tuple[str, FitRequest | tuple[Pod, ...] | None]]:
    """The place of each object, and what it declares. Raises InvalidManifest."""
    total = 0
    for where, manifest in placed:
        try:
            reading = _read(manifest, namespace, context)
        except ValueError as error:  # msgspec.ValidationError is one
            raise InvalidManifest(f"{where}: {error}") from error
        except OverflowError:
            # Of the encoding of its pods: the API server takes no such number.
            raise InvalidManifest(f"{where}: a number must fit in 64 bits") from None
        total += len(reading.pods if isinstance(reading, FitRequest) else reading or ())
        if total > PODS_IN_ALL_MAX:
            raise InvalidManifest(f"{where}: all together have more than {PODS_IN_ALL_MAX} pods")
        yield where, reading


def _read(
    manifest: JsonObject, namespace: str, context: ReadingContext
) -> FitRequest | tuple[Pod, ...] | None:
    """A group with its pods, or pods of a group that another document declares; None: neither."""
    kind = manifest["kind"]
    api_group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
    given: object = manifest.get("metadata", {})
    if not isinstance(given, dict):
        raise ValueError("metadata: must be an object")  # noqa: TRY004 - as other invalid fields
    metadata = {**cast("JsonObject", given)}
    metadata["namespace"] = metadata.get("namespace") or namespace
    whole = {**manifest, "metadata": metadata}
    if kind in _group_kinds():
        metadata.setdefault("uid", f"asked/{kind}/{metadata['namespace']}/{metadata.get('name')}")
        return FitRequest(group=_declared(whole, api_group, context))
    if kind == "Pod":
        return (template_pod(whole, context),)
    name = metadata.get("name", "") or "unnamed"
    request = declared(whole, uid=f"asked/{metadata['namespace']}/{name}", context=context)
    return request and (named_members(whole, request, context) or request)


def _declared(manifest: JsonObject, api_group: str, context: ReadingContext) -> PodGroup:
    for dialect in dialects():
        for kind in dialect.kinds:
            if (kind.resource.kind, kind.resource.group) == (manifest["kind"], api_group):
                group = kind.neutral_object(msgspec.convert(manifest, kind.decoded), context)
                if isinstance(group, PodGroup):
                    if group.errors:
                        raise ValueError("; ".join(group.errors))
                    return group
    raise ValueError(f"no dialect reads {manifest['kind']}s of {api_group or 'the core group'}")


@cache
def _group_kinds() -> frozenset[str]:
    """The kinds of group objects that pods or groups name."""
    return frozenset(
        kind.resource.kind
        for kind in kinds()
        if kind.neutral == "podgroup" and not kind.claims_by_owner
    )


def _of_tree(key: GangKey, trees: GroupTrees) -> PodGroup | None:
    """The group of a gang that is a tree of groups; None: it is none."""
    group = trees.group_of_gang(key)
    scope, namespace, name = key
    if group is None and (parts := trees.parts(key)):
        named = ", ".join(part.name for part in parts if part.parent == name)
        raise InvalidManifest(
            f"{named}: the parent {namespace}/{name} ({scope}) is not in these files, and groups "
            "of a tree start together"
        )
    if group is not None and group.errors:
        raise InvalidManifest(f"{namespace}/{name}: {'; '.join(group.errors)}")
    return group


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
