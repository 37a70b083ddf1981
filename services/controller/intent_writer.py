"""Writes intents to the API server at a limited rate, and remembers the writes.

A definite refusal (the object is gone or replaced, forbidden, invalid) counts as written: a
repeated write would be refused, too, and the next verdict causes another. A write that failed for
the moment raises `RetryLater`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar, assert_never

import msgspec

from services.controller.core.events import EventIntent, StoredEvent, evicted_event, pod_event
from services.controller.core.statuses.intents import (
    CompareGroup,
    FreeNodes,
    Intent,
    MarkPods,
    PatchGroup,
    PodMark,
    ReportEvicted,
    ReportPlaced,
    free_node,
    remember_stored,
    unmark,
    without_annotations,
)
from services.controller.errors import RETRY_S, RetryLater, is_temporary
from services.controller.reporting import Reporting
from services.controller.state import Report, WrittenGang
from shared.contracts import annotations
from shared.contracts.verdicts import PodRef, Verdict
from shared.dialects.protocol import JsonObject, StatusPatch
from shared.kube.client import KubeClient
from shared.kube.errors import Conflict, Invalid, KubeError, NotFound, TooManyRequests
from shared.kube.objects import KubeObject
from shared.kube.resources import CORE_EVENTS, PODS, Resource
from shared.kube.served_versions import ServedVersions
from shared.kube.transport import Reply
from shared.pacing import TokenBucket
from shared.runtime.steady_clock import SteadyClock

logger = logging.getLogger(__name__)

T = TypeVar("T")

PodEvent: TypeAlias = Callable[[Verdict, PodRef, int], EventIntent]
"""Builds the Event of one pod of a verdict, at an instant in ms."""

#: Marks on which autoscalers act: a gang of this size is marked without a pause, and so many
#: requests are in flight.
_SCALING_BURST: Final = 1_000
_SCALING_IN_FLIGHT: Final = 16
#: The API server may ask for a delay of an hour.
_RETRY_S_MAX: Final = 60.0


class _StatusOfOthers(msgspec.Struct, frozen=True):
    conditions: list[dict[str, Any]] | None = None


class _Conditioned(KubeObject, frozen=True, kw_only=True):
    status: _StatusOfOthers = _StatusOfOthers()


class _PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _StoredPod(msgspec.Struct, frozen=True):
    spec: _PodSpec


_decode_pod: Final = msgspec.json.Decoder(_StoredPod).decode


class IntentWriter:
    """The writes of the status controller."""

    def __init__(
        self,
        client: KubeClient,
        clock: SteadyClock,
        reporting: Reporting,
        *,
        writes_per_s: int,
        pod_events_per_s: int,
    ) -> None:
        """Write over `client`, no faster than these rates."""
        self._client = client
        self._versions = ServedVersions(client)
        self._clock = clock
        self._reporting = reporting
        # A burst of a tenth of a second: the writes of a single gang do not wait.
        self._writes = TokenBucket(burst=max(8, writes_per_s // 10), per_s=writes_per_s)
        self._scaling = TokenBucket(burst=_SCALING_BURST, per_s=writes_per_s)
        self._in_flight = asyncio.Semaphore(_SCALING_IN_FLIGHT)
        self._pod_events = TokenBucket(burst=pod_events_per_s, per_s=pod_events_per_s)

    async def write(self, intent: Intent, verdict: Verdict, memory: WrittenGang) -> None:
        """Write one intent of a verdict and remember it in `memory`.

        Raises:
            RetryLater: The write failed for the moment, or its result is unknown. `memory` is
                unchanged.
        """
        try:
            match intent:
                case CompareGroup():
                    await self._compare(intent, verdict, memory)
                case PatchGroup():
                    await self._patch_group(intent, memory)
                case EventIntent():
                    await self._write_group_event(intent, memory)
                case MarkPods():
                    await self._mark_all(intent, memory)
                case ReportPlaced():
                    await self._write_pod_events(intent.pods, pod_event, verdict)
                case ReportEvicted():
                    await self._write_pod_events(intent.pods, evicted_event, verdict)
                case FreeNodes():
                    await self._free_nodes(intent, memory)
                case _:
                    assert_never(intent)
        except KubeError as error:
            if is_temporary(error):
                raise self._retry(error) from error
            self._refused(intent, error, memory)
        self._remember(intent, memory)

    def _retry(self, error: KubeError) -> RetryLater:
        after_s = error.retry_after_s
        delay_s = min(RETRY_S if after_s is None else max(after_s, 0.1), _RETRY_S_MAX)
        if isinstance(error, TooManyRequests):
            for bucket in (self._writes, self._scaling):
                bucket.pause(self._clock.now_ms() / 1000, delay_s)
        self._reporting.retries.inc()
        return RetryLater(str(error), delay_s)

    def _refused(self, intent: Intent, error: KubeError, memory: WrittenGang) -> None:
        self._reporting.refused(type(intent).__name__).inc()
        gone = isinstance(error, NotFound)
        if not gone:
            logger.warning("%s is refused: %s", type(intent).__name__, error)
        if isinstance(intent, CompareGroup) or (isinstance(intent, PatchGroup) and gone):
            memory.group_missing = True

    def _remember(self, intent: Intent, memory: WrittenGang) -> None:
        """Remember that an intent was written or definitely refused."""
        now_ms = self._clock.now_ms()
        match intent:
            case CompareGroup() | MarkPods() | FreeNodes():
                pass  # they remember what they have read, or each pod that they have written
            case PatchGroup():
                memory.annotation = intent.annotation
                memory.meaning = intent.meaning
                memory.group_at_ms = now_ms
            case EventIntent():
                memory.events[intent.topic] = Report(intent.why, intent.message, now_ms)
            case ReportPlaced():
                memory.placed = intent.placed
            case ReportEvicted():
                memory.evicted = intent.evicted
            case _:
                assert_never(intent)

    # Groups.

    async def _compare(self, intent: CompareGroup, verdict: Verdict, memory: WrittenGang) -> None:
        stored = await self._stored(intent.resource, intent.namespace, intent.name)
        if stored is None or stored.metadata.uid != intent.uid:
            memory.group_missing = True
            return
        text = stored.metadata.annotations.get(annotations.VERDICT, "")
        remember_stored(memory, text, verdict, self._clock.now_ms())

    async def _patch_group(self, intent: PatchGroup, memory: WrittenGang) -> None:
        for patch in intent.patches:
            try:
                try:
                    await self._send(patch)
                except Invalid as error:
                    bare = without_annotations(patch)
                    if bare is None:
                        raise
                    # A user's annotations may leave no space for ours; the status matters more.
                    logger.info("group %s/%s: %s", patch.namespace, patch.name, error)
                    await self._send(bare)
            except (Conflict, Invalid) as error:
                # Another object has the name: that is a Conflict for a custom resource, and Invalid
                # for a kind of Kubernetes itself, where a UID is immutable.
                stored = await self._stored(patch.resource, patch.namespace, patch.name)
                if stored is None or stored.metadata.uid != patch.body["metadata"]["uid"]:
                    memory.group_missing = True
                    return
                if isinstance(error, Invalid):
                    raise
                # Two writes within the API server collided.
                raise RetryLater(str(error), RETRY_S) from error
            self._reporting.wrote("group").inc()

    async def _send(self, patch: StatusPatch) -> None:
        async def send(resource: Resource) -> Reply:
            body = patch.bodies.get(resource.version, patch.body)
            if patch.keeps_conditions:
                body = await self._beside_other_conditions(resource, patch, body)
            await self._turn()
            return await self._client.patch(
                resource,
                patch.name,
                body,
                namespace=patch.namespace,
                subresource=patch.subresource,
                patch_type=patch.patch_type,
            )

        await self._in_served_version(patch.resource, send)

    async def _beside_other_conditions(
        self, resource: Resource, patch: StatusPatch, body: JsonObject
    ) -> JsonObject:
        """The body with the stored conditions of other types. The API server answers Conflict when
        the object was changed after they were read.
        """
        await self._turn()
        stored = await self._client.get(
            resource, patch.name, _Conditioned, namespace=patch.namespace
        )
        ours: list[JsonObject] = body["status"]["conditions"]
        types = {condition["type"] for condition in ours}
        others = [
            condition
            for condition in stored.status.conditions or ()
            if condition.get("type") not in types
        ]
        version = stored.metadata.resource_version
        return {
            **body,
            "metadata": {**body["metadata"], "resourceVersion": version},
            "status": {**body["status"], "conditions": [*others, *ours]},
        }

    async def _in_served_version(
        self, resource: Resource, send: Callable[[Resource], Awaitable[T]]
    ) -> T:
        """Send a request for the resource in the version that the API server serves. The object may
        be missing because the version has changed since it was looked up.
        """
        variant = await self._versions.of(resource)
        try:
            return await send(variant)
        except NotFound:
            served = await self._versions.of(resource, again=True)
            if served == variant:
                raise
            return await send(served)

    async def _stored(self, resource: Resource, namespace: str, name: str) -> KubeObject | None:
        async def get(variant: Resource) -> KubeObject:
            await self._turn()
            return await self._client.get(variant, name, KubeObject, namespace=namespace)

        try:
            return await self._in_served_version(resource, get)
        except NotFound:
            return None

    # Events.

    async def _write_group_event(self, event: EventIntent, memory: WrittenGang) -> None:
        known = event.topic in memory.events
        repeated = known and event.repeats and await self._repeat(event)
        if not repeated and not await self._create_event(event, "event") and event.repeats:
            await self._repeat(event)

    async def write_event(self, event: EventIntent) -> None:
        """Create an Event, or update count and message of the existing one.

        Raises:
            RetryLater: The write failed for the moment, or its result is unknown. A definite
                refusal counts as written.
        """
        try:
            if not await self._create_event(event, "pod event"):
                await self._repeat(event)
        except KubeError as error:
            if is_temporary(error):
                raise self._retry(error) from error
            self._reporting.refused("EventIntent").inc()

    async def _create_event(self, event: EventIntent, kind: str) -> bool:
        """Create an Event; False: an earlier process has written it."""
        await self._turn()
        try:
            await self._client.create(CORE_EVENTS, event.body, namespace=event.namespace)
        except Conflict:
            return False
        self._reporting.wrote(kind).inc()
        return True

    async def _repeat(self, event: EventIntent) -> bool:
        """Update count and message of an existing Event; False: it has expired."""
        await self._turn()
        try:
            stored = await self._client.get(
                CORE_EVENTS, event.name, StoredEvent, namespace=event.namespace
            )
            again: dict[str, Any] = {
                "count": (stored.count or 1) + 1,
                "message": event.message,
                "lastTimestamp": event.body["lastTimestamp"],
            }
            await self._turn()
            await self._client.patch(CORE_EVENTS, event.name, again, namespace=event.namespace)
        except NotFound:
            return False
        self._reporting.wrote("event").inc()
        return True

    async def _write_pod_events(
        self, pods: Sequence[PodRef], event_of: PodEvent, verdict: Verdict
    ) -> None:
        for number, pod in enumerate(pods):
            if not self._pod_events.try_draw(self._clock.now_ms() / 1000):
                self._reporting.dropped.inc(len(pods) - number)
                break
            event = event_of(verdict, pod, self._clock.now_ms())
            await self._create_event(event, "pod event")

    # Pods.

    async def _mark_all(self, intent: MarkPods, memory: WrittenGang) -> None:
        if not intent.scaling:
            for mark in intent.marks:
                await self._turn()
                await self._mark(mark, intent, memory)
            return
        results = await asyncio.gather(
            *(self._mark_for_scaling(mark, intent, memory) for mark in intent.marks),
            return_exceptions=True,
        )
        for result in results:
            # The other marks are written; those that failed are written by the next plan.
            if isinstance(result, BaseException):
                raise result

    async def _mark_for_scaling(self, mark: PodMark, intent: MarkPods, memory: WrittenGang) -> None:
        async with self._in_flight:
            wait_s = self._scaling.draw(self._clock.now_ms() / 1000)
            if wait_s:
                await asyncio.sleep(wait_s)
            await self._mark(mark, intent, memory)

    async def _mark(self, mark: PodMark, intent: MarkPods, memory: WrittenGang) -> None:
        patch = partial(
            self._client.patch,
            PODS,
            mark.pod.name,
            namespace=intent.namespace,
            subresource="status",
            patch_type="strategic",
        )
        written = Report(mark.reason, mark.message, self._clock.now_ms())
        try:
            reply = await patch(mark.body)
        except KubeError as error:
            if is_temporary(error):
                raise
            self._refused(intent, error, memory)
            memory.marked[mark.pod.uid] = written
            return
        self._reporting.wrote("condition").inc()
        memory.marked[mark.pod.uid] = written
        if _decode_pod(reply.body).spec.node_name:
            # Bound between the verdict and this write: a pod on a node must not look unscheduled.
            await patch(unmark(mark))

    async def _free_nodes(self, intent: FreeNodes, memory: WrittenGang) -> None:
        for pod in intent.pods:
            await self._turn()
            # Through the status, which the controller may write; a merge patch removes keys.
            try:
                await self._client.patch(
                    PODS,
                    pod.name,
                    free_node(pod),
                    namespace=intent.namespace,
                    subresource="status",
                    patch_type="merge",
                )
            except KubeError as error:
                if is_temporary(error):
                    raise
                self._refused(intent, error, memory)
            memory.ended |= {pod.uid}

    async def _turn(self) -> None:
        """Wait until the rate of writes allows the next one."""
        wait_s = self._writes.draw(self._clock.now_ms() / 1000)
        if wait_s:
            await asyncio.sleep(wait_s)
