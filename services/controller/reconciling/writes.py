"""The API writes of controllers: limited in flight and by rate, and safe to repeat.

Results that a repeated write may meet are outcomes, not errors: the object exists, is gone, or has
changed. All other failures are raised as `KubeError`, and the caller's key is handled again.
"""

import asyncio
import enum
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeVar

import msgspec

from shared.kinds.metadata import Metadata
from shared.kube.client import KubeClient
from shared.kube.errors import ApiError, Conflict, Invalid, KubeError, NotFound
from shared.kube.objects import ObjectMeta
from shared.kube.resources import Resource
from shared.kube.transport import Reply
from shared.pacing import TokenBucket

#: Enough to keep an API server on the same machine busy; more would wait in its queues.
IN_FLIGHT: Final = 32

T = TypeVar("T")


class Outcome(enum.Enum):
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
        return self.outcome is Outcome.DONE


class Keyed(Protocol):
    """Any typed object."""

    @property
    def metadata(self) -> Metadata | ObjectMeta:
        """The object's metadata, with at least a name."""
        ...


class Writes:
    """Writes with a limited rate, and a limited number in flight."""

    def __init__(self, client: KubeClient, *, per_s: int, in_flight: int = IN_FLIGHT) -> None:
        """Write at most `per_s` times a second, with bursts of the same number."""
        self.client = client
        self._slots = asyncio.Semaphore(in_flight)
        self._bucket = TokenBucket(burst=per_s, per_s=per_s)

    @property
    def all_taken(self) -> bool:
        """Whether another write would wait for those in flight."""
        return self._slots.locked()

    async def create(self, resource: Resource, manifest: object, *, namespace: str = "") -> Written:
        """Create an object; EXISTS when one of that name is there. Raises KubeError."""

        async def send() -> Reply:
            reply = await self.client.post(resource.path(namespace), msgspec.json.encode(manifest))
            reply.raise_for_status()
            return reply

        try:
            reply = await self._limited(send)
        except Conflict as error:
            # A quota that changes during the request causes a conflict, too.
            if error.reason == "AlreadyExists":
                return Written(Outcome.EXISTS)
            raise
        return Written(Outcome.DONE, reply.body)

    async def replace_status(self, resource: Resource, changed: Keyed) -> Written:
        """Replace an object's status, if it still has the resourceVersion in `changed`."""
        metadata = changed.metadata
        send = partial(self.client.replace, resource, metadata.name, changed)
        return await self._change(partial(send, namespace=metadata.namespace, subresource="status"))

    async def patch(
        self,
        resource: Resource,
        target: Metadata | ObjectMeta,
        patch: dict[str, Any],
        *,
        subresource: str = "",
    ) -> Written:
        """Apply a merge patch to an object, if it still has the UID in its metadata `target`."""
        metadata = dict(patch.get("metadata") or {}) | {"uid": target.uid}
        whole = {**patch, "metadata": metadata}
        send = partial(self.client.patch, resource, target.name, whole)
        return await self._change(
            partial(send, namespace=target.namespace, subresource=subresource)
        )

    async def delete(
        self,
        resource: Resource,
        target: Metadata | ObjectMeta,
        *,
        propagation: Literal["Background", "Foreground"] = "Background",
    ) -> Written:
        """Delete an object, if it still has the UID in its metadata `target`."""
        send = partial(self.client.delete, resource, target.name, namespace=target.namespace)
        return await self._change(partial(send, uid=target.uid, propagation=propagation))

    async def _change(self, send: Callable[[], Awaitable[Reply]]) -> Written:
        try:
            reply = await self._limited(send)
        except Conflict:
            return Written(Outcome.STALE)
        except Invalid as error:
            # The API server's answer to a patch when another object has the name.
            if any(cause.field == "metadata.uid" for cause in error.details.causes):
                return Written(Outcome.STALE)
            raise
        except NotFound:
            return Written(Outcome.GONE)
        return Written(Outcome.DONE, reply.body)

    async def _limited(self, send: Callable[[], Awaitable[Reply]]) -> Reply:
        """Send a request as soon as the limits allow it."""
        async with self._slots:
            wait_s = self._bucket.draw(asyncio.get_running_loop().time())
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            return await send()


async def for_all(
    do: Callable[[T], Awaitable[None]], things: Iterable[T], *, at_once: int, name: str
) -> None:
    """Call `do` for all things, `at_once` at a time, in tasks called `name`, until the first error.

    Raises:
        KubeError: One of the errors; an answer of the API server only if there is no other error.
    """
    left = iter(things)
    errors: list[KubeError] = []

    async def work() -> None:
        for thing in left:
            if errors:
                return
            try:
                await do(thing)
            except KubeError as error:
                errors.append(error)

    async with asyncio.TaskGroup() as group:
        for number in range(at_once):
            group.create_task(work(), name=f"{name}-{number}")
    if errors:
        raise next((error for error in errors if not isinstance(error, ApiError)), errors[0])
