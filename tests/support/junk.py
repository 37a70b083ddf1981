"""Has a nats-server store what no service wrote: its own answers, as a holder of a service's key
can (ADR 0044).
"""

from typing import Final

from shared.bus.connection import Bus
from shared.contracts import subjects
from tests.support.waiting import eventually

_API: Final = "$JS.API"


async def store_answer(bus: Bus, stream: str, subject: str) -> int:
    """JSON of JetStream's API on a subject of the stream; returns its sequence there."""
    question = f"{_API}.STREAM.INFO.{subjects.DECISIONS}"
    return await _stored(bus, stream, question, b"", subject)


async def store_copy(bus: Bus, stream: str, source: str, consumer: str, subject: str) -> int:
    """The next record of a consumer of the stream `source`, under the subject that it has there: an
    empty message on `subject` when there is none.
    """
    question = f"{_API}.CONSUMER.MSG.NEXT.{source}.{consumer}"
    return await _stored(bus, stream, question, b'{"batch":1,"no_wait":true}', subject)


async def _stored(bus: Bus, stream: str, question: str, body: bytes, reply: str) -> int:
    before = (await bus.stream_info(stream)).last_seq
    await bus.publish(question, body, reply=reply)

    async def there() -> int:
        last = (await bus.stream_info(stream)).last_seq
        return last if last > before else 0

    return await eventually(there, because="the server answers to whatever is named")
