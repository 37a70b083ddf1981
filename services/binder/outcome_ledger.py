"""Storing outcomes: one per decision, and the acknowledgement only after it.

A binder that receives a decision in a second or later delivery claims it first, on the outcome's
subject (ADR 0002): from then on an earlier delivery, whose binder may live and be cut off from
NATS, stores no outcome.

A foreign message on an outcome's subject does not count: the next record is written behind it, and
outcomes and claims stay valid.
"""

import contextlib
import logging
from typing import Final, Literal

from services.binder.core.outcome import Sender
from shared.bus.connection import Bus
from shared.bus.errors import AppendRefused, BusError, WrongLastSequence
from shared.bus.publisher import Publisher
from shared.bus.pull import Delivery
from shared.bus.stream_reads import Newest, newest_record
from shared.contracts import subjects
from shared.contracts.codec import decode_outcome, encode
from shared.contracts.foreign_messages import OnForeign, unless_foreign
from shared.contracts.outcomes import DecisionClaimed, Outcome, OutcomeRecord

logger = logging.getLogger(__name__)

Settled = Literal["done", "refused", "unanswered", "overtaken"]
Claimed = Literal["ours", "finished", "overtaken"]

#: Delay of a decision whose outcome the stream refused, because it is full.
_RETRY_S: Final = 1.0
#: Attempts to write: each failure means that another client has just written there.
_CLAIMS_MAX: Final = 8

_decode: Final = unless_foreign(subjects.OUTCOMES, decode_outcome)


class OutcomeLedger:
    """Writes claims and outcomes of decisions into OUTCOMES."""

    def __init__(self, bus: Bus, on_foreign: OnForeign) -> None:
        """Write over `bus`; `on_foreign` is called for messages that no binder wrote."""
        self._bus = bus
        self._on_foreign = on_foreign
        self._publisher = Publisher(bus)

    async def claim(self, gang_id: str, sender: Sender) -> Claimed:
        """Claim a decision that another binder may have: from now on no earlier delivery of it
        stores an outcome.

        Returns:
            "ours" when it is claimed, "finished" when it has its outcome, "overtaken" when a later
            delivery claimed it.

        Raises:
            BusError: None of these is known; no request may be sent.
        """
        subject = subjects.outcome(gang_id, sender.decision_seq)
        for _ in range(_CLAIMS_MAX):
            record, behind = await self._newest(subject)
            if record is not None:
                if isinstance(record, Outcome) and _same_generation(record, sender.generation):
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

    async def settle(self, delivery: Delivery, outcome: Outcome, gang: str) -> Settled:
        """Store `outcome` unless the decision has one already, then acknowledge. Failures are
        logged about `gang`.

        Returns:
            "done" when the decision has an outcome and is acknowledged. Otherwise the outcome is
            not stored and the message stays: a later delivery claimed it ("overtaken"), or it is
            delivered again, because the server refused the outcome or did not answer.
        """
        subject = subjects.outcome(outcome.gang_id, outcome.decision_seq)
        try:
            if not await self._store(subject, outcome):
                return "overtaken"
        except AppendRefused as error:
            logger.error(
                "gang %s: the outcome of decision %d was refused: %s", gang, delivery.seq, error
            )
            await request_redelivery(delivery, _RETRY_S)
            return "refused"
        except BusError as error:
            logger.warning(
                "gang %s: the outcome of decision %d was not stored: %s", gang, delivery.seq, error
            )
            return "unanswered"
        await acknowledge(delivery)
        return "done"

    async def _store(self, subject: str, outcome: Outcome) -> bool:
        """Store it unless the decision has an outcome; False when a later delivery claimed it."""
        payload, behind = encode(outcome), 0
        for _ in range(_CLAIMS_MAX):
            with contextlib.suppress(WrongLastSequence):
                await self._publish(subject, payload, behind)
                return True
            record, behind = await self._newest(subject)
            if record is None:
                continue
            if isinstance(record, Outcome) and _same_generation(record, outcome.generation):
                logger.debug(
                    "another binder stored an outcome of decision %d first", outcome.decision_seq
                )
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


def _same_generation(record: OutcomeRecord, generation: str) -> bool:
    """Whether the record is of this generation of DECISIONS: a lost stream had equal sequences."""
    return not (record.generation and generation) or record.generation == generation


def _is_claim(record: OutcomeRecord, binder: str, delivered: int) -> bool:
    return isinstance(record, DecisionClaimed) and (record.binder, record.delivered) == (
        binder,
        delivered,
    )


def _may_follow(record: OutcomeRecord, delivered: int, generation: str) -> bool:
    """Whether this delivery may write behind `record`: another generation's, or the claim of an
    earlier delivery.
    """
    return not _same_generation(record, generation) or record.delivered < delivered


async def acknowledge(delivery: Delivery) -> None:
    """Acknowledge; without a connection it is delivered again, and has its outcome by then."""
    try:
        await delivery.ack()
    except BusError as error:
        logger.warning("decision %d is not acknowledged: %s", delivery.seq, error)


async def request_redelivery(delivery: Delivery, delay_s: float = 0.0) -> None:
    """Have the message delivered again after a delay; without a connection, after the ack wait."""
    try:
        await delivery.nak(delay_s)
    except BusError as error:
        logger.warning("decision %d was not returned to the stream: %s", delivery.seq, error)
