"""Storing outcomes: one per decision, and the acknowledgement only after it."""

import logging
from typing import Final, Literal

from shared.bus.connection import Bus, StoredMessage
from shared.bus.errors import AppendRefused, BusError, WrongLastSequence
from shared.bus.publisher import Publisher
from shared.bus.pull import Delivery
from shared.contracts import subjects
from shared.contracts.codec import decode_outcome, encode
from shared.contracts.outcomes import Outcome

logger = logging.getLogger(__name__)

Settled = Literal["done", "refused", "unanswered"]

#: Before a decision whose outcome the stream refuses (it is full) comes again.
_RETRY_S: Final = 1.0


async def settle(publisher: Publisher, bus: Bus, delivery: Delivery, outcome: Outcome) -> Settled:
    """Store `outcome` unless the decision has one already, then acknowledge.

    What a binder wrote that did not know yet that DECISIONS was made anew is no outcome of this
    decision, although it bears its number: it is replaced.

    Returns:
        "done" when the decision is finished and acknowledged. Otherwise the outcome could not be
        stored, and the message stays and comes again to this binder or another one: "refused" by
        the server, whose storage is full, say, or "unanswered".
    """
    subject = subjects.outcome(outcome.gang_id, outcome.decision_seq)
    try:
        await _store(publisher, bus, subject, outcome)
    except WrongLastSequence:
        logger.debug("%s: another outcome was first", subject)
    except AppendRefused as error:
        logger.error("%s was refused: %s", subject, error)
        await give_back(delivery, _RETRY_S)
        return "refused"
    except BusError as error:
        logger.warning("%s is not stored: %s", subject, error)
        return "unanswered"
    await acknowledge(delivery)
    return "done"


async def _store(publisher: Publisher, bus: Bus, subject: str, outcome: Outcome) -> None:
    """Store it as the first of its decision. Raises WrongLastSequence when it is not the first."""
    payload = encode(outcome)
    try:
        await (await publisher.publish(subject, payload, expected_last_subject_sequence=0))
    except WrongLastSequence:
        there = await bus.get_last(subjects.OUTCOMES, subject)
        if there is None or not is_of_another_life(there, outcome.incarnation):
            raise
        await (await publisher.publish(subject, payload, expected_last_subject_sequence=there.seq))


def is_of_another_life(stored: StoredMessage, incarnation: str) -> bool:
    """Say whether an outcome answers a decision of another DECISIONS than `incarnation`."""
    told: str = decode_outcome(stored.payload).incarnation
    return bool(told and incarnation) and told != incarnation


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
