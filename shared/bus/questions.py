"""Typed requests between services: serve them, ask one service, ask all."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from shared.bus.connection import Bus, Message, Subscription
from shared.bus.errors import MessageTooLarge, NoAnswer
from shared.contracts import codec, subjects
from shared.contracts.questions import (
    EstimatesAnswer,
    EstimatesRequest,
    LedgerAnswer,
    LedgerQueue,
    LedgerRequest,
    LedgerTotal,
    StartEstimate,
)


async def ask_ledger(bus: Bus, *, timeout_s: float) -> LedgerAnswer:
    """The ledger of all queues as one answer. Queues that come and go between the requests for two
    pages may be missing.

    Args:
        bus: The connection to NATS.
        timeout_s: For each page.

    Raises:
        NoAnswer: No standby planner answers, or its pages do not go on.
    """
    queues: list[LedgerQueue] = []
    totals: dict[str, LedgerTotal] = {}
    after = ""
    while True:
        request = LedgerRequest(after=after)
        page = await ask(
            bus,
            subjects.ASK_LEDGER,
            request,
            codec.decode_ledger_answer,
            timeout_s=timeout_s,
        )
        # A planner of an older version answers each request with all queues.
        queues += [queue for queue in page.queues if queue.name > after]
        totals |= {total.resource: total for total in page.totals}
        if not page.more:
            by_resource = tuple(totals[name] for name in sorted(totals))
            return LedgerAnswer(queues=tuple(queues), shared=page.shared, totals=by_resource)
        if not page.queues or page.queues[-1].name <= after:
            raise NoAnswer(f"{subjects.ASK_LEDGER}: the page after {after!r} has no further queue")
        after = page.queues[-1].name


async def ask_estimates(bus: Bus, *, timeout_s: float) -> EstimatesAnswer:
    """When all waiting gangs are expected to start, as one answer. If a new run ends between the
    requests for two pages, the older pages are of the run before.

    Args:
        bus: The connection to NATS.
        timeout_s: For each page.

    Raises:
        NoAnswer: No standby planner answers, or its pages do not go on.
    """
    estimates: list[StartEstimate] = []
    after = ""
    while True:
        page = await ask(
            bus,
            subjects.ASK_ESTIMATES,
            EstimatesRequest(after=after),
            codec.decode_estimates_answer,
            timeout_s=timeout_s,
        )
        estimates += page.estimates
        if not page.more:
            return EstimatesAnswer(as_of_ms=page.as_of_ms, estimates=tuple(estimates))
        if not page.estimates or page.estimates[-1].gang_id <= after:
            raise NoAnswer(f"{subjects.ASK_ESTIMATES}: the page after {after!r} has no more gangs")
        after = page.estimates[-1].gang_id


Question = TypeVar("Question")
Answer = TypeVar("Answer")

_log = logging.getLogger(__name__)


async def serve(
    bus: Bus,
    subject: str,
    decode: Callable[[bytes], Question],
    answer: Callable[[Question], Awaitable[msgspec.Struct | None]],
) -> Subscription:
    """Answer requests on `subject`, one after the other, until the subscription is closed.

    A request that `decode` (of `shared.contracts.codec`) does not decode is logged and gets no
    answer, and neither does one whose answer is too large for a message. `answer` may return None
    for no answer, and must be quick, because the next request waits; an exception of it is a bug,
    and fails the bus.
    """

    async def handle(message: Message) -> None:
        try:
            question = decode(message.payload)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            _log.warning("a question on %s does not decode: %s", subject, error)
            return
        reply = await answer(question)
        if reply is None or not message.reply:
            return
        try:
            await bus.publish(message.reply, codec.encode(reply))
        except MessageTooLarge as error:
            # Whatever made it so large, the requester alone goes without an answer.
            _log.error("an answer on %s is not sent: %s", subject, error)

    return await bus.subscribe(subject, handle)


async def ask(
    bus: Bus,
    subject: str,
    question: msgspec.Struct | bytes,
    decode: Callable[[bytes], Answer],
    *,
    timeout_s: float,
) -> Answer:
    """Send a request, encoded here unless it is already, and return the first answer, decoded.

    Raises:
        NoAnswer: No service listens, none answered in time, or the answer did not decode.
    """
    payload = question if isinstance(question, bytes) else codec.encode(question)
    message = await bus.request(subject, payload, timeout_s=timeout_s)
    try:
        return decode(message.payload)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise NoAnswer(f"{subject}: the answer does not decode: {error}") from error


async def ask_all(
    bus: Bus,
    subject: str,
    question: msgspec.Struct,
    decode: Callable[[bytes], Answer],
    *,
    wait_s: float,
    answers_max: int = 1000,
) -> list[Answer]:
    """Send a request to all services, and return the answers that come within `wait_s` seconds.

    Returns early after `answers_max` answers, or when the server reports that no service listens.
    Answers that do not decode are logged and left out.
    """
    answers: list[Answer] = []
    enough = asyncio.Event()

    def collect(message: Message) -> None:
        if not message.payload and message.headers.get("Status") == "503":
            enough.set()
            return
        if len(answers) >= answers_max:
            return
        try:
            answers.append(decode(message.payload))
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            _log.warning("an answer on %s does not decode: %s", subject, error)
        if len(answers) >= answers_max:
            enough.set()

    reply = bus.expect_reply(collect)
    try:
        await bus.publish(subject, codec.encode(question), reply=reply)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await enough.wait()
    finally:
        bus.forget_reply(reply)
    return answers
