"""Reads objects of a cluster for `tutti explain-dialect KIND/NAME`, with the rights of its user.

Beside the object itself: the group objects of the gangs that it names, all groups that may be in
trees if one of these is, and whether its namespace has opted in. What the user may not read counts
as absent.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from shared.dialects.discovery import group_resources, kinds
from shared.dialects.protocol import JsonObject
from shared.kube.client import KubeClient
from shared.kube.decoding import without_nulls
from shared.kube.errors import Forbidden, NotFound
from shared.kube.resources import NAMESPACES, Resource
from tutti.api.failures import Refusal
from tutti.api.fetches import Wanted, fetch, get
from tutti.why.kinds import resolve

#: Fields that say nothing about how an object is understood.
_LEFT_OUT: Final = ("managedFields", "resourceVersion", "generation", "selfLink")


async def read_object(client: KubeClient, namespace: str, word: str, name: str) -> JsonObject:
    """The object, without its status.

    Raises:
        Refusal: There is no such kind or object, or more than one.
        KubeError: A request failed.
    """
    resources, _ = await resolve(client, word)
    found = await _named(client, namespace, resources, name)
    # An object that another one of them owns was created for it.
    uids = {one["metadata"].get("uid") for one in found}
    top = [
        one
        for one in found
        if not any(
            owner.get("uid") in uids for owner in one["metadata"].get("ownerReferences") or []
        )
    ]
    if not top:
        titles = ", ".join(sorted(resource.title for resource in resources))
        raise Refusal(f"no {name} in namespace {namespace} (searched {titles})")
    if len(top) > 1:
        kinds = " or ".join(sorted(f"{one['kind'].lower()}/{name}" for one in top))
        raise Refusal(f"{name} is ambiguous: give {kinds}")
    return top[0]


async def read_groups(client: KubeClient, namespace: str, names: Iterable[str]) -> list[JsonObject]:
    """The group objects of these names, of every API that is served.

    Raises:
        KubeError: A request failed.
    """
    resources = [variant for one in group_resources() for variant in one.variants]
    return [
        one
        for name in sorted(set(names))
        for one in await _named(client, namespace, resources, name)
    ]


async def read_tree_groups(client: KubeClient, namespace: str) -> list[JsonObject]:
    """All group objects of the APIs that have trees of groups.

    Raises:
        KubeError: A request failed.
    """
    of_groups = [kind.resource for kind in kinds() if kind.of_groups]
    apis = {resource.group for resource in of_groups}
    of_pods = [resource for resource in group_resources() if resource.group in apis]
    return [
        one
        for resource in (*of_groups, *of_pods)
        for one in await _all(client, resource, namespace)
    ]


async def read_namespace(client: KubeClient, namespace: str) -> JsonObject:
    """The namespace; without labels if the user may not read it.

    Raises:
        KubeError: A request failed.
    """
    try:
        return _stripped(NAMESPACES, await get(client, NAMESPACES, namespace))
    except (NotFound, Forbidden):
        return {"kind": NAMESPACES.kind, "metadata": {"name": namespace}}


async def _named(
    client: KubeClient, namespace: str, resources: Sequence[Resource], name: str
) -> list[JsonObject]:
    """The objects of this name, each in the first version in which it is served."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_get(client, one, namespace, name), name=one.title)
            for one in resources
        ]
    found: dict[str, JsonObject] = {}
    for task in tasks:
        one = task.result()
        if one is not None:
            found.setdefault(str(one["metadata"].get("uid")), one)
    return list(found.values())


async def _get(
    client: KubeClient, resource: Resource, namespace: str, name: str
) -> JsonObject | None:
    try:
        return _stripped(resource, await get(client, resource, name, namespace))
    except (NotFound, Forbidden):
        return None


async def _all(client: KubeClient, resource: Resource, namespace: str) -> list[JsonObject]:
    """All objects of a kind in the first version in which it is served; [] if it is in none."""
    for variant in resource.variants:
        try:
            found = await fetch(client, Wanted(resource=variant, namespace=namespace))
        except (NotFound, Forbidden):
            continue
        return [_stripped(variant, one) for one in found]
    return []


def _stripped(resource: Resource, one: JsonObject) -> JsonObject:
    kept = {key: value for key, value in one.items() if key != "status"}
    kept |= {"apiVersion": resource.api_version, "kind": resource.kind}
    kept["metadata"] = {
        key: value for key, value in one["metadata"].items() if key not in _LEFT_OUT
    }
    plain: JsonObject = without_nulls(kept)
    return plain
