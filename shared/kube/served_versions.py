"""Finds the version in which the API server serves a kind of several versions.

A version comes and goes when a cluster is upgraded, or its runtime configuration changes, so an
answer is used for a few seconds only.
"""

import time
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from shared.kube.client import KubeClient
from shared.kube.errors import MalformedAnswer, NotFound
from shared.kube.resources import Resource

LASTS_S: Final = 5.0


class _Version(msgspec.Struct, frozen=True):
    version: str = ""


class _Group(msgspec.Struct, frozen=True):
    """An APIGroup."""

    versions: tuple[_Version, ...] = ()


class _Kind(msgspec.Struct, frozen=True):
    name: str = ""


class _Kinds(msgspec.Struct, frozen=True):
    """An APIResourceList."""

    resources: tuple[_Kind, ...] = ()


T = TypeVar("T")


async def served_variant(client: KubeClient, resource: Resource) -> Resource | None:
    """The first of the resource's variants that the API server serves; None: it serves none.

    Raises:
        KubeError: The API server does not answer, or refuses to list its resources.
    """
    group = await _read(client, f"/apis/{resource.group}", _Group)
    served = {version.version for version in group.versions} if group is not None else set[str]()
    for variant in resource.variants:
        if variant.version in served:
            kinds = await _read(client, f"/apis/{variant.api_version}", _Kinds)
            if kinds is not None and variant.plural in {
                resource.name for resource in kinds.resources
            }:
                return variant
    return None


async def _read(client: KubeClient, path: str, kind: type[T]) -> T | None:
    """A document of discovery; None: it does not exist. Raises KubeError."""
    try:
        reply = await client.request("GET", path)
        return msgspec.json.decode(reply.body, type=kind)
    except NotFound:
        return None
    except msgspec.MsgspecError as error:
        raise MalformedAnswer(f"{path}: {error}") from None


class ServedVersions:
    """Answers of `served_variant`, each used for `LASTS_S`."""

    def __init__(
        self, client: KubeClient, *, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._monotonic_s = monotonic_s
        self._found: dict[Resource, tuple[float, Resource]] = {}

    async def of(self, resource: Resource, *, again: bool = False) -> Resource:
        """The variant to use in requests; the preferred one if none is served, so that requests
        answer that the kind is not found.

        Args:
            resource: With `further_versions`, else it is returned itself.
            again: Whether to ask the API server, however new the last answer is.

        Raises:
            KubeError: As `served_variant`.
        """
        if not resource.further_versions:
            return resource
        now_s = self._monotonic_s()
        asked_s, known = self._found.get(resource, (now_s - LASTS_S, resource))
        if again or now_s - asked_s >= LASTS_S:
            known = await served_variant(self._client, resource) or resource.variants[0]
            self._found[resource] = now_s, known
        return known
