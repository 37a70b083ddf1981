"""Finds the version in which the API server serves a kind of several versions.

A version comes and goes when a cluster is upgraded, or its runtime configuration changes, so an
answer is used for a few seconds only.
"""

import time
from collections.abc import Callable
from typing import Final

import msgspec

from shared.kube.client import KubeClient
from shared.kube.errors import MalformedAnswer, NotFound
from shared.kube.resources import Resource

LASTS_S: Final = 5.0


class _Served(msgspec.Struct, frozen=True):
    name: str = ""


class _ServedList(msgspec.Struct, frozen=True):
    """An APIResourceList."""

    resources: tuple[_Served, ...] = ()


_decode: Final = msgspec.json.Decoder(_ServedList).decode


async def served_variant(client: KubeClient, resource: Resource) -> Resource | None:
    """The first of the resource's variants that the API server serves; None: it serves none.

    Raises:
        KubeError: The API server does not answer, or refuses to list its resources.
    """
    for variant in resource.variants:
        try:
            reply = await client.request("GET", f"/apis/{variant.group}/{variant.version}")
        except NotFound:
            continue
        try:
            names = {one.name for one in _decode(reply.body).resources}
        except msgspec.MsgspecError as error:
            raise MalformedAnswer(f"resources of {variant.api_version}: {error}") from None
        if variant.plural in names:
            return variant
    return None


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
