"""Reads manifests and applies them on the server side, as `kubectl apply --server-side` does."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Final, TypeAlias

import msgspec

from shared.dialects.manifests import InvalidManifest, flattened
from shared.kube.client import KubeClient
from shared.kube.errors import KubeError
from shared.kube.objects import KubeObject
from shared.kube.resources import Resource
from shared.kube.transport import Reply
from tutti.api.failures import Refusal
from tutti.api.manifests import contents, parse, warnings_of
from tutti.why.kinds import kinds_of_version

Manifests: TypeAlias = str | PathLike[str] | Mapping[str, Any] | Iterable[Mapping[str, Any]]
"""YAML or JSON as text, the path of such a file or of a folder of them (a `pathlib.Path`), a
manifest as a mapping, or several of them. Lists (`kind: List`) are expanded."""

#: Server-side apply takes JSON, too, which is YAML.
_APPLY: Final = "application/apply-patch+yaml"
#: Owner of the fields that the client sets.
FIELD_MANAGER: Final = "tutti-client"
#: Objects in one call.
_OBJECTS_MAX: Final = 1_000

_encode: Final = msgspec.json.Encoder().encode


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """An object as the API server stored it."""

    api_version: str
    kind: str
    #: "" for an object without a namespace.
    namespace: str
    name: str
    uid: str
    #: What the API server and its webhooks remark.
    warnings: tuple[str, ...] = ()


def read_manifests(manifests: Manifests) -> list[dict[str, Any]]:
    """All objects in order; blocking, it may read a file.

    Raises:
        Refusal: A file cannot be read, a text is not YAML, or there is no object in it.
    """
    match manifests:
        case str():
            documents = parse(manifests, "the text")
        case PathLike():
            files = contents(str(manifests))
            documents = [document for file in files for document in file.documents()]
        case Mapping():
            documents = [dict(manifests)]
        case _:
            documents = [dict(manifest) for manifest in manifests]
    try:
        objects = [obj for _, obj in flattened(documents)]
    except InvalidManifest as error:
        raise Refusal(str(error)) from None
    if not objects:
        raise Refusal("manifests: there must be an object in them")
    if len(objects) > _OBJECTS_MAX:
        raise Refusal(f"manifests: at most {_OBJECTS_MAX} objects, not {len(objects)}")
    return objects


async def apply_all(
    client: KubeClient,
    objects: Sequence[Mapping[str, Any]],
    namespace: str,
    *,
    dry_run: bool,
    force: bool,
) -> list[Submitted]:
    """Apply objects in order, as `AsyncClient.submit` describes; every kind is found before the
    first object is sent.

    Raises:
        Refusal: The API server serves no such kind, or an object has no name.
        KubeError: As `KubeClient.request`.
    """
    versions = {str(obj.get("apiVersion", "")): None for obj in objects}
    resources: dict[tuple[str, str], Resource] = {}
    for version in versions:
        for kind in await kinds_of_version(client, version):
            resources[version, kind.resource.kind] = kind.resource
    placed = [(obj, _resource_of(obj, resources)) for obj in objects]
    applied: list[Submitted] = []
    for obj, resource in placed:
        try:
            applied.append(
                await _apply(client, resource, obj, namespace, dry_run=dry_run, force=force)
            )
        except KubeError as error:
            stored = ", ".join(f"{each.kind} {each.name}" for each in applied) or "none"
            error.add_note(f"{_title(obj)} was refused; applied before it: {stored}")
            raise
    return applied


def _resource_of(obj: Mapping[str, Any], resources: Mapping[tuple[str, str], Resource]) -> Resource:
    version, kind = str(obj.get("apiVersion", "")), str(obj.get("kind", ""))
    resource = resources.get((version, kind))
    if resource is None:
        raise Refusal(f"{_title(obj)}: the API server serves no {kind} of {version or 'nothing'}")
    metadata = obj.get("metadata")
    if not isinstance(metadata, Mapping) or not (
        metadata.get("name") or metadata.get("generateName")
    ):
        raise Refusal(f"{_title(obj)}: metadata.name: must be set")
    return resource


def _title(obj: Mapping[str, Any]) -> str:
    metadata = obj.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, Mapping) else ""
    return f"{obj.get('kind', '')} {name}".strip()


async def _apply(
    client: KubeClient,
    resource: Resource,
    obj: Mapping[str, Any],
    namespace: str,
    *,
    dry_run: bool,
    force: bool,
) -> Submitted:
    metadata = obj["metadata"]
    place = str(metadata.get("namespace") or namespace) if resource.namespaced else ""
    params = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
    params |= {"dryRun": "All"} if dry_run else {}
    name = str(metadata.get("name") or "")
    if name:
        reply = await client.request(
            "PATCH",
            resource.path(place, name),
            params=params | {"force": "true" if force else "false"},
            body=_encode(obj),
            content_type=_APPLY,
        )
    else:
        reply = await client.request("POST", resource.path(place), params=params, body=_encode(obj))
    return _submitted(resource, reply)


def _submitted(resource: Resource, reply: Reply) -> Submitted:
    metadata = msgspec.json.decode(reply.body, type=KubeObject).metadata
    return Submitted(
        api_version=resource.api_version,
        kind=resource.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        warnings=tuple(warnings_of(reply.headers)),
    )
