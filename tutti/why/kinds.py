"""Resolves a reference such as `tfjob/train` to a resource that the API server serves, finds the
object, and completes references in a shell: names of the kind, or without one of Jobs and groups.
"""

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import quote

import click
import msgspec

from shared.dialects.discovery import group_resources
from shared.kube.client import KubeClient
from shared.kube.errors import ApiError, Forbidden, MalformedAnswer, NotFound
from shared.kube.objects import KubeStruct
from shared.kube.resources import JOBS_VOLCANO, PODGROUPS_VOLCANO, PODS, Resource
from tutti.api.failures import Refusal
from tutti.api.fetches import at_once, get
from tutti.api.flags import Completion, completed_by, completing_client, names_of
from tutti.api.objects import Object

_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9.:]*[A-Za-z0-9])?")
#: API groups with kinds that are workloads or groups of pods. A bare name is searched among them.
_WORKLOAD_GROUPS: Final = frozenset(resource.group for resource in group_resources()) | frozenset(
    {
        "apps",
        "batch",
        "batch.volcano.sh",
        "flow.volcano.sh",
        "grove.io",
        "jobset.x-k8s.io",
        "kubeflow.org",
        "leaderworkerset.x-k8s.io",
        "ray.io",
        "sparkoperator.k8s.io",
        "trainer.kubeflow.org",
    }
)
_CORE_WORKLOADS: Final = frozenset({"Pod", "ReplicationController"})
#: Kinds of those API groups that have no pods: a Workload is a template of PodGroups.
_NO_WORKLOADS: Final = frozenset({"ControllerRevision", "Workload"})
#: Pods need no discovery, and most questions are about pods.
_POD_WORDS: Final = frozenset({"pod", "pods", "po"})


class NoSuchObject(Refusal):
    """The namespace has no object of that name."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind in one version, and the words for it."""

    resource: Resource
    words: frozenset[str]
    #: Whether it is the version that the API server prefers.
    preferred: bool = True


