"""Single reads of a stream from its leader, for services that begin to read or write it.

Foreign messages may be anywhere in a stream; the readers here skip them.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

from shared.bus.connection import Bus
from shared.bus.errors import ApiRefused
from shared.bus.jetstream_api import STREAM_NOT_FOUND, StreamInfo
from shared.contracts.foreign_messages import OnForeign

logger = logging.getLogger(__name__)

T = TypeVar("T")
#: Interval of requests for a stream that setup has not created yet.
_LOOK_EVERY_S: Final = 0.5


class Newest(NamedTuple, Generic[T]):
    """The newest record of a subject, None when it has none, and the sequence of its last message
    of any origin, 0 when it has none: a writer on the subject appends with that as its condition.
    """

    record: T | None
    last_seq: int


async def newest_record(
    bus: Bus,
    stream: str,
    subject: str,
    decode: Callable[[bytes], T | None],
    on_foreign: OnForeign,
) -> Newest[T]:
    """The newest record of a subject that has few messages: reads the last message, and all of them
    if that is a foreign one.

    `decode` returns None for a foreign message (`unless_foreign`); `on_foreign` is called with
    each.

    Raises:
        BusError: The leader does not answer, or refuses.
    """
    last = await bus.get_last(stream, subject)
    if last is None:
        return Newest(None, 0)
    record = decode(last.payload)
    if record is not None:
        return Newest(record, last.seq)
    seq = 1
    while (message := await bus.get_next(stream, subject, seq)) is not None and seq <= last.seq:
        here = decode(message.payload)
        if here is None:
            on_foreign(stream, message.seq, message.subject, message.payload)
        record = here or record
        seq = message.seq + 1
    return Newest(record, last.seq)


async def wait_for_stream(bus: Bus, stream: str) -> StreamInfo:
    """State of a stream; waits without limit until setup has made the stream.

    Raises:
        ApiRefused: JetStream refuses for another reason.
        NoAnswer: JetStream does not answer.
    """
    logged = False
    while True:
        try:
            return await bus.stream_info(stream)
        except ApiRefused as error:
            if error.err_code != STREAM_NOT_FOUND:
                raise
        if not logged:
            logger.warning("stream %s does not exist yet: waiting until NATS is set up", stream)
            logged = True
        await asyncio.sleep(_LOOK_EVERY_S)


async def last_of_foreign(
    bus: Bus, stream: str, seq: int, is_foreign: Callable[[bytes], bool]
) -> int:
    """Sequence of the last message in the unbroken run of foreign messages after record `seq`;
    `seq` when the next message is a record, or there is none.

    Raises:
        BusError: The leader does not answer, or refuses.
    """
    while (message := await bus.get_message(stream, seq + 1)) is not None:
        if not is_foreign(message.payload):
            break
        seq += 1
    return seq
