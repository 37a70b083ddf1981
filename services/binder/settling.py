"""Storing outcomes: one per decision, and the acknowledgement only after it."""

import logging
from typing import Final

from shared.bus.errors import AppendRefused, BusError, WrongLastSequence
from shared.bus.publisher import Publisher
from shared.bus.pull import Delivery
from shared.contracts import subjects
from shared.contracts.codec import encode
from shared.contracts.outcomes import Outcome

logger = logging.getLogger(__name__)

#: Before a decision whose outcome the stream refuses (it is full) comes again.
_RETRY_S: Final = 1.0


async def settle(publisher: Publisher, delivery: Delivery, outcome: Outcome) -> bool:
    """Store `outcome` unless the decision has one already, then acknowledge.

    Returns:
        True when the decision is finished and acknowledged. False when the outcome could not be
        stored: the message stays, and comes again to this binder or another one.
    """
    subject = subjects.outcome(outcome.gang_id, outcome.decision_seq)
    try:
        stored = await publisher.publish(subject, encode(outcome), expected_last_subject_sequence=0)
        await stored
    except WrongLastSequence:
        logger.debug("%s: another outcome was first", subject)
    except AppendRefused as error:
        logger.error("%s was refused: %s", subject, error)
        await give_back(delivery, _RETRY_S)
        return False
    except BusError as error:
        logger.warning("%s is not stored: %s", subject, error)
        return False
    await acknowledge(delivery)
    return True


async def acknowledge(delivery: Delivery) -> None:
    """Have it never delivered again; without a connection it comes again and finds its outcome."""
    try:
        await delivery.ack()
    except BusError as error:
        logger.warning("decision %d is not acknowledged: %s", delivery.seq, error)


async def give_back(delivery: Delivery, delay_s: float = 0.0) -> None:
    """Let the message be delivered again; without a connection, after the ack wait."""
    try:
        await delivery.nak(delay_s)
    except BusError as error:
        logger.warning("decision %d is not given back: %s", delivery.seq, error)
