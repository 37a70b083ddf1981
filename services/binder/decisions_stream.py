"""Which deliveries of DECISIONS a binder may carry out.

A binder outlives the server and the stream: DECISIONS may be created again, a killed server forgets
how often it delivered a message, and a planner that was overtaken may still have written. Each
question is answered here, from the stream's state and from `BinderState`.
"""

import logging
from collections.abc import Callable
from typing import Literal, TypeAlias

from services.binder.active_decision import DeliveryLease
from services.binder.core.outcome import Sender
from services.binder.state import BinderState, Stale
from shared.bus.connection import Bus
from shared.bus.errors import BusError
from shared.bus.pull import Delivery
from shared.bus.stream_reads import wait_for_stream
from shared.contracts import subjects
from shared.contracts.decisions import Act, EvictionDecision

logger = logging.getLogger(__name__)

Refusal: TypeAlias = Literal["Expired"] | Stale
"""The outcome's reason of a decision that is not carried out."""


class DecisionsStream:
    """The DECISIONS that this binder reads."""

    def __init__(self, bus: Bus, on_replaced: Callable[[str], None]) -> None:
        """Read nothing before `open`; `on_replaced` is called with the new generation when the
        stream was created again: nothing held of the lost one may be carried out.
        """
        self._bus = bus
        self._on_replaced = on_replaced
        self._state = BinderState("")
        #: The connection (`Bus.connections`) over which the stream's state was last read, and the
        #: first one on which it had this generation: a server that was away may have lost it.
        self._checked_over = 0
        self._same_since = 0
        #: The last record at that time.
        self._last_seq = 0

    @property
    def generation(self) -> str:
        """Id of the stream; "" before `open`."""
        return self._state.generation

    async def open(self) -> None:
        """Wait until the stream exists, and begin with its generation."""
        self._checked_over = self._bus.connections
        info = await wait_for_stream(self._bus, subjects.DECISIONS)
        self._last_seq = info.last_seq
        self._state = BinderState(info.generation)

    def delivered(self, delivery: Delivery) -> int:
        """How often the message was delivered, at least.

        A nats-server that is killed forgets the deliveries of its last seconds and counts from one
        again (tried). So another binder may have had what was in the stream when this binder
        connected.
        """
        return max(delivery.delivered, 2 if delivery.seq <= self._last_seq else 1)

    async def is_current(self, lease: DeliveryLease) -> bool:
        """Whether the delivery is of the stream that exists now; False also while that is unknown.
        Costs one request per connection.
        """
        if self._checked_over != self._bus.connections:
            await self._check_generation()
        known = self._checked_over == self._bus.connections
        return known and lease.connection >= self._same_since

    async def refusal_of(self, decision: Act, delivery: Delivery, sender: Sender) -> Refusal | None:
        """Why the decision must not be carried out; None when it may."""
        seq, delivered = sender.decision_seq, sender.delivered
        if delivered == 1 and await self._is_late(decision, delivery):
            # The preemptor gave up before any binder started this decision.
            return "Expired"
        if self._state.looks_replaced(seq, delivered=delivered):
            await self._check_generation()
        reason = self._state.check_epoch(decision.epoch, seq, delivered=delivered)
        if reason is not None and await self._check_generation():
            reason = self._state.check_epoch(decision.epoch, seq, delivered=delivered)
        return reason

    async def _is_late(self, decision: Act, delivery: Delivery) -> bool:
        """Whether an eviction's time is over; True also when its age is unknown.

        Its instants are of the planner's clock, so only their difference counts, from when the
        server stored it.
        """
        if not isinstance(decision, EvictionDecision) or not decision.until_ms:
            return False
        try:
            server_ms = (await self._bus.stream_info(subjects.DECISIONS)).now_ms
        except BusError as error:
            logger.warning("the age of eviction %d is unknown: %s", delivery.seq, error)
            return True
        lasts_ms = decision.until_ms - decision.cycle.now_ms
        return server_ms is None or server_ms - delivery.stored_ms > lasts_ms

    async def _check_generation(self) -> bool:
        """Read the stream's state; True when it was created again: all sequences begin again."""
        over, before = self._bus.connections, self.generation
        try:
            info = await self._bus.stream_info(subjects.DECISIONS)
        except BusError as error:
            logger.warning("cannot read the state of DECISIONS: %s", error)
            return False
        self._checked_over = over
        self._last_seq = info.last_seq
        if info.generation == before:
            return False
        logger.warning("DECISIONS was created again: it is %s, not %s", info.generation, before)
        self._same_since = over
        self._state.follow(info.generation)
        self._on_replaced(info.generation)
        return True
