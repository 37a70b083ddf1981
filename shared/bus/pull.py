"""Pulls from durable consumers in batches, by a loop with callbacks that survives reconnections.

Two readers: `PullLoop` for work (explicit acknowledgement: binder, controllers), where the server
delivers again what was lost; `LogReader` (in `log_reader`) for logs whose records must arrive
without a gap (planners, webhook), built on a strict `PullLoop`.
"""

import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from shared.bus.connection import Bus, Message
from shared.bus.jetstream_api import NANOSECONDS, PullRequest

#: A pull without messages ends after this time and is repeated.
EXPIRES_S: Final = 30
#: Interval of the server's heartbeats while there are no messages.
HEARTBEAT_S: Final = 5
#: After a longer silence our pulls count as lost.
SILENCE_MAX_S: Final = 2 * HEARTBEAT_S + 2.0
#: Pause after a refusal (no leader, no such consumer yet) before the next pull.
PAUSE_S: Final = 0.25

#: Limit of one pull in bytes, above the largest message.
_BATCH_BYTES: Final = 8 << 20
#: At rest: after a silence of this length, the next message does not belong to a burst.
_SILENT_S: Final = 0.5

_HEARTBEAT: Final = "100"
#: Status at the end of a drain: no further message waits.
_EMPTY: Final = "404"
_ACK_TOKENS: Final = 9
_encode: Final = msgspec.json.encode

Handler = Callable[[list["Delivery"]], Awaitable[None]]


class Interrupted(Exception):
    """A strict loop may have lost a message: reset the consumer and pull again."""


class Delivery:
    """One message from a stream, with its delivery by the consumer.

    Acknowledge it exactly once if the consumer requires that; for a log the four methods have no
    effect.

    Attributes:
        subject: Its subject in the stream.
        payload: Its content.
        seq: Its sequence in the stream.
        number: Its sequence among this consumer's deliveries; contiguous.
        delivered: How often it has been delivered, this time included.
        stored_ms: When the stream stored it.
        pending: Messages for this consumer that the stream had behind it at its delivery.
    """

    __slots__ = ("_bus", "_reply", "_tokens", "number", "payload", "seq", "subject")

    def __init__(self, bus: Bus, message: Message) -> None:
        self._bus = bus
        self._reply = message.reply
        # $JS.ACK[.<domain>.<account>].<stream>.<consumer>.<delivered>.<seq>.<number>.<ns>.<pending>
        # (and a random token behind it where there is a domain)
        tokens = message.reply.split(".")
        self._tokens = tokens if len(tokens) == _ACK_TOKENS else ["", "", *tokens[4:11]]
        self.subject = message.subject
        self.payload = message.payload
        self.seq = int(self._tokens[5])
        self.number = int(self._tokens[6])

    @property
    def delivered(self) -> int:
        return int(self._tokens[4])

    @property
    def stored_ms(self) -> int:
        return int(self._tokens[7]) // 1_000_000

    @property
    def pending(self) -> int:
        return int(self._tokens[8])

    async def ack(self) -> None:
        """Report the work done. Not confirmed: if this is lost, the message is delivered again."""
        await self._bus.publish(self._reply, b"+ACK")

    async def nak(self, delay_s: float = 0.0) -> None:
        """Have the message delivered again after `delay_s`."""
        delay = _encode({"delay": int(delay_s * NANOSECONDS)})
        await self._bus.publish(self._reply, b"-NAK " + delay if delay_s > 0 else b"-NAK")

    async def in_progress(self) -> None:
        """Report work in progress: the consumer's ack wait starts again."""
        await self._bus.publish(self._reply, b"+WPI")

    async def term(self, reason: str) -> None:
        """Have it never delivered again; `reason` is for the server's advisory."""
        await self._bus.publish(self._reply, f"+TERM {reason}".encode())


