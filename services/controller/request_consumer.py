"""Takes the verdicts of one consumer of VERDICTS that ask a controller to write objects, and
handles several gangs at the same time.

A verdict is acknowledged when its objects are written, or definitely refused. Otherwise it is
delivered again, unless a newer one of its gang has replaced it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from services.controller.errors import RetryLater
from services.controller.verdict_deliveries import inform_consumer, read_verdict
from shared.bus.connection import Bus
from shared.bus.pull import Delivery, PullLoop
from shared.contracts import subjects
from shared.contracts.foreign_messages import OnForeign
from shared.contracts.verdicts import Verdict

logger = logging.getLogger(__name__)


class RequestConsumer:
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
            handle: Writes the objects of one gang, and raises RetryLater to have the verdict
                delivered again. It may be called again for the same verdict.
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
        except RetryLater as later:
            logger.info("%s of gang %s: %s", self._name, verdict.gang, later)
            await inform_consumer(delivery.nak(later.delay_s))
        else:
            await inform_consumer(delivery.ack())
        finally:
            self._gangs.release()
