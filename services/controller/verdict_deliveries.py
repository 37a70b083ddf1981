"""Reads verdicts from deliveries of VERDICTS, and acknowledges them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from services.controller.errors import RETRY_S, RetryLater, is_temporary
from shared.bus.connection import Bus
from shared.bus.errors import BusError
from shared.bus.pull import Delivery, PullLoop
from shared.contracts import subjects
from shared.contracts.codec import decode_verdict
from shared.contracts.foreign_messages import OnForeign, unless_foreign
from shared.contracts.verdicts import Verdict
from shared.dialects.discovery import dialects
from shared.dialects.protocol import StatusPatch
from shared.kube.errors import KubeError

logger = logging.getLogger(__name__)

#: The longest delay before a verdict whose request failed is delivered again.
_RETRY_S_MAX: Final = 30.0

#: Decodes a payload; None for a message that no planner wrote.
decode: Final = unless_foreign(subjects.VERDICTS, decode_verdict)


async def read_verdict(delivery: Delivery, on_foreign: OnForeign) -> Verdict | None:
    """The delivery's verdict; None for a message that is malformed or that no planner wrote, which
    is then reported and settled.
    """
    try:
        verdict = decode(delivery.payload)
    except msgspec.MsgspecError as error:
        logger.error("verdict %d cannot be read: %s", delivery.seq, error)
        await inform_consumer(delivery.term("cannot be read"))
        return None
    if verdict is None:
        on_foreign(subjects.VERDICTS, delivery.seq, delivery.subject, delivery.payload)
        await inform_consumer(delivery.ack())
    return verdict


def status_patch(verdict: Verdict) -> StatusPatch | None:
    """The dialect's patch of the verdict's group; None when there is no group."""
    for dialect in dialects():
        if verdict.dialect == dialect.name:
            return dialect.status(verdict)
    if verdict.dialect:
        logger.warning("gang %s: dialect %s is unknown", verdict.gang, verdict.dialect)
    return None


async def inform_consumer(acknowledgement: Awaitable[None]) -> None:
    """Send an acknowledgement of any kind. If it is lost, the message is delivered again."""
    try:
        await acknowledgement
    except BusError as error:
        logger.warning("the consumer did not get an acknowledgement: %s", error)


class RequestConsumer:
    """Takes the verdicts of one consumer that ask a controller to write objects, several gangs at
    the same time.

    A verdict is acknowledged when its objects are written, or definitely refused. Otherwise it is
    delivered again, unless a newer one of its gang has replaced it.
    """

    def __init__(
        self,
        bus: Bus,
        consumer: str,
        handle: Callable[[Verdict], Awaitable[None]],
        on_foreign: OnForeign,
        *,
        gangs_max: int,
    ) -> None:
        """Nothing is read before `run`.

        Args:
            bus: Where the verdicts are read.
            consumer: The durable consumer.
            handle: Writes the objects of one gang, and raises RetryLater or KubeError to have the
                verdict delivered again. It may be called again for the same verdict.
            on_foreign: Called for messages that no planner wrote.
            gangs_max: Gangs that are handled at the same time.
        """
        self._handle = handle
        self._on_foreign = on_foreign
        self._name = consumer
        self._pulling = PullLoop(bus, subjects.VERDICTS, consumer)
        self._gangs = asyncio.Semaphore(gangs_max)
        self._tasks = asyncio.TaskGroup()
        self._at_work: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Handle verdicts until cancelled, or until `stop_taking`."""
        async with self._tasks:
            await self._pulling.run(self._take)

    async def stop_taking(self) -> None:
        """Pull no more."""
        self._pulling.stop()

    async def finish(self) -> None:
        """Wait until the gangs in flight are handled."""
        if self._at_work:
            await asyncio.wait(self._at_work)

    async def _take(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            verdict = await read_verdict(delivery, self._on_foreign)
            if verdict is None:
                continue
            await self._gangs.acquire()
            task = self._tasks.create_task(
                self._settle(verdict, delivery), name=f"{self._name}-{delivery.seq}"
            )
            self._at_work.add(task)
            task.add_done_callback(self._at_work.discard)

    async def _settle(self, verdict: Verdict, delivery: Delivery) -> None:
        try:
            await self._handle(verdict)
        except (RetryLater, KubeError) as failure:
            logger.info("%s of gang %s: %s", self._name, verdict.gang, failure)
            await inform_consumer(delivery.nak(_delay_s(failure)))
        else:
            await inform_consumer(delivery.ack())
        finally:
            self._gangs.release()


def _delay_s(failure: RetryLater | KubeError) -> float:
    if isinstance(failure, RetryLater):
        return failure.delay_s
    if not is_temporary(failure):
        return _RETRY_S_MAX
    return min(failure.retry_after_s or RETRY_S, _RETRY_S_MAX)