class ReadingPace:
    """The delay with which a log is read; the reader's owner may change it at any time.

    At full speed a standing pull makes the server send each record when it is stored: for a reader
    that must act on a record at once. At rest the reader pulls once per pause while records arrive,
    which saves a wakeup per record here and in the server: for a standby, or a reader of its own
    records. During a silence, one pull waits for one record, so that the first record after it
    arrives at once.

    A change from rest to full speed works at once. In the other direction, a standing pull
    continues until the server has filled or dropped it (30 s).
    """

    def __init__(self) -> None:
        """Full speed."""
        #: Whether records are sent as they are stored.
        self.full = True
        self._pause_s = 0.0
        self._changed = asyncio.Event()

    def go_full(self) -> None:
        """Receive each record at once from now on; a pause in progress ends."""
        self.full = True
        self._changed.set()

    def rest(self, pause_s: float) -> None:
        """Pull once per `pause_s` seconds (0 or more) from now on while records arrive; a pause in
        progress ends.

        With 0, one pull follows the other: the pace of a reader that catches up.
        """
        self.full = False
        self._pause_s = pause_s
        self._changed.set()

    async def pause(self) -> None:
        """Wait for the pause, or until the pace changes."""
        self._changed.clear()
        if self.full or not self._pause_s:
            return
        try:
            async with asyncio.timeout(self._pause_s):
                await self._changed.wait()
        except TimeoutError:
            pass


