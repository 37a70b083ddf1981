"""`--controllers=status`: writes verdicts as statuses, conditions and Events.

A queue has the newest verdict of each gang. Each writer takes the most urgent gang that is due,
plans, performs a few writes, and returns the gang to the queue until its plan is empty. Then the
delivery is acknowledged. Until then the consumer is informed regularly that it is in progress, so
that the deliveries of a replica that dies go to another one.
"""

import asyncio
import logging
from typing import Final

from services.controller.core.statuses.annotation import annotation_of
from services.controller.core.statuses.intents import (
    SETTLE,
    CompareGroup,
    FreeNodes,
    MarkPods,
    PatchGroup,
    Plan,
    Situation,
    WriteIntervals,
    forget_outdated,
    plan,
)
from services.controller.core.statuses.verdict_queue import VerdictQueue
from services.controller.errors import RetryLater
from services.controller.intent_writer import IntentWriter
from services.controller.other_controllers import OtherControllers
from services.controller.reporting import Reporting
from services.controller.state import WrittenGang, WrittenGangs
from services.controller.verdict_deliveries import (
    decode,
    inform_consumer,
    read_verdict,
    status_patch,
)
from services.controller.waiting_events import WaitingEvents
from shared.bus.connection import Bus
from shared.bus.errors import BusError
from shared.bus.pull import Delivery, PullLoop
from shared.contracts import subjects
from shared.contracts.foreign_messages import OnForeign
from shared.contracts.verdicts import Verdict
from shared.model.invariants import required
from shared.runtime.steady_clock import SteadyClock

logger = logging.getLogger(__name__)

#: Writes at the same time: enough for the rate with an API server that answers within 40 ms.
_WRITERS: Final = 8
#: Writes for one gang before the next gang is taken.
_WRITES_MAX: Final = 16
#: A third of the consumer's ack wait.
_PROGRESS_EVERY_S: Final = 10.0
#: Delay before a verdict is requested again that could not be read from the stream.
_READ_AGAIN_S: Final = 2.0
#: For the last write before the process ends: without delays, and without a read before it.
_AT_ONCE: Final = WriteIntervals(started_ms=0, settle_ms=0, starting_ms=0, refresh_ms=0)


class _Entry(Situation, eq=False, kw_only=True):
    """One gang's newest verdict, until all of it is written."""

    seq: int
    delivery: Delivery | None
    #: Whether a group was written, or may have been, without the check of `_settle` since then; and
    #: whether this verdict was written.
    wrote: bool = False
    patched: bool = False
    not_before_ms: int = 0

    def __post_init__(self) -> None:
        self.patch = status_patch(self.verdict)
        self.annotation = "" if self.patch is None else annotation_of(self.verdict)


