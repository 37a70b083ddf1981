"""The API writes of controllers: bounded in flight and by rate, safe to repeat.

What a repeated write finds done is a result, not an error: an object that exists already, one that
is gone, one that is not what it was. Everything else is raised as the `KubeError` it is, and the
caller's key comes back later.
"""

import asyncio
import enum
from typing import Any, Final, Literal

import msgspec

from shared.kube.client import KubeClient, PatchType
from shared.kube.errors import Conflict, Invalid, NotFound
from shared.kube.resources import Resource
from shared.pacing import TokenBucket

#: As many as keep an API server on the same machine busy; more only wait in its own queues.
IN_FLIGHT: Final = 32


class Outcome(enum.Enum):
    """What became of a write."""

    DONE = "done"
    #: An object of that name exists already; whose it is, is for the caller to read.
    EXISTS = "exists"
    #: It is gone.
    GONE = "gone"
    #: Another UID bears the name, or it has changed since it was read.
    STALE = "stale"


class Written(msgspec.Struct, frozen=True):
    """A write's outcome, with the object as stored when it is DONE."""

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
    """See the module."""

    def __init__(self, client: KubeClient, *, per_s: int, in_flight: int = IN_FLIGHT) -> None:
        """Write over `client`, `per_s` writes a second in the long run, a second's worth at
        once.
        """
        self.client = client
        self._slots = asyncio.Semaphore(in_flight)
        self._bucket = TokenBucket(burst=per_s, per_s=per_s)
        #: Writes sent, by verb; for metrics and tests.
        self.sent = {"create": 0, "replace": 0, "patch": 0, "delete": 0}

    @property
    def all_taken(self) -> bool:
        """Whether another write would have to wait for those in flight."""
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
                # A quota that changed under the API server's hands is a conflict, too.
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
        """Write an object whole, if it still has the resourceVersion that `manifest` names."""
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
        """Change parts of an object, if it still has this UID (and version, where given)."""
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
                # That is how it is said that another object bears the name now.
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
