"""Storing outcomes: one per decision, and the acknowledgement only after it.

A binder that has a decision in a second or later delivery claims it first, in the outcome's own
subject (docs/adr/0002-what-the-binder-checks.md): an earlier delivery, whose binder may be alive
and merely not heard, stores no outcome from then on.

A foreign message on an outcome's subject is written behind as if it were not there; the other
records are what they were: it takes neither an outcome nor a claim away.
"""

import contextlib
import logging
from typing import Final, Literal

from services.binder.core.outcome import Sender
from shared.bus.connection import Bus
from shared.bus.errors import AppendRefused, BusError, WrongLastSequence
from shared.bus.newest import Newest, newest_record
from shared.bus.publisher import Publisher
from shared.bus.pull import Delivery
from shared.contracts import subjects
from shared.contracts.codec import decode_outcome, encode
from shared.contracts.foreign_messages import OnForeign, unless_foreign
from shared.contracts.outcomes import DecisionClaimed, Outcome, OutcomeRecord

logger = logging.getLogger(__name__)

Settled = Literal["done", "refused", "unanswered", "overtaken"]
Claimed = Literal["ours", "finished", "overtaken"]

#: Before a decision whose outcome the stream refuses (it is full) comes again.
_RETRY_S: Final = 1.0
#: Each failure means that another client has just written there: another binder once or twice.
_CLAIMS_MAX: Final = 8

_decode: Final = unless_foreign(subjects.OUTCOMES, decode_outcome)


class Ledger:
    """What is written of decisions in OUTCOMES, and by which binder."""

    def __init__(self, bus: Bus, on_foreign: OnForeign) -> None:
        """Write over `bus`; `on_foreign` is called for what no binder wrote."""
        self._bus = bus
        self._on_foreign = on_foreign
        self._publisher = Publisher(bus)

    async def claim(self, gang_id: str, sender: Sender) -> Claimed:
        """Begin with a decision that may be in other hands: from here on no earlier delivery of it
        stores an outcome.

        Returns:
            "finished" when it has its outcome, "overtaken" when a later delivery has it.

        Raises:
            BusError: Neither is known; nothing may be sent.
        """
        subject = subjects.outcome(gang_id, sender.decision_seq)
        for _ in range(_CLAIMS_MAX):
            record, behind = await self._newest(subject)
            if record is not None:
                if isinstance(record, Outcome) and _same_life(record, sender.generation):
                    return "finished"
                if _is_claim(record, sender.binder, sender.delivered):
                    return "ours"
                if not _may_follow(record, sender.delivered, sender.generation):
                    return "overtaken"
            claim = DecisionClaimed(
                gang_id=gang_id,
                decision_seq=sender.decision_seq,
                binder=sender.binder,
                delivered=sender.delivered,
                generation=sender.generation,
            )
            with contextlib.suppress(WrongLastSequence):
                await self._publish(subject, encode(claim), behind)
                return "ours"
        return "overtaken"

    async def settle(self, delivery: Delivery, outcome: Outcome) -> Settled:
        """Store `outcome` unless the decision has one already, then acknowledge.

        Returns:
            "done" when the decision is finished and acknowledged. Otherwise the outcome is not
            stored and the message stays: it is in later hands ("overtaken"), or comes again,
            because the server refused it (its storage is full, say) or did not answer.
        """
        subject = subjects.outcome(outcome.gang_id, outcome.decision_seq)
        try:
            if not await self._store(subject, outcome):
                return "overtaken"
        except AppendRefused as error:
            logger.error("%s was refused: %s", subject, error)
            await give_back(delivery, _RETRY_S)
            return "refused"
        except BusError as error:
            logger.warning("%s is not stored: %s", subject, error)
            return "unanswered"
        await acknowledge(delivery)
        return "done"

    async def _store(self, subject: str, outcome: Outcome) -> bool:
        """Store it as the first of its decision, or find that there is one; False: a later delivery
        has claimed it.
        """
        payload, behind = encode(outcome), 0
        for _ in range(_CLAIMS_MAX):
            with contextlib.suppress(WrongLastSequence):
                await self._publish(subject, payload, behind)
                return True
            record, behind = await self._newest(subject)
            if record is None:
                continue
            if isinstance(record, Outcome) and _same_life(record, outcome.generation):
                logger.debug("%s: another outcome was first", subject)
                return True
            mine = _is_claim(record, outcome.binder, outcome.delivered)
            if not mine and not _may_follow(record, outcome.delivered, outcome.generation):
                return False
        return False

    async def _newest(self, subject: str) -> Newest[OutcomeRecord]:
        return await newest_record(self._bus, subjects.OUTCOMES, subject, _decode, self._on_foreign)

    async def _publish(self, subject: str, payload: bytes, behind: int) -> None:
        await (
            await self._publisher.publish(subject, payload, expected_last_subject_sequence=behind)
        )


def _same_life(record: OutcomeRecord, generation: str) -> bool:
    """Whether it is about a decision of this DECISIONS: one that was lost had the same numbers."""
    return not (record.generation and generation) or record.generation == generation


def _is_claim(record: OutcomeRecord, binder: str, delivered: int) -> bool:
    return isinstance(record, DecisionClaimed) and (record.binder, record.delivered) == (
        binder,
        delivered,
    )


def _may_follow(record: OutcomeRecord, delivered: int, generation: str) -> bool:
    """Whether this delivery may write behind `record`: what another life left, or an earlier
    delivery's claim.
    """
    return not _same_life(record, generation) or record.delivered < delivered


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
