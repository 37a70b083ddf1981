"""Reads verdicts from deliveries of VERDICTS, and acknowledges them."""

import logging
from collections.abc import Awaitable
from typing import Final

import msgspec

from shared.bus.errors import BusError
from shared.bus.pull import Delivery
from shared.contracts import subjects
from shared.contracts.codec import decode_verdict
from shared.contracts.foreign_messages import OnForeign, unless_foreign
from shared.contracts.verdicts import Verdict

logger = logging.getLogger(__name__)

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


async def inform_consumer(acknowledgement: Awaitable[None]) -> None:
    """Send an acknowledgement of any kind. If it is lost, the message is delivered again."""
    try:
        await acknowledgement
    except BusError as error:
        logger.warning("the consumer did not get an acknowledgement: %s", error)
