"""Writes Events of what controllers do, each once, without delaying them.

The same words about the same object are one Event with a count. What comes faster than it can be
written is dropped and counted: Events are news, not state.
"""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec

from services.controller.reconciling.writes import Outcome, Writes
from shared.kube.errors import KubeError, NotFound
from shared.kube.resources import CORE_EVENTS, Resource

logger = logging.getLogger(__name__)

#: The source component of Volcano's controllers, which its users filter by.
COMPONENT: Final = "vc-controller-manager"
#: What waits to be written; a burst of jobs may say a few things each.
_WAITING_MAX: Final = 2_000
#: Events whose counts are remembered.
_KNOWN_MAX: Final = 10_000
#: The same words again within this time are not written again.
_REPEAT_S: Final = 10.0

EventType = Literal["Normal", "Warning"]


class About(msgspec.Struct, frozen=True):
    """The object that an Event is about."""

    resource: Resource
    namespace: str
    name: str
    uid: str


class _Counted(msgspec.Struct, frozen=True):
    count: int = 1


class Recorder:
    """See the module. `record` never waits and never fails."""

    def __init__(self, writes: Writes, *, component: str = COMPONENT) -> None:
        """Write over `writes`; nothing is written before `run`."""
        self._writes = writes
        self._component = component
        self._waiting: asyncio.Queue[tuple[About, EventType, str, str]] = asyncio.Queue(
            _WAITING_MAX
        )
        #: Event name -> the loop's time at which it was written last.
        self._known: OrderedDict[str, float] = OrderedDict()
        self.dropped = 0

    def record(self, about: About, type_: EventType, reason: str, message: str) -> None:
        """Have an Event written soon."""
        try:
            self._waiting.put_nowait((about, type_, reason, message))
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        """Write until cancelled; what cannot be written is dropped."""
        while True:
            about, type_, reason, message = await self._waiting.get()
            try:
                await self._write(about, type_, reason, message)
            except KubeError as error:
                self.dropped += 1
                logger.warning("event %s of %s is lost: %s", reason, about.name, error)
            finally:
                self._waiting.task_done()

    async def flush(self) -> None:
        """Wait until all that was recorded is written or dropped."""
        await self._waiting.join()

    async def _write(self, about: About, type_: EventType, reason: str, message: str) -> None:
        # Named by what it says, so that the same thing said by a restarted controller is a repeat.
        said = f"{about.uid} {type_} {reason} {message}".encode()
        name = f"{about.name[:200]}.{hashlib.sha256(said).hexdigest()[:16]}"
        now_s = asyncio.get_running_loop().time()
        told_s = self._known.get(name)
        if told_s is not None and now_s - told_s < _REPEAT_S:
            return
        at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        namespace = about.namespace or "default"
        if told_s is None:
            manifest = self._manifest(about, type_, reason, message, at)
            manifest["metadata"] = {"name": name, "namespace": namespace}
            made = await self._writes.create(CORE_EVENTS, manifest, namespace=namespace)
            again = made.outcome is Outcome.EXISTS
        else:
            again = True
        if again:
            await self._count(namespace, name, at)
        self._known[name] = now_s
        self._known.move_to_end(name)
        if len(self._known) > _KNOWN_MAX:
            self._known.popitem(last=False)

    def _manifest(
        self, about: About, type_: EventType, reason: str, message: str, at: str
    ) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "involvedObject": {
                "apiVersion": about.resource.api_version,
                "kind": about.resource.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
            },
            "type": type_,
            "reason": reason,
            "message": message[:1024],
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }

    async def _count(self, namespace: str, name: str, at: str) -> None:
        client = self._writes.client
        try:
            stored = await client.get(CORE_EVENTS, name, _Counted, namespace=namespace)
            await client.patch(
                CORE_EVENTS,
                name,
                {"count": stored.count + 1, "lastTimestamp": at},
                namespace=namespace,
            )
        except NotFound:
            return  # Events live for an hour.
