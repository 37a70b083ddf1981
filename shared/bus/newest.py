"""Finds the newest record of a subject that has few: foreign messages may stand behind it."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from shared.bus.connection import Bus
from shared.contracts.foreign_messages import OnForeign

T = TypeVar("T")


class Newest(NamedTuple, Generic[T]):
    """The newest record, None when there is none, and the sequence of the last message, foreign
    message or not: a writer on the subject writes behind that one. 0: there is no message.
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
    """Read a subject from the stream's leader: one message, and all of them if that is a foreign
    message.

    Args:
        bus: The connection.
        stream: Name of the stream.
        subject: One subject.
        decode: Returns None for a foreign message (`unless_foreign`).
        on_foreign: Called with each of those.

    Raises:
        BusError: It cannot be read.
    """
    last = await bus.get_last(stream, subject)
    if last is None:
        return Newest(None, 0)
    record = decode(last.payload)
    if record is not None:
        return Newest(record, last.seq)
    seq = 1
    while (found := await bus.get_next(stream, subject, seq)) is not None and seq <= last.seq:
        here = decode(found.payload)
        if here is None:
            on_foreign(stream, found.seq, found.subject, found.payload)
        record = here or record
        seq = found.seq + 1
    return Newest(record, last.seq)
