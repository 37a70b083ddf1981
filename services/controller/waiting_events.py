"""Writes `FailedScheduling` Events on waiting pods, as kube-scheduler does.

They have a rate of their own, apart from the writes of statuses, and no delivery waits for them. A
process that ends leaves the remaining Events unwritten; the condition PodScheduled of the pods has
the same sentence.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from services.controller.core.events import waiting_event
from services.controller.core.statuses.waiting_pods import WaitingPods, pending_reason
from services.controller.errors import RetryLater
from services.controller.intent_writer import IntentWriter
from shared.contracts.verdicts import Verdict
from shared.pacing import TokenBucket
from shared.runtime.steady_clock import SteadyClock

logger = logging.getLogger(__name__)

Newest = Callable[[str], Awaitable[Verdict | None]]
"""Reads a gang's newest verdict; None if it has been removed. Raises RetryLater."""


class WaitingEvents:
    def __init__(
        self, writer: IntentWriter, clock: SteadyClock, newest: Newest, *, events_per_s: int
    ) -> None:
        """Nothing is written before `run`, and nothing at all with a rate of 0."""
        self._writer = writer
        self._clock = clock
        self._newest = newest
        self._on = events_per_s > 0
        per_s = max(events_per_s, 1)
        self._bucket = TokenBucket(burst=per_s, per_s=per_s)
        self._pods = WaitingPods()
        self._news = asyncio.Event()

    def note(self, verdict: Verdict) -> None:
        if self._on:
            self._pods.note(verdict, self._clock.now_ms())
            self._news.set()

    async def run(self, acts: Callable[[], bool]) -> None:
        """Write Events until cancelled, but none while `acts` returns False."""
        while True:
            wait_ms = self._pods.wait_ms(self._clock.now_ms())
            if wait_ms == 0 and acts():
                await self._write_next()
                continue
            self._news.clear()
            pause_s = None if wait_ms is None else max(wait_ms, 1_000 if wait_ms == 0 else 1) / 1000
            try:
                async with asyncio.timeout(pause_s):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def _write_next(self) -> None:
        pause_s = self._bucket.draw(self._clock.now_ms() / 1000)
        if pause_s:
            await asyncio.sleep(pause_s)
        waiting = self._pods.next(self._clock.now_ms())
        if waiting is None:
            return
        gang_id, uid = waiting.verdict.gang_id, waiting.pod.uid
        try:
            # The gang's newest verdict may have been delivered to another replica.
            newest = await self._newest(gang_id)
            verdict = newest or msgspec.structs.replace(waiting.verdict, phase="Gone")
            if verdict != waiting.verdict:
                self._pods.note(verdict, self._clock.now_ms())
            why = pending_reason(verdict)
            if why is None or all(pod.uid != uid for pod in verdict.waiting):
                return
            event = waiting_event(verdict, waiting.pod, why, now_ms=self._clock.now_ms())
            await self._writer.write_event(event)
        except RetryLater as later:
            logger.info("no Event on pod %s: %s", waiting.pod.name, later)
            await asyncio.sleep(later.delay_s)
        else:
            self._pods.reported(gang_id, uid)