class StatusController:
    def __init__(
        self,
        bus: Bus,
        writer: IntentWriter,
        clock: SteadyClock,
        reporting: Reporting,
        others: OtherControllers,
        on_foreign: OnForeign,
        *,
        waiting_pod_events_per_s: int,
    ) -> None:
        """Nothing is read before `run`, and nothing is written while another scheduler with one of
        our names is active, which writes its own statuses.
        """
        self._bus = bus
        self._writer = writer
        self._clock = clock
        self._reporting = reporting
        self._others = others
        self._on_foreign = on_foreign
        self._waiting_events = WaitingEvents(
            writer, clock, self._last_verdict, events_per_s=waiting_pod_events_per_s
        )
        self._intervals = WriteIntervals(started_ms=clock.now_ms())
        self._memories = WrittenGangs()
        self._verdicts: VerdictQueue[_Entry] = VerdictQueue()
        self._pulling = PullLoop(bus, subjects.VERDICTS, subjects.CONTROLLER_CONSUMER)
        #: The generation of VERDICTS that the sequences belong to, and the connection over which it
        #: was checked: a server that was away may have lost the stream.
        self._generation = ""
        self._checked_connection = 0
        self._taking = asyncio.Lock()
        self._changed = asyncio.Event()
        self._pull_ended = asyncio.Event()
        self._writing = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False

    async def run(self) -> None:
        """Write until cancelled. Verdicts without an acknowledgement are delivered again."""
        async with asyncio.TaskGroup() as group:
            for number in range(_WRITERS):
                group.create_task(self._write_on(), name=f"status-writer-{number}")
            group.create_task(self._report_progress(), name="status-progress")
            group.create_task(self._others.run(self._changed.set), name="status-other-schedulers")
            waiting_events = self._waiting_events.run(self.writes_statuses)
            group.create_task(waiting_events, name="status-waiting-events")
            await self._pulling.run(self._take)
            self._pull_ended.set()

    def writes_statuses(self) -> bool:
        """Whether verdicts are written now: not while another scheduler of our names is active."""
        return self._others.none_active and not self._closing

    async def stop_taking(self) -> None:
        """Pull no more and begin no more writes."""
        self._closing = True
        self._changed.set()
        self._pulling.stop()
        await self._pull_ended.wait()

    async def finish(self) -> None:
        """Wait for the writes in flight, then return all deliveries that are not fully written."""
        await self._idle.wait()
        for entry in self._verdicts.entries():
            if entry.wrote:
                await self._leave_newest(entry)
            if entry.delivery is not None:
                await inform_consumer(entry.delivery.nak())

    async def _leave_newest(self, entry: _Entry) -> None:
        """Write the newest verdict on a group that was written and not checked since then: another
        replica may have written a newer verdict before our write, and no replica gets it again.
        """
        newer = await self._newer(entry)
        if newer is None and entry.patched:
            return
        verdict, seq = newer or (entry.verdict, entry.seq)
        now_ms = self._clock.now_ms()
        last = _Entry(verdict=verdict, seq=seq, delivery=None, since_ms=now_ms)
        for intent in plan(last, WrittenGang(), now_ms, _AT_ONCE).now:
            if isinstance(intent, PatchGroup):
                try:
                    await self._writer.write(intent, verdict, WrittenGang())
                except RetryLater as later:
                    logger.warning(
                        "gang %s: its newest verdict was not written: %s", verdict.gang, later
                    )

    # Taking.

    async def _take(self, deliveries: list[Delivery]) -> None:
        await self._check_generation()
        for delivery in deliveries:
            verdict = await read_verdict(delivery, self._on_foreign)
            if verdict is not None:
                await self._offer(verdict, delivery.seq, delivery)
        self._reporting.waiting.set(len(self._verdicts))
        self._changed.set()

    async def _check_generation(self) -> None:
        """Check, once per connection, whether VERDICTS was created again. Then all further verdicts
        are newer than those in the queue, whose deliveries belong to a deleted consumer.
        """
        connection = self._bus.connections
        if connection == self._checked_connection:
            return
        try:
            generation = (await self._bus.stream_info(subjects.VERDICTS)).generation
        except BusError as error:
            logger.warning("the generation of VERDICTS cannot be read: %s", error)
            return
        if self._generation not in {"", generation}:
            logger.warning("VERDICTS was created again: its sequences start over")
            for entry in self._verdicts.entries():
                entry.seq, entry.delivery = 0, None
        self._generation, self._checked_connection = generation, connection

    async def _offer(self, verdict: Verdict, seq: int, delivery: Delivery | None) -> None:
        """Queue a verdict unless a newer one of its gang is queued. `delivery` None: the verdict
        was read from the stream.
        """
        now_ms = self._clock.now_ms()
        before = self._verdicts.get(verdict.gang_id)
        if before is not None and before.seq > seq:
            if delivery is not None:
                await inform_consumer(delivery.ack())
            return
        since_ms = now_ms if before is None else before.since_ms
        entry = _Entry(verdict=verdict, seq=seq, delivery=delivery, since_ms=since_ms)
        # A write of the older verdict may be in flight, and has to be checked too.
        entry.wrote = before is not None and before.wrote
        if delivery is None and before is not None:
            # The newer verdict was delivered to another replica.
            entry.delivery, before.delivery = before.delivery, None
        memory = self._memories.of(verdict.gang_id)
        forget_outdated(memory, verdict)
        self._waiting_events.note(verdict)
        first = plan(entry, memory, now_ms, self._intervals)
        self._verdicts.offer(verdict.gang_id, entry, due_ms=now_ms, urgency=first.urgency)
        # The same message may be delivered twice, since a killed nats-server loses the latest state
        # of its consumers. Acknowledging one delivery acknowledges the message, which is not
        # written yet.
        if before is not None and before.delivery is not None and before.seq < seq:
            await inform_consumer(before.delivery.ack())

    # Writing.

    async def _write_on(self) -> None:
        while True:
            gang_id = await self._next()
            self._writing += 1
            self._idle.clear()
            try:
                await self._write_some(gang_id)
            finally:
                self._writing -= 1
                if not self._writing:
                    self._idle.set()
            self._reporting.waiting.set(len(self._verdicts))

    async def _next(self) -> str:
        """Wait for a gang that is due, and take it. One writer waits at a time; the other writers
        wait behind it.
        """
        async with self._taking:
            while True:
                now_ms = self._clock.now_ms()
                waits = self._closing or not self._others.none_active
                gang_id = None if waits else self._verdicts.pop(now_ms)
                if gang_id is not None:
                    return gang_id
                wait_ms = None if waits else self._verdicts.wait_ms(now_ms)
                self._changed.clear()
                try:
                    async with asyncio.timeout(None if wait_ms is None else wait_ms / 1000):
                        await self._changed.wait()
                except TimeoutError:
                    continue

    async def _write_some(self, gang_id: str) -> None:
        """Perform a few due writes of a taken gang, and return it to the queue."""
        entry = required(self._verdicts.get(gang_id), f"gang {gang_id}", "a taken gang is queued")
        memory = self._memories.of(gang_id)
        now_ms = self._clock.now_ms()
        planned = plan(entry, memory, now_ms, self._intervals)
        if not planned.now and planned.next_ms is None:
            await self._settle(gang_id, entry)
            return
        await self._perform(gang_id, entry, memory, planned)
        due_ms = now_ms if planned.now else (planned.next_ms or now_ms)
        written = len(planned.now) <= _WRITES_MAX and entry.not_before_ms <= now_ms
        # More pods than those of the intent may have to be written.
        partial = any(isinstance(intent, MarkPods | FreeNodes) for intent in planned.now)
        written = written and not partial
        urgency = SETTLE if written and planned.next_ms is None else planned.urgency
        self._verdicts.put(gang_id, due_ms=max(due_ms, entry.not_before_ms), urgency=urgency)
        self._changed.set()

    async def _perform(
        self, gang_id: str, entry: _Entry, memory: WrittenGang, planned: Plan
    ) -> None:
        for intent in planned.now[:_WRITES_MAX]:
            if self._verdicts.get(gang_id) is not entry or self._closing:
                return  # a newer verdict came: plan again
            # Set before the write: even a write that fails may have been stored, or will be.
            entry.wrote = entry.wrote or isinstance(intent, PatchGroup)
            try:
                await self._writer.write(intent, entry.verdict, memory)
            except RetryLater as later:
                logger.info("gang %s: %s", entry.verdict.gang, later)
                entry.not_before_ms = self._clock.now_ms() + int(later.delay_s * 1000)
                return
            entry.compared = entry.compared or isinstance(intent, CompareGroup | PatchGroup)
            entry.patched = entry.patched or isinstance(intent, PatchGroup)

    async def _settle(self, gang_id: str, entry: _Entry) -> None:
        """Acknowledge the verdict, unless another replica may have written a newer one before
        it.
        """
        newer = await self._newer(entry) if entry.wrote else None
        if newer is not None:
            # Our write may have replaced the newer verdict: write that one without a delay.
            self._memories.of(gang_id).group_at_ms = 0
            await self._offer(newer[0], newer[1], None)
        if self._verdicts.get(gang_id) is not entry:
            self._verdicts.put(gang_id, due_ms=self._clock.now_ms(), urgency=0)
            self._changed.set()
            return
        self._verdicts.drop(gang_id)
        if entry.verdict.phase == "Gone":
            self._memories.forget(gang_id)
        self._reporting.settled(entry.verdict, entry.seq, self._clock.now_ms())
        if entry.delivery is not None:
            await inform_consumer(entry.delivery.ack())

    async def _newer(self, entry: _Entry) -> tuple[Verdict, int] | None:
        """The gang's newest verdict and its sequence, if it is newer than the entry.

        Of two replicas, the last to write finds the newest verdict in the check after its write, so
        the newest one is written in the end. Acknowledgements cannot ensure this: the stream keeps
        one verdict per gang, and a replaced message is never delivered again. A replica that dies
        between its write and the check leaves an older verdict until the gang's next one.
        """
        try:
            subject = subjects.verdict(entry.verdict.gang_id)
            last = await self._bus.get_last(subjects.VERDICTS, subject)
        except BusError as error:
            logger.warning("the newest verdict cannot be read: %s", error)
            return None
        if last is None or last.seq <= entry.seq:
            return None
        verdict = decode(last.payload)
        if verdict is None:
            # A foreign message replaced the verdict; the planner publishes it again (ADR 0044).
            self._on_foreign(subjects.VERDICTS, last.seq, last.subject, last.payload)
            return None
        return verdict, last.seq

    async def _last_verdict(self, gang_id: str) -> Verdict | None:
        """The gang's newest verdict; None when there is none. Raises RetryLater."""
        try:
            last = await self._bus.get_last(subjects.VERDICTS, subjects.verdict(gang_id))
        except BusError as error:
            raise RetryLater(str(error), _READ_AGAIN_S) from error
        return None if last is None else decode(last.payload)

    async def _report_progress(self) -> None:
        while True:
            await asyncio.sleep(_PROGRESS_EVERY_S)
            await self._check_generation()
            for entry in self._verdicts.entries():
                if entry.delivery is not None:
                    await inform_consumer(entry.delivery.in_progress())
