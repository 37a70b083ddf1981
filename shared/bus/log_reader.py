"""Reads a log without gaps: every record once, in order, from a chosen sequence on.

A durable consumer without acknowledgements does not repeat messages that a broken connection lost.
But its deliveries are numbered without gaps. At a gap, a reconnection, or a heartbeat that counts
more deliveries than arrived, the reader resets the consumer to the next record that it needs, and
continues from a new inbox.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from shared.bus.connection import Bus
from shared.bus.errors import ApiRefused, LogGap, NoAnswer, StreamReplaced
from shared.bus.jetstream_api import STREAM_NOT_FOUND
from shared.bus.pull import Delivery, Interrupted, PullLoop, ReadingPace

#: Between attempts to reach a consumer that does not answer.
PAUSE_S: Final = 0.25


class LogReader:
    """Follows a log through its durable consumer (acknowledgement: none), and reads lost messages
    again.
    """

    def __init__(
        self, bus: Bus, stream: str, consumer: str, *, filtered: bool = False, batch: int = 1024
    ) -> None:
        """Bind to a durable consumer that setup made, with at most `batch` records in flight.

        `filtered`: it delivers some subjects only, so that stream sequences have holes.
        """
        self._bus = bus
        self._stream = stream
        self._topic = f"log {stream}"
        self._consumer = consumer
        self._filtered = filtered
        self._batch = batch
        #: Full speed, unless set otherwise.
        self.pace = ReadingPace()
        self._next = 1
        #: Id of the stream that is being read; "" before the first contact.
        self._generation = ""
        #: Where the log ended when reading (re)began, the server's time then, and ours.
        self._backlog_end = 0
        self._server_ms: int | None = None
        self._began_s = 0.0

    def age_ms(self, delivery: Delivery) -> int:
        """Age in milliseconds of a record that was in the log before reading began or was
        resumed; 0 for a later record.

        The difference of two instants of the server's clock, plus the time that has passed on ours
        since: clocks of two machines are never compared.
        """
        if delivery.seq > self._backlog_end or self._server_ms is None:
            return 0
        passed_s = asyncio.get_running_loop().time() - self._began_s
        return max(0, self._server_ms - delivery.stored_ms) + int(passed_s * 1000)

    async def run(self, start: int, handler: Callable[[list[Delivery]], Awaitable[None]]) -> None:
        """Reset the consumer to sequence `start`, 1 or more, and hand over records from there on,
        in order, each once, until cancelled; the next ones wait until the handler returns.

        Raises:
            LogGap: Records before the next one are no longer in the stream: take a snapshot, then
                run again.
            StreamReplaced: The stream was created again since this reader first read it, so its
                known state is invalid.
        """
        self._next = start

        async def take(batch: list[Delivery]) -> None:
            if batch[0].seq < self._next:
                # The consumer was reset to the next record, so this one is of another stream.
                raise Interrupted(f"record {batch[0].seq} came, {self._next} was next")
            if not self._filtered and batch[0].seq > self._next:
                raise LogGap(self._stream, self._next, batch[0].seq)
            await handler(batch)
            self._next = batch[-1].seq + 1

        try:
            await self._read(take)
        finally:
            # No task reads this log any more, so its problems must not keep a service unready.
            self._bus.report(self._topic, "")

    async def _read(self, take: Callable[[list[Delivery]], Awaitable[None]]) -> None:
        while True:
            await self._rewind()
            loop = PullLoop(
                self._bus,
                self._stream,
                self._consumer,
                batch=self._batch,
                strict=True,
                pace=self.pace,
            )
            try:
                await loop.run(take)
            except Interrupted:
                continue

    async def _rewind(self) -> None:
        """Reset the consumer to the next record; waits until JetStream answers."""
        while True:
            try:
                info = await self._bus.stream_info(self._stream)
                self._check(info.generation, info.first_seq, info.last_seq)
                self._backlog_end, self._server_ms = info.last_seq, info.now_ms
                self._began_s = asyncio.get_running_loop().time()
                await self._bus.reset_consumer(self._stream, self._consumer, self._next)
            except NoAnswer as error:
                self._bus.report(self._topic, str(error))
            except ApiRefused as error:
                if error.err_code != STREAM_NOT_FOUND:
                    raise
                self._bus.report(self._topic, str(error))
            else:
                self._bus.report(self._topic, "")
                return
            await asyncio.sleep(PAUSE_S)

    def _check(self, generation: str, first_seq: int, last_seq: int) -> None:
        if self._generation not in {"", generation}:
            raise StreamReplaced(self._stream)
        if last_seq < self._next - 1:
            # A server that keeps its files never loses an acknowledged record.
            raise StreamReplaced(self._stream)
        self._generation = generation
        if first_seq > self._next:
            raise LogGap(self._stream, self._next, first_seq)
