"""A pipelined publisher for OUTCOMES and VERDICTS: a bounded number of messages is in flight, and
every error reaches its caller.

nats-py's `publish_async` never reports an error acknowledgement: its future hangs. The fenced logs
cannot be pipelined, because each append has to know the sequence of the one before
(`shared.bus.fence`).
"""

import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec

from shared.bus.connection import Bus, Message
from shared.bus.errors import AppendRefused, BusError, BusUnavailable, WrongLastSequence
from shared.bus.jetstream_api import WRONG_LAST_SEQUENCE, PublishAnswer, decode_publish_answer

ATTEMPTS_MAX: Final = 5


class _InFlight(msgspec.Struct, eq=False):
    """One message between its first attempt and its answer."""

    subject: str
    payload: bytes
    headers: Mapping[str, str]
    future: asyncio.Future[PublishAnswer]
    attempt: int = 0
    reply: str = ""
    overdue: asyncio.TimerHandle | None = None


class Publisher:
    """Publishes to streams without waiting for each acknowledgement."""

    def __init__(self, bus: Bus, *, in_flight_max: int = 256, timeout_s: float = 1.0) -> None:
        """Prepare; at most `in_flight_max` messages have no answer, and each of the `ATTEMPTS_MAX`
        attempts waits `timeout_s` seconds for it.
        """
        self._bus = bus
        self._timeout_s = timeout_s
        self._slots = asyncio.Semaphore(in_flight_max)
        self._in_flight: set[asyncio.Future[PublishAnswer]] = set()
        self._retries: set[asyncio.Task[None]] = set()

    async def publish(
        self,
        subject: str,
        payload: bytes,
        *,
        expected_last_subject_sequence: int | None = None,
        ttl_s: int | None = None,
    ) -> asyncio.Future[PublishAnswer]:
        """Send one message as soon as fewer than `in_flight_max` are in flight.

        An attempt without an answer is repeated, so the message may be stored twice, which does not
        matter in a stream that keeps the last message of a subject.

        Args:
            subject: The subject.
            payload: The message.
            expected_last_subject_sequence: Condition: sequence of the subject's last message, 0: it
                has none; None: no condition. A repetition may meet its own first copy, and fail
                with `WrongLastSequence`.
            ttl_s: Seconds after which the server deletes the message; None: it does not.

        Returns:
            A future of the acknowledgement. It fails with `WrongLastSequence` (another writer was
            first), `AppendRefused`, or `BusUnavailable` when no attempt was answered, and must be
            awaited, or get a callback that reads it.

        Raises:
            MessageTooLarge: Nothing was sent.
            BusClosed: Likewise.
        """
        headers: dict[str, str] = {}
        if expected_last_subject_sequence is not None:
            headers["Nats-Expected-Last-Subject-Sequence"] = str(expected_last_subject_sequence)
        if ttl_s is not None:
            headers["Nats-TTL"] = f"{ttl_s}s"
        await self._slots.acquire()
        sent = _InFlight(subject, payload, headers, asyncio.get_running_loop().create_future())
        self._in_flight.add(sent.future)
        sent.future.add_done_callback(self._finish)
        try:
            await self._send(sent)
        except BaseException:
            self._forget(sent)
            sent.future.cancel()
            raise
        return sent.future

    async def flush(self) -> None:
        """Wait until every message sent so far is answered or has failed; failures stay in their
        futures.
        """
        if self._in_flight:
            await asyncio.wait(set(self._in_flight))

    async def _send(self, sent: _InFlight) -> None:
        sent.attempt += 1
        await self._bus.wait_connected()
        sent.reply = self._bus.expect_reply(lambda message: self._on_answer(sent, message))
        sent.overdue = asyncio.get_running_loop().call_later(
            self._timeout_s, self._on_overdue, sent
        )
        await self._bus.publish(
            sent.subject, sent.payload, reply=sent.reply, headers=sent.headers or None
        )

    def _on_answer(self, sent: _InFlight, message: Message) -> None:
        if sent.future.done():
            return
        if not message.payload:
            return  # "no responders": the stream has no leader right now; the timer repeats it
        self._bus.appends.confirmed(sent.subject)
        answer = decode_publish_answer(message.payload)
        error = answer.error
        if error is None:
            sent.future.set_result(answer)
        elif error.passes_by_itself:
            return
        else:
            kind = WrongLastSequence if error.err_code == WRONG_LAST_SEQUENCE else AppendRefused
            text = f"{sent.subject}: {error.description}"
            sent.future.set_exception(kind(error.err_code, text))
        self._forget(sent)

    def _on_overdue(self, sent: _InFlight) -> None:
        self._forget(sent)
        if sent.future.done():
            return
        if self._bus.connected:
            self._bus.appends.unanswered(sent.subject)
        if sent.attempt >= ATTEMPTS_MAX:
            text = f"{sent.subject}: no answer to {sent.attempt} attempts"
            sent.future.set_exception(BusUnavailable(text))
            return
        task = asyncio.get_running_loop().create_task(self._retry(sent), name="publish again")
        self._retries.add(task)
        task.add_done_callback(self._retries.discard)

    async def _retry(self, sent: _InFlight) -> None:
        try:
            await self._send(sent)
        except BusError as error:
            self._forget(sent)
            if not sent.future.done():
                sent.future.set_exception(error)

    def _forget(self, sent: _InFlight) -> None:
        self._bus.forget_reply(sent.reply)
        if sent.overdue is not None:
            sent.overdue.cancel()

    def _finish(self, future: asyncio.Future[PublishAnswer]) -> None:
        self._in_flight.discard(future)
        self._slots.release()