class _ServedResource(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    singular_name: str = ""
    namespaced: bool = False
    kind: str = ""
    short_names: tuple[str, ...] = ()


class _ResourceList(KubeStruct, frozen=True, kw_only=True):
    resources: tuple[_ServedResource, ...] = ()


class _GroupVersion(KubeStruct, frozen=True, kw_only=True):
    group_version: str = ""


class _Group(KubeStruct, frozen=True, kw_only=True):
    versions: tuple[_GroupVersion, ...] = ()
    preferred_version: _GroupVersion = _GroupVersion()


class _GroupList(KubeStruct, frozen=True, kw_only=True):
    groups: tuple[_Group, ...] = ()


def read_reference(words: Sequence[str]) -> tuple[str, str]:
    """`KIND/NAME` or `KIND NAME` as (kind, name), else Refusal; the kind of a bare `NAME` is ""."""
    parts = words[0].split("/") if len(words) == 1 else list(words)
    if len(parts) not in {1, 2} or not all(_NAME.fullmatch(part) for part in parts):
        raise Refusal(f"{' '.join(words)!r} is not KIND/NAME, such as pod/train-worker-0")
    *kind, name = parts
    return kind[0].lower() if kind else "", name


def matching(word: str, kinds: Iterable[Kind]) -> list[Kind]:
    """The kinds that a word names, one version of each: the preferred one if it serves the kind.

    `word` is in lower case: `pods`, `vcjob`, `job.batch.volcano.sh`, `tfjob.v1.kubeflow.org`.
    """
    base, _, place = word.partition(".")
    return _one_version_each(
        kind for kind in kinds if base in kind.words and _is_at(kind.resource, place)
    )


def workloads(kinds: Iterable[Kind]) -> list[Resource]:
    """The namespaced kinds among which a bare name is searched, one version of each."""
    chosen = _one_version_each(kind for kind in kinds if _is_workload(kind.resource))
    return [kind.resource for kind in chosen]


def _is_workload(resource: Resource) -> bool:
    known = resource.group in _WORKLOAD_GROUPS or resource.kind in _CORE_WORKLOADS
    return resource.namespaced and known and resource.kind not in _NO_WORKLOADS


def _one_version_each(kinds: Iterable[Kind]) -> list[Kind]:
    """One version of each kind: the preferred one, or else the first."""
    chosen: dict[tuple[str, str], Kind] = {}
    for kind in kinds:
        key = (kind.resource.group, kind.resource.plural)
        if key not in chosen or (kind.preferred and not chosen[key].preferred):
            chosen[key] = kind
    return list(chosen.values())


def _is_at(resource: Resource, place: str) -> bool:
    return place in {"", resource.group, f"{resource.version}.{resource.group}".rstrip(".")}


async def resolve(client: KubeClient, word: str) -> tuple[list[Resource], list[Kind]]:
    """The resources that a word can mean ("": any workload), and all served kinds if discovery was
    necessary. Raises KubeError, and Refusal when there is no such kind, or it is cluster-scoped.
    """
    if word in _POD_WORDS:
        return [PODS], []
    kinds = await discover(client)
    if not word:
        return workloads(kinds), kinds
    named = matching(word, kinds)
    if not named:
        raise Refusal(f"the API server serves no kind {word!r}")
    namespaced = [kind.resource for kind in named if kind.resource.namespaced]
    if not namespaced:
        raise Refusal(
            f"{named[0].resource.title} are cluster-scoped, and never wait for a scheduler"
        )
    return namespaced, kinds


async def find_object(
    client: KubeClient, namespace: str, resources: Iterable[Resource], name: str
) -> tuple[Resource, Object]:
    """The one object of that name; a word such as `job` may mean several kinds. An object has
    precedence over objects of the same name that a controller created for it.

    Raises:
        NoSuchObject: There is none.
        Refusal: There are several.
        KubeError: A request failed; Forbidden only if the objects that may be read are not of that
            name.
    """

    async def read(resource: Resource) -> Object | Forbidden | None:
        try:
            return await get(client, resource, name, namespace)
        except NotFound:
            return None
        except Forbidden as error:
            return error

    answers = await at_once(resources, read)
    objects = {of: obj for of, obj in answers.items() if isinstance(obj, dict)}
    uids = {obj["metadata"].get("uid") for obj in objects.values()}
    tops = [
        (resource, obj)
        for resource, obj in objects.items()
        if not any(
            owner.get("uid") in uids for owner in obj["metadata"].get("ownerReferences") or []
        )
    ]
    if len(tops) == 1:
        return tops[0]
    if tops:
        titles = " or ".join(f"{resource.title}/{name}" for resource, _ in tops)
        raise Refusal(f"{name} is ambiguous: give {titles}")
    for refused in answers.values():
        if isinstance(refused, Forbidden):
            raise refused
    titles = ", ".join(sorted(resource.title for resource in answers))
    raise NoSuchObject(f"no {name} in namespace {namespace} (searched {titles})")


async def discover(client: KubeClient) -> list[Kind]:
    """All kinds that the API server serves; groups whose own server is down are left out. Raises
    KubeError.
    """
    listed = await client.request("GET", "/apis")
    preferred = {"v1": True} | {
        version.group_version: version == each.preferred_version
        for each in msgspec.json.decode(listed.body, type=_GroupList).groups
        for version in each.versions
    }
    served = await at_once(
        preferred, lambda version: _served(client, version, preferred=preferred[version])
    )
    return [kind for kinds in served.values() for kind in kinds]


async def kinds_of_version(client: KubeClient, api_version: str) -> list[Kind]:
    """The kinds of one `apiVersion`; none if it is not served. Raises KubeError."""
    try:
        return await _read_kinds(client, api_version, preferred=True)
    except NotFound:
        return []


async def _served(client: KubeClient, group_version: str, *, preferred: bool) -> list[Kind]:
    try:
        return await _read_kinds(client, group_version, preferred=preferred)
    except (ApiError, MalformedAnswer):
        return []


async def _read_kinds(client: KubeClient, group_version: str, *, preferred: bool) -> list[Kind]:
    group, _, version = group_version.rpartition("/")
    folder = f"/apis/{quote(group)}" if group else "/api"
    path = f"{folder}/{quote(version, safe='')}"
    reply = await client.request("GET", path)
    try:
        served = msgspec.json.decode(reply.body, type=_ResourceList).resources
    except msgspec.MsgspecError as error:
        raise MalformedAnswer(f"{path}: {error}") from None
    return [
        Kind(
            resource=Resource(group, version, each.name, each.kind, namespaced=each.namespaced),
            words=frozenset(
                {each.name, each.singular_name or each.kind.lower(), each.kind.lower()}
                | set(each.short_names)
            ),
            preferred=preferred,
        )
        for each in served
        if "/" not in each.name
    ]


#: The user waits for it after pressing Tab; a kind needs discovery first.
_PATIENCE_S: Final = 4.0


async def _references(ctx: click.Context, begun: str) -> list[str]:
    word, slash, _ = begun.partition("/")
    async with asyncio.timeout(_PATIENCE_S), completing_client(ctx) as client:
        if not slash:
            return await names_of((JOBS_VOLCANO, PODGROUPS_VOLCANO), client, ctx)
        resources, _ = await resolve(client, word)
        return [f"{word}/{name}" for name in await names_of(resources, client, ctx)]


complete_reference: Completion = completed_by(_references)
