"""`--controllers=status`: writes on groups, pods and in Events what verdicts say.

Deliveries go into the agenda, keyed by gang, the newest verdict only; writers take the gang whose
turn it is, plan, write a little, and put the gang back until its plan is empty. Then the delivery
is acknowledged. Until then the consumer is informed that it is in progress, so that a replica that
dies leaves its gangs to another one.
"""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Final

import msgspec

from services.controller.clock import SteadyClock
from services.controller.core.agenda import Agenda
from services.controller.core.annotation import annotation_of
from services.controller.core.intents import (
    SETTLE,
    CompareGroup,
    PatchGroup,
    Plan,
    Situation,
    WriteIntervals,
    notice,
    plan,
)
from services.controller.errors import RetryLater
from services.controller.intent_writer import Writer
from services.controller.other_controllers import OtherControllers
from services.controller.reporting import Reporting
from services.controller.state import WrittenGang, WrittenGangs
from services.controller.waiting_events import WaitingEvents
from shared.bus.connection import Bus
from shared.bus.errors import BusError
from shared.bus.pull import Delivery, PullLoop
from shared.contracts import subjects
from shared.contracts.codec import decode_verdict
from shared.contracts.foreign_messages import OnForeign, unless_foreign
from shared.contracts.verdicts import Verdict
from shared.dialects.discovery import dialects
from shared.dialects.protocol import StatusPatch

logger = logging.getLogger(__name__)

_decode: Final = unless_foreign(subjects.VERDICTS, decode_verdict)

#: Writes at the same time: enough to keep the rate with an API server that takes 40 ms.
_WRITERS: Final = 8
#: Writes for one gang before it is another one's turn.
_TURN: Final = 16
#: A third of the consumer's ack wait.
_PROGRESS_EVERY_S: Final = 10.0
#: Before a verdict that could not be read is read again.
_READ_AGAIN_S: Final = 2.0
#: For a last write: nothing has to be read or waited for before it.
_AT_ONCE: Final = WriteIntervals(started_ms=0, settle_ms=0, starting_ms=0, refresh_ms=0)


class _Entry:
    """One gang's newest verdict, until all of it is written."""

    __slots__ = (
        "annotation",
        "compared",
        "delivery",
        "not_before_ms",
        "patch",
        "patched",
        "seq",
        "since_ms",
        "verdict",
        "wrote",
    )

    def __init__(
        self, verdict: Verdict, seq: int, delivery: Delivery | None, since_ms: int
    ) -> None:
        self.verdict = verdict
        self.seq = seq
        self.delivery = delivery
        self.since_ms = since_ms
        self.patch = _patch_of(verdict)
        self.annotation = "" if self.patch is None else annotation_of(verdict)
        self.compared = False
        #: Whether something was written, or is being written, and has not been checked yet;
        #: and whether that is this verdict.
        self.wrote = False
        self.patched = False
        self.not_before_ms = 0

    def situation(self) -> Situation:
        return Situation(
            verdict=self.verdict,
            patch=self.patch,
            annotation=self.annotation,
            since_ms=self.since_ms,
            compared=self.compared,
        )


