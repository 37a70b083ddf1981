"""The API writes of controllers: limited in flight and by rate, and safe to repeat.

Results that a repeated write may meet are outcomes, not errors: the object exists, is gone, or has
changed. All other failures are raised as `KubeError`, and the caller's key is handled again.
"""

import asyncio
import enum
from typing import Any, Final, Literal

import msgspec

from shared.kube.client import KubeClient, PatchType
from shared.kube.errors import Conflict, Invalid, NotFound
from shared.kube.resources import Resource
from shared.pacing import TokenBucket

#: Enough to keep an API server on the same machine busy; more would wait in its queues.
IN_FLIGHT: Final = 32


class Outcome(enum.Enum):
    """The outcome of a write."""

    DONE = "done"
    #: An object of that name exists; the caller checks its owner.
    EXISTS = "exists"
    #: The object does not exist.
    GONE = "gone"
    #: Another object has the name, or the object has changed since it was read.
    STALE = "stale"


class Written(msgspec.Struct, frozen=True):
    """A write's outcome, for DONE with the stored object."""

    outcome: Outcome
    body: bytes = b""

    @property
    def done(self) -> bool:
        """Whether it was written."""
        return self.outcome is Outcome.DONE


_EXISTS: Final = Written(Outcome.EXISTS)
_GONE: Final = Written(Outcome.GONE)
_STALE: Final = Written(Outcome.STALE)


class Writes:
    """Writes with a limited rate, and a limited number in flight."""

    def __init__(self, client: KubeClient, *, per_s: int, in_flight: int = IN_FLIGHT) -> None:
        """Write at most `per_s` times a second, with bursts of the same number."""
        self.client = client
        self._slots = asyncio.Semaphore(in_flight)
        self._bucket = TokenBucket(burst=per_s, per_s=per_s)
        #: Writes sent, by verb; for metrics and tests.
        self.sent = {"create": 0, "replace": 0, "patch": 0, "delete": 0}

    @property
    def all_taken(self) -> bool:
        """Whether another write would wait for those in flight."""
        return self._slots.locked()

    async def create(self, resource: Resource, manifest: object, *, namespace: str = "") -> Written:
        """Create an object; EXISTS when one of that name is there. Raises KubeError."""
        async with self._slots:
            await self._pace("create")
            try:
                path = resource.path(namespace)
                reply = await self.client.post(path, msgspec.json.encode(manifest))
                reply.raise_for_status()
            except Conflict as error:
                # A quota that changes during the request causes a conflict, too.
                if error.reason == "AlreadyExists":
                    return _EXISTS
                raise
        return Written(Outcome.DONE, reply.body)

    async def replace(
        self,
        resource: Resource,
        name: str,
        manifest: object,
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> Written:
        """Replace an object, if it still has the resourceVersion in `manifest`."""
        async with self._slots:
            await self._pace("replace")
            try:
                reply = await self.client.replace(
                    resource, name, manifest, namespace=namespace, subresource=subresource
                )
            except Conflict:
                return _STALE
            except NotFound:
                return _GONE
        return Written(Outcome.DONE, reply.body)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: dict[str, Any],
        *,
        uid: str,
        resource_version: str = "",
        namespace: str = "",
        subresource: str = "",
        patch_type: PatchType = "merge",
    ) -> Written:
        """Patch an object, if it still has this UID (and this resourceVersion, if given)."""
        metadata = dict(patch.get("metadata") or {}) | {"uid": uid}
        if resource_version:
            metadata["resourceVersion"] = resource_version
        async with self._slots:
            await self._pace("patch")
            try:
                reply = await self.client.patch(
                    resource,
                    name,
                    {**patch, "metadata": metadata},
                    namespace=namespace,
                    subresource=subresource,
                    patch_type=patch_type,
                )
            except Conflict:
                return _STALE
            except Invalid as error:
                # The API server's answer when another object has the name.
                if any(cause.field == "metadata.uid" for cause in error.details.causes):
                    return _STALE
                raise
            except NotFound:
                return _GONE
        return Written(Outcome.DONE, reply.body)

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        uid: str,
        namespace: str = "",
        propagation: Literal["Background", "Foreground"] = "Background",
    ) -> Written:
        """Delete an object, if it still has this UID."""
        async with self._slots:
            await self._pace("delete")
            try:
                reply = await self.client.delete(
                    resource, name, namespace=namespace, uid=uid, propagation=propagation
                )
            except Conflict:
                return _STALE
            except NotFound:
                return _GONE
        return Written(Outcome.DONE, reply.body)

    async def _pace(self, verb: str) -> None:
        self.sent[verb] += 1
        wait_s = self._bucket.draw(asyncio.get_running_loop().time())
        if wait_s > 0:
            await asyncio.sleep(wait_s)
