"""Writes the Events of reconciling controllers, without delaying the controllers.

An equal message about the same object is one Event with a count. Events that come faster than they
can be written are dropped and counted, since no controller depends on them.
"""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Final

from services.controller.core.events import (
    ControllerEvent,
    StoredEvent,
    event_body,
    object_reference,
)
from services.controller.reconciling.writes import Outcome, Writes
from shared.kinds.metadata import Metadata
from shared.kube.errors import KubeError, NotFound, in_terminating_namespace
from shared.kube.resources import CORE_EVENTS, Resource

logger = logging.getLogger(__name__)

#: The source component of Volcano's controllers, which its users filter by.
COMPONENT: Final = "vc-controller-manager"
#: The most Events that wait to be written; each job of a burst may have a few.
_WAITING_MAX: Final = 2_000
#: Events whose counts are remembered.
_KNOWN_MAX: Final = 10_000
#: An equal Event within this time is not counted.
_REPEAT_S: Final = 10.0


class Recorder:
    """Writes recorded Events; `record` never waits and never fails."""

    def __init__(self, writes: Writes) -> None:
        """Nothing is written before `run`."""
        self._writes = writes
        self._waiting: asyncio.Queue[tuple[Resource, Metadata, ControllerEvent]] = asyncio.Queue(
            _WAITING_MAX
        )
        #: Event name -> the loop's time at which it was written last.
        self._known: OrderedDict[str, float] = OrderedDict()
        self.dropped = 0

    def record(self, resource: Resource, about: Metadata, *events: ControllerEvent) -> None:
        """Queue Events about the object with this metadata; one is dropped when too many wait."""
        for event in events:
            try:
                self._waiting.put_nowait((resource, about, event))
            except asyncio.QueueFull:
                self.dropped += 1

    async def run(self) -> None:
        """Write Events until cancelled. One that cannot be written is dropped."""
        while True:
            resource, about, event = await self._waiting.get()
            try:
                await self._write(resource, about, event)
            except KubeError as error:
                self.dropped += 1
                # A namespace that is being deleted takes no Events, and its objects go with it.
                level = logging.DEBUG if in_terminating_namespace(error) else logging.WARNING
                logger.log(level, "Event %s of %s is dropped: %s", event.reason, about.name, error)
            finally:
                self._waiting.task_done()

    async def flush(self) -> None:
        """Wait until each recorded Event is written or dropped."""
        await self._waiting.join()

    async def _write(self, resource: Resource, about: Metadata, event: ControllerEvent) -> None:
        # The name follows from the content, so that a restarted controller repeats the same Event.
        content = f"{about.uid} {event.type} {event.reason} {event.message}".encode()
        name = f"{about.name[:200]}.{hashlib.sha256(content).hexdigest()[:16]}"
        now_s = asyncio.get_running_loop().time()
        written_s = self._known.get(name)
        if written_s is not None and now_s - written_s < _REPEAT_S:
            return
        at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        namespace = about.namespace or "default"
        exists = written_s is not None
        if not exists:
            reference = object_reference(resource, about.namespace, about.name, about.uid)
            body = event_body(reference, name, event, at, COMPONENT)
            created = await self._writes.create(CORE_EVENTS, body, namespace=namespace)
            exists = created.outcome is Outcome.EXISTS
        if exists:
            await self._count(namespace, name, at)
        self._known[name] = now_s
        self._known.move_to_end(name)
        if len(self._known) > _KNOWN_MAX:
            self._known.popitem(last=False)

    async def _count(self, namespace: str, name: str, at: str) -> None:
        client = self._writes.client
        try:
            stored = await client.get(CORE_EVENTS, name, StoredEvent, namespace=namespace)
            await client.patch(
                CORE_EVENTS,
                name,
                {"count": (stored.count or 1) + 1, "lastTimestamp": at},
                namespace=namespace,
            )
        except NotFound:
            return  # Events live for an hour.