class PullLoop:
    """Pulls from one durable consumer for as long as `run` runs."""

    def __init__(
        self,
        bus: Bus,
        stream: str,
        consumer: str,
        *,
        batch: int = 256,
        strict: bool = False,
        pace: ReadingPace | None = None,
    ) -> None:
        """Bind to a durable consumer that setup made.

        At most `batch` messages are requested and not yet taken by the handler. `strict`: end with
        `Interrupted` whenever a message may have been lost. `pace`: None for full speed.
        """
        self._bus = bus
        self._stream = stream
        self._consumer = consumer
        self._batch = batch
        self._strict = strict
        self._pace = pace or ReadingPace()
        self._topic = f"consumer {stream}/{consumer}"
        self._inbox = bus.new_inbox()
        self._pulls = itertools.count(1)
        self._arrived: list[Delivery] = []
        #: Requested messages that have not arrived: the server may still send so many.
        self._outstanding = 0
        #: Of these, the messages that a drain requested.
        self._draining = 0
        #: At rest: whether a message has arrived since a drain last found none.
        self._some = False
        #: At rest: whether the newest drain took all messages.
        self._emptied = False
        #: At rest: since when the loop waits for one message; infinite while messages arrive.
        self._waiting_since_s = math.inf
        #: `number` of the newest delivery.
        self._last_number = 0
        self._interruption = ""
        self._pausing = False
        self._unwell = False
        self._stopped = False
        self._wake = asyncio.Event()

    async def run(self, handler: Handler) -> None:
        """Give the arrived messages to `handler`, batch after batch, until cancelled or `stop` was
        called.

        At most `batch` messages are requested beyond those that the handler has taken, so a slow
        handler causes back-pressure. An exception of the handler ends the loop and is raised here.
        """
        subscription = await self._bus.subscribe(f"{self._inbox}.*", self._on_message)
        forget = self._bus.on_reconnect(self._on_reconnect)
        try:
            while not self._stopped or self._arrived:
                if self._interruption:
                    raise Interrupted(self._interruption)
                await self._ask()
                if not (self._arrived or self._interruption or self._stopped):
                    await self._wait()
                batch, self._arrived = self._arrived, []
                if batch:
                    await handler(batch)
        finally:
            forget()
            self._well()
            await subscription.close()

    def stop(self) -> None:
        """Request no more; `run` returns when the handler has taken all arrived messages."""
        self._stopped = True
        self._wake.set()

    async def _ask(self) -> None:
        """Pull again whenever half of the batch has been taken."""
        if self._pausing:
            self._pausing = False
            await asyncio.sleep(PAUSE_S)
        if self._stopped or not self._bus.connected:
            return
        if not self._pace.full:
            await self._ask_slowly()
            return
        expected = self._outstanding + len(self._arrived)
        if expected <= self._batch // 2:
            await self._pull(self._batch - expected)

    async def _ask_slowly(self) -> None:
        """Wait for one message; then drain after each pause, until a drain finds no message.

        A message after a long silence is not followed by a drain: wait for one more first.
        """
        if self._outstanding or self._arrived:
            return
        now_s = asyncio.get_running_loop().time()
        if not self._some or now_s - self._waiting_since_s >= _SILENT_S:
            self._some = False
            self._waiting_since_s = now_s
            await self._pull(1)
            return
        self._waiting_since_s = math.inf
        if self._emptied:
            self._emptied = False
            await self._pace.pause()
        self._some = False
        self._draining = self._batch
        await self._request(PullRequest(batch=self._batch, max_bytes=_BATCH_BYTES, no_wait=True))

    async def _pull(self, count: int) -> None:
        self._emptied = True  # what comes now is not a drain's rest: it may wait for a pause
        await self._request(
            PullRequest(
                batch=count,
                max_bytes=_BATCH_BYTES,
                expires=EXPIRES_S * NANOSECONDS,
                idle_heartbeat=HEARTBEAT_S * NANOSECONDS,
            )
        )

    async def _request(self, request: PullRequest) -> None:
        self._outstanding += request.batch
        await self._bus.publish(
            f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}",
            _encode(request),
            reply=f"{self._inbox}.{next(self._pulls)}",
        )

    async def _wait(self) -> None:
        self._wake.clear()
        try:
            async with asyncio.timeout(SILENCE_MAX_S):
                await self._wake.wait()
        except TimeoutError:
            self._lost("the server has fallen silent")

    async def _on_message(self, message: Message) -> None:
        status = message.headers.get("Status")
        if status is not None and not message.reply:
            self._on_status(status, message)
        else:
            self._well()
            delivery = Delivery(self._bus, message)
            self._outstanding = max(0, self._outstanding - 1)
            self._draining = max(0, self._draining - 1)
            self._some = True
            if self._strict and delivery.number != self._last_number + 1:
                self._lost(f"delivery {delivery.number} came after {self._last_number}")
            elif not self._interruption:
                self._last_number = delivery.number
                self._arrived.append(delivery)
        self._wake.set()

    def _on_status(self, status: str, message: Message) -> None:
        if status == _HEARTBEAT:
            # Other readers of a shared consumer may have received the messages that are missing.
            newest = int(message.headers.get("Nats-Last-Consumer", "0"))
            if self._strict and newest > self._last_number:
                self._lost("the last deliveries did not arrive")
            self._well()
            return
        if status == _EMPTY:
            self._outstanding = max(0, self._outstanding - self._draining)
            self._draining = 0
            self._emptied = True
            self._well()
            return
        # 408: it expired. 409: its limit in bytes is reached, or the consumer moved. 503: no server
        # serves it. Without a header, no requested message is left open.
        left = message.headers.get("Nats-Pending-Messages")
        self._outstanding = max(0, self._outstanding - int(left)) if left is not None else 0
        self._draining = min(self._draining, self._outstanding)
        if left is None:
            self._pausing = True
            text = message.headers.get("Description", "no server serves the consumer")
            self._unwell = True
            self._bus.report(self._topic, f"{status} {text}")

    def _on_reconnect(self) -> None:
        self._lost("reconnected")
        self._wake.set()

    def _lost(self, why: str) -> None:
        """Forget the pulls that are in flight, and in strict mode end the loop."""
        self._outstanding = self._draining = 0
        if self._strict:
            self._interruption = why

    def _well(self) -> None:
        if self._unwell:
            self._unwell = False
            self._bus.report(self._topic, "")
