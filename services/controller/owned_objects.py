"""Objects that a controller keeps for an owner: created once, updated, and deleted by UID.

An object with the same name and another owner is not touched. It may be a user's, or belong to a
former owner of the same name and be due for garbage collection.
"""

from typing import Final

import msgspec

from services.controller.reconciling.writes import Outcome, Writes
from shared.job_plugins.plugin import Manifest
from shared.kinds.metadata import Metadata
from shared.kube.client import KubeClient
from shared.kube.errors import NotFound
from shared.kube.resources import Resource


class NotOurs(Exception):
    """The name belongs to an object of another owner."""


class _Stored(msgspec.Struct, frozen=True):
    metadata: Metadata
    data: dict[str, str] | None = None


_decode: Final = msgspec.json.Decoder(_Stored).decode


class OwnedObjects:
    """The objects of one owner."""

    def __init__(self, client: KubeClient, writes: Writes, namespace: str, owner_uid: str) -> None:
        self._client = client
        self._writes = writes
        self._namespace = namespace
        self._owner_uid = owner_uid

    async def has(self, resource: Resource, name: str) -> bool:
        """Whether the object exists. Raises NotOurs, KubeError."""
        return await self._find(resource, name) is not None

    async def make(self, resource: Resource, manifest: Manifest, *, follows: bool = False) -> None:
        """Create the object, or update the data of an existing one if it `follows`. Idempotent.
        Raises NotOurs, KubeError.
        """
        made = await self._writes.create(resource, manifest, namespace=self._namespace)
        if made.outcome is not Outcome.EXISTS:
            return
        stored = await self._find(resource, manifest["metadata"]["name"])
        if stored is None or not follows or (stored.data or {}) == manifest["data"]:
            return
        gone = {key: None for key in stored.data or {} if key not in manifest["data"]}
        await self._writes.patch(resource, stored.metadata, {"data": gone | manifest["data"]})

    async def delete(self, resource: Resource, name: str) -> None:
        """Delete the object, if it belongs to the owner. Raises KubeError."""
        try:
            stored = await self._find(resource, name)
        except NotOurs:
            return
        if stored is not None:
            await self._writes.delete(resource, stored.metadata)

    async def _find(self, resource: Resource, name: str) -> _Stored | None:
        try:
            reply = await self._client.request("GET", resource.path(self._namespace, name))
        except NotFound:
            return None
        stored = _decode(reply.body)
        if all(owner.uid != self._owner_uid for owner in stored.metadata.owner_references):
            raise NotOurs(f"{resource.kind} {name} belongs to another owner")
        return stored
