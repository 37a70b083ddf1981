"""`--controllers=podgroup`: gives bare pods their PodGroup, as Volcano's controller does.

Reads only those verdicts that want a group: they have a subject of their own. For each: read one of
its pods and that pod's owner, create the group, patch its name onto every pod that lacks it. Each
step may have been done before, by us or by another replica: what exists is left as it is. The
watcher then sees pods that name a group; as long as some do not (they came later), verdicts
continue wanting it.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

import msgspec

from services.controller.core.bare_pods import joins, owner_resource, pod_group_for, queue_of
from services.controller.core.workloads.sizes import Workload
from services.controller.errors import RetryLater
from services.controller.other_controllers import OtherControllers
from shared.bus.connection import Bus
from shared.bus.errors import BusError
from shared.bus.pull import Delivery, PullLoop
from shared.contracts import subjects
from shared.contracts.codec import decode_verdict
from shared.contracts.foreign_messages import OnForeign, unless_foreign
from shared.contracts.verdicts import PodRef, Verdict
from shared.kube.client import KubeClient
from shared.kube.errors import ApiError, Conflict, Invalid, KubeError, MalformedAnswer, NotFound
from shared.kube.objects import ObjectMeta, Pod
from shared.kube.resources import PODGROUPS_VOLCANO, PODS, QUEUES_VOLCANO

logger = logging.getLogger(__name__)

_decode: Final = unless_foreign(subjects.VERDICTS, decode_verdict)

#: Gangs at the same time, and requests of each: pods wait for this before they can be scheduled,
#: so it may take as many connections as a binder does.
_GANGS: Final = 8
_PATCHES: Final = 4
_RETRY_S: Final = 2.0
_RETRY_S_MAX: Final = 30.0
#: While another's controllers live, or that is not known yet.
_RIVAL_S: Final = 5.0


class _Queue(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class PodGroupController:
    """Everything one podgroup controller does."""

    def __init__(
        self, bus: Bus, client: KubeClient, others: OtherControllers, on_foreign: OnForeign
    ) -> None:
        """Make one; nothing happens before `run`, nor while another controller lives, which makes
        them.
        """
        self._client = client
        self._others = others
        self._on_foreign = on_foreign
        self._pulling = PullLoop(bus, subjects.VERDICTS, subjects.PODGROUP_CONSUMER)
        self._gangs = asyncio.Semaphore(_GANGS)
        self._group = asyncio.TaskGroup()
        self._at_work: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Make groups until cancelled; what is not acknowledged then is delivered again."""
        async with self._group:
            others = self._group.create_task(self._others.run(lambda: None), name="podgroup-rivals")
            await self._others.known.wait()
            await self._pulling.run(self._take)
            others.cancel()

    async def stop_taking(self) -> None:
        """Pull no more."""
        self._pulling.stop()

    async def finish(self) -> None:
        """Let the gangs in flight end."""
        if self._at_work:
            await asyncio.wait(self._at_work)

    async def _take(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            try:
                verdict = _decode(delivery.payload)
            except msgspec.MsgspecError as error:
                logger.error("verdict %d cannot be read: %s", delivery.seq, error)
                await delivery.term("cannot be read")
                continue
            if verdict is None:
                self._on_foreign(
                    subjects.VERDICTS, delivery.seq, delivery.subject, delivery.payload
                )
                await _ack(delivery)
                continue
            if not verdict.group_wanted or verdict.phase == "Gone":
                await _ack(delivery)
                continue
            await self._gangs.acquire()
            task = self._group.create_task(
                self._make(verdict, delivery), name=f"podgroup-{delivery.seq}"
            )
            self._at_work.add(task)
            task.add_done_callback(self._at_work.discard)

    async def _make(self, verdict: Verdict, delivery: Delivery) -> None:
        """Give one gang its group, then acknowledge; or have it delivered again."""
        try:
            await self._give_group(verdict)
        except RetryLater as later:
            logger.info("group %s/%s: %s", verdict.namespace, verdict.group_wanted, later)
            await _nak(delivery, later.delay_s)
        else:
            await _ack(delivery)
        finally:
            self._gangs.release()

    async def _give_group(self, verdict: Verdict) -> None:
        """Create the group that the verdict wants and make its pods name it. Idempotent.

        Raises:
            RetryLater: The API server did not take some of it now, or another's controllers live.
        """
        if not self._others.none_lives:
            raise RetryLater("another's controllers make it", _RIVAL_S)
        try:
            if not verdict.uid:
                pod = await self._first(verdict.namespace, verdict.unnamed)
                if pod is None:
                    return  # all gone, or they have a group by now
                await self._create_group(verdict, pod)
            await self._join(verdict)
        except ApiError as error:
            if error.status in {401, 429} or error.status >= 500:
                delay_s = error.retry_after_s or _RETRY_S
                raise RetryLater(str(error), min(delay_s, _RETRY_S_MAX)) from error
            # No right to, or refused by a webhook (a closed queue): the owner of the rule must act,
            # and the next verdict of the gang tries again.
            logger.warning(
                "group %s/%s is refused: %s", verdict.namespace, verdict.group_wanted, error
            )
        except KubeError as error:
            raise RetryLater(str(error), _RETRY_S) from error

    async def _first(self, namespace: str, pods: Iterable[PodRef]) -> Pod | None:
        """The first of the pods that still is there."""
        for wanted in pods:
            try:
                pod = await self._client.get(PODS, wanted.name, Pod, namespace=namespace)
            except NotFound:
                continue
            except MalformedAnswer as error:
                logger.warning("pod %s/%s cannot be read: %s", namespace, wanted.name, error)
                continue
            if pod.metadata.uid == wanted.uid:
                return pod
        return None

    async def _create_group(self, verdict: Verdict, pod: Pod) -> None:
        owner = await self._owner(pod)
        notes = await self._queue_annotations(pod) if _asks_its_queue(pod) else {}
        manifest = pod_group_for(pod, owner, verdict.group_wanted, queue_notes=notes)
        try:
            await self._client.create(PODGROUPS_VOLCANO, manifest, namespace=verdict.namespace)
        except Conflict:
            return  # it exists: a user's, or ours from before
        logger.info("made group %s/%s", verdict.namespace, verdict.group_wanted)

    async def _owner(self, pod: Pod) -> Workload | None:
        found = owner_resource(pod)
        if found is None:
            return None
        resource, reference = found
        try:
            owner = await self._client.get(
                resource, reference.name, Workload, namespace=pod.metadata.namespace
            )
        except NotFound:
            return None
        return owner if owner.metadata.uid == reference.uid else None

    async def _queue_annotations(self, pod: Pod) -> dict[str, str]:
        try:
            queue = await self._client.get(QUEUES_VOLCANO, queue_of(pod), _Queue)
        except NotFound:
            return {}
        return queue.metadata.annotations

    async def _join(self, verdict: Verdict) -> None:
        """Patch the group's name onto every pod that lacks it, a few at a time; the first error
        ends it.
        """
        unnamed = iter(verdict.unnamed)
        errors: list[KubeError] = []

        async def patch_on() -> None:
            for pod in unnamed:
                if errors:
                    return
                try:
                    await self._client.patch(
                        PODS,
                        pod.name,
                        joins(pod.uid, verdict.group_wanted),
                        namespace=verdict.namespace,
                    )
                except (NotFound, Conflict, Invalid):
                    continue  # gone, or another pod of that name
                except KubeError as error:
                    errors.append(error)

        async with asyncio.TaskGroup() as group:
            for number in range(min(_PATCHES, len(verdict.unnamed))):
                group.create_task(patch_on(), name=f"join-{number}")
        if errors:
            raise errors[0]


def _asks_its_queue(pod: Pod) -> bool:
    """Whether the queue may say how large its gang is."""
    owner = pod.metadata.controller
    return owner is not None and (owner.api_version, owner.kind) == ("batch/v1", "Job")


async def _ack(delivery: Delivery) -> None:
    try:
        await delivery.ack()
    except BusError as error:
        logger.warning("verdict %d is not acknowledged: %s", delivery.seq, error)


async def _nak(delivery: Delivery, delay_s: float) -> None:
    try:
        await delivery.nak(delay_s)
    except BusError as error:
        logger.warning("verdict %d is not given back: %s", delivery.seq, error)