class StatusController:
    """Everything one status controller does."""

    def __init__(
        self,
        bus: Bus,
        writer: Writer,
        clock: SteadyClock,
        reporting: Reporting,
        others: OtherControllers,
        on_foreign: OnForeign,
        *,
        waiting_pod_events_per_s: int,
    ) -> None:
        """Make one; nothing happens before `run`, nor while another controller lives: what we would
        write is its to write.
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
        self._agenda: Agenda[_Entry] = Agenda()
        self._pulling = PullLoop(bus, subjects.VERDICTS, subjects.CONTROLLER_CONSUMER)
        #: Which VERDICTS the agenda's sequences count in, and the connection over which it was
        #: looked at: a server that was away may have lost it.
        self._generation = ""
        self._looked_over = 0
        self._turn = asyncio.Lock()
        self._news = asyncio.Event()
        self._pulled_off = asyncio.Event()
        self._writing = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False

    async def run(self) -> None:
        """Write until cancelled; what is not acknowledged then is delivered again."""
        async with asyncio.TaskGroup() as group:
            for number in range(_WRITERS):
                group.create_task(self._write_on(), name=f"status-writer-{number}")
            group.create_task(self._keep_ours(), name="status-progress")
            group.create_task(self._others.run(self._news.set), name="status-rivals")
            waiting_events = self._waiting_events.run(self.writes_statuses)
            group.create_task(waiting_events, name="status-waiting-events")
            await self._pulling.run(self._take)
            self._pulled_off.set()

    def writes_statuses(self) -> bool:
        """Whether verdicts are written now: not while another scheduler of our names lives."""
        return self._others.none_lives and not self._closing

    async def stop_taking(self) -> None:
        """Pull no more and begin no more writes."""
        self._closing = True
        self._news.set()
        self._pulling.stop()
        await self._pulled_off.wait()

    async def finish(self) -> None:
        """Let the writes in flight end, then give everything back that is not all written."""
        await self._idle.wait()
        for entry in self._agenda.entries():
            if entry.wrote:
                await self._leave(entry)
            if entry.delivery is not None:
                await _inform_consumer(entry.delivery.nak())

    async def _leave(self, entry: _Entry) -> None:
        """Leave the newest verdict on a group that was written and not looked at since: another
        replica may have written it before us, and no replica would get it again.
        """
        newer = await self._newer(entry)
        if newer is None and entry.patched:
            return
        verdict, seq = newer or (entry.verdict, entry.seq)
        last = _Entry(verdict, seq, None, self._clock.now_ms())
        intents = plan(last.situation(), WrittenGang(), last.since_ms, _AT_ONCE).now
        for intent in intents:
            if isinstance(intent, PatchGroup):
                try:
                    await self._writer.write(intent, last.situation(), WrittenGang())
                except RetryLater as later:
                    logger.warning("gang %s keeps an older verdict: %s", verdict.name, later)

    # Taking.

    async def _take(self, deliveries: list[Delivery]) -> None:
        await self._look()
        for delivery in deliveries:
            try:
                verdict = _decode(delivery.payload)
            except msgspec.MsgspecError as error:
                logger.error("verdict %d cannot be read: %s", delivery.seq, error)
                await _inform_consumer(delivery.term("cannot be read"))
                continue
            if verdict is None:
                self._on_foreign(
                    subjects.VERDICTS, delivery.seq, delivery.subject, delivery.payload
                )
                await _inform_consumer(delivery.ack())
                continue
            await self._offer(verdict, delivery.seq, delivery)
        self._reporting.waiting(len(self._agenda))
        self._news.set()

    async def _look(self) -> None:
        """Look, once per connection, whether VERDICTS was made again. Then whatever comes is newer
        than what is on the agenda, whose deliveries are another consumer's.
        """
        over = self._bus.connections
        if over == self._looked_over:
            return
        try:
            generation = (await self._bus.stream_info(subjects.VERDICTS)).generation
        except BusError as error:
            logger.warning("cannot look at VERDICTS: %s", error)
            return
        if self._generation not in {"", generation}:
            logger.warning("VERDICTS was created again: its sequences start over")
            for entry in self._agenda.entries():
                entry.seq, entry.delivery = 0, None
        self._generation, self._looked_over = generation, over

    async def _offer(self, verdict: Verdict, seq: int, delivery: Delivery | None) -> None:
        """Put a verdict on the agenda unless it is overtaken already."""
        now_ms = self._clock.now_ms()
        before = self._agenda.get(verdict.gang_id)
        if before is not None and before.seq > seq:
            if delivery is not None:
                await _inform_consumer(delivery.ack())
            return
        entry = _Entry(verdict, seq, delivery, now_ms if before is None else before.since_ms)
        # The write of the overtaken one may be in flight: it has to be looked after all the same.
        entry.wrote = before is not None and before.wrote
        if delivery is None and before is not None:
            # Its own delivery is another replica's.
            entry.delivery, before.delivery = before.delivery, None
        memory = self._memories.of(verdict.gang_id)
        notice(memory, verdict)
        self._waiting_events.note(verdict)
        first = plan(entry.situation(), memory, now_ms, self._intervals)
        self._agenda.offer(verdict.gang_id, entry, due_ms=now_ms, urgency=first.urgency)
        # The same message again (a killed nats-server forgets its consumers' newest state) is
        # not done yet: to acknowledge one delivery is to acknowledge the message.
        if before is not None and before.delivery is not None and before.seq < seq:
            await _inform_consumer(before.delivery.ack())

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
            self._reporting.waiting(len(self._agenda))

    async def _next(self) -> str:
        """Wait for a gang whose turn it is. One writer waits at a time, the other writers behind
        it.
        """
        async with self._turn:
            while True:
                now_ms = self._clock.now_ms()
                waits = self._closing or not self._others.none_lives
                gang_id = None if waits else self._agenda.pop(now_ms)
                if gang_id is not None:
                    return gang_id
                wait_ms = None if waits else self._agenda.wait_ms(now_ms)
                self._news.clear()
                try:
                    async with asyncio.timeout(None if wait_ms is None else wait_ms / 1000):
                        await self._news.wait()
                except TimeoutError:
                    continue

    async def _write_some(self, gang_id: str) -> None:
        """Write what is due for one gang, a few writes at most, and put it back."""
        entry = self._agenda.get(gang_id)
        assert entry is not None, "a gang that is out has an entry"
        memory = self._memories.of(gang_id)
        now_ms = self._clock.now_ms()
        planned = plan(entry.situation(), memory, now_ms, self._intervals)
        if not planned.now and planned.next_ms is None:
            await self._settle(gang_id, entry)
            return
        await self._write_turn(gang_id, entry, memory, planned)
        due_ms = now_ms if planned.now else (planned.next_ms or now_ms)
        written = len(planned.now) <= _TURN and entry.not_before_ms <= now_ms
        urgency = SETTLE if written and planned.next_ms is None else planned.urgency
        self._agenda.put(gang_id, due_ms=max(due_ms, entry.not_before_ms), urgency=urgency)
        self._news.set()

    async def _write_turn(
        self, gang_id: str, entry: _Entry, memory: WrittenGang, planned: Plan
    ) -> None:
        situation = entry.situation()
        for intent in planned.now[:_TURN]:
            if self._agenda.get(gang_id) is not entry or self._closing:
                return  # overtaken: plan again
            # Said before it is written: even what fails may have been stored, or still will be.
            entry.wrote = entry.wrote or isinstance(intent, PatchGroup)
            try:
                await self._writer.write(intent, situation, memory)
            except RetryLater as later:
                logger.info("gang %s: %s", entry.verdict.name, later)
                entry.not_before_ms = self._clock.now_ms() + int(later.delay_s * 1000)
                return
            entry.compared = entry.compared or isinstance(intent, CompareGroup | PatchGroup)
            entry.patched = entry.patched or isinstance(intent, PatchGroup)

    async def _settle(self, gang_id: str, entry: _Entry) -> None:
        """Acknowledge, unless another replica may have written a newer verdict before ours."""
        newer = await self._newer(entry) if entry.wrote else None
        if newer is not None:
            # Ours may have come after it: what stands is not shown any longer than it takes to
            # write the newer one.
            self._memories.of(gang_id).group_at_ms = 0
            await self._offer(newer[0], newer[1], None)
        if self._agenda.get(gang_id) is not entry:
            self._agenda.put(gang_id, due_ms=self._clock.now_ms(), urgency=0)
            self._news.set()
            return
        self._agenda.drop(gang_id)
        if entry.verdict.phase == "Gone":
            self._memories.forget(gang_id)
        self._reporting.settled(entry.verdict, entry.seq, self._clock.now_ms())
        if entry.delivery is not None:
            await _inform_consumer(entry.delivery.ack())

    async def _newer(self, entry: _Entry) -> tuple[Verdict, int] | None:
        """The gang's last verdict, if that is not the one just written.

        Of two replicas the last to write checks after its write and finds the newest: so the
        newest is what stands in the end. No acknowledgement covers this: the stream keeps one
        verdict of a gang, and a message that was replaced there is never delivered again. A
        replica that dies between such a write and the next leaves the older one standing until the
        gang's next verdict.
        """
        try:
            subject = subjects.verdict(entry.verdict.gang_id)
            last = await self._bus.get_last(subjects.VERDICTS, subject)
        except BusError as error:
            logger.warning("cannot look for a newer verdict: %s", error)
            return None
        if last is None or last.seq <= entry.seq:
            return None
        verdict = _decode(last.payload)
        if verdict is None:
            # It took the place of what we look for; the planner says that again (ADR 0047).
            self._on_foreign(subjects.VERDICTS, last.seq, last.subject, last.payload)
            return None
        return verdict, last.seq

    async def _last_verdict(self, gang_id: str) -> Verdict | None:
        """The gang's last verdict; None when there is none. Raises RetryLater."""
        try:
            last = await self._bus.get_last(subjects.VERDICTS, subjects.verdict(gang_id))
        except BusError as error:
            raise RetryLater(str(error), _READ_AGAIN_S) from error
        return None if last is None else _decode(last.payload)

    async def _keep_ours(self) -> None:
        while True:
            await asyncio.sleep(_PROGRESS_EVERY_S)
            await self._look()
            for entry in self._agenda.entries():
                if entry.delivery is not None:
                    await _inform_consumer(entry.delivery.in_progress())


def _patch_of(verdict: Verdict) -> StatusPatch | None:
    """What the verdict's dialect writes on its group; None when there is no group to write on."""
    for dialect in dialects():
        if verdict.dialect == dialect.name:
            return dialect.status(verdict)
    if verdict.dialect:
        logger.warning("gang %s: dialect %s is unknown", verdict.name, verdict.dialect)
    return None


async def _inform_consumer(saying: Awaitable[None]) -> None:
    """Send the consumer an acknowledgement; if that is lost, the message comes again."""
    try:
        await saying
    except BusError as error:
        logger.warning("the consumer does not hear: %s", error)
