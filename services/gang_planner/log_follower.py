"""Reads the logs into the `Inbox`: a snapshot or checkpoint, then every record once, in order.

CLUSTER starts from the watcher's snapshot, and again with a new one after a new epoch of the
watcher or a gap in the log. DECISIONS and OUTCOMES start from the last whole checkpoint. VERDICTS
is read until this planner leads. The planner's state is not touched here.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec

from services.gang_planner.inbox import (
    Arrival,
    CheckpointArrival,
    ClusterArrival,
    DecisionArrival,
    EndsArrival,
    ForeignArrival,
    Inbox,
    IrrelevantArrival,
    OutcomeArrival,
    SnapshotArrival,
    VerdictArrival,
)
from shared.bus.cluster_log import NewEpoch, fetch_snapshot
from shared.bus.connection import Bus
from shared.bus.errors import LogGap
from shared.bus.jetstream_api import StoredMessage
from shared.bus.log_reader import LogReader
from shared.bus.pull import Delivery
from shared.bus.stream_reads import wait_for_stream
from shared.contracts import codec, subjects
from shared.contracts.cluster import StreamOpened
from shared.contracts.decisions import Checkpoint
from shared.contracts.foreign_messages import is_foreign, unless_foreign
from shared.contracts.outcomes import DecisionClaimed
from shared.contracts.verdicts import GangPhase
from shared.runtime.steady_clock import steady_s

log = logging.getLogger(__name__)

#: Pause of a standby between two reads of a busy log. Its answers are at most this old; a takeover
#: ends the pause.
STANDBY_PAUSE_S: Final = 0.2
#: The same for the active planner's reading of its own records in DECISIONS, where it detects
#: another writer. Safety does not depend on it: the fence refuses a writer that missed a record.
OWN_RECORDS_PAUSE_S: Final = 0.5

#: Records that are first searched for a checkpoint before a foreign message on its subject.
_REACH_BACK: Final = 1_024


class _VerdictHead(msgspec.Struct, frozen=True, kw_only=True, tag="gang.verdict", gc=False):
    """The fields of a verdict that a standby reads."""

    gang_id: str
    phase: GangPhase


_decode_cluster: Final = unless_foreign(subjects.CLUSTER, codec.decode_cluster)
_decode_outcome: Final = unless_foreign(subjects.OUTCOMES, codec.decode_outcome)
_decode_head: Final = unless_foreign(
    subjects.VERDICTS, msgspec.msgpack.Decoder(_VerdictHead).decode
)


async def read_checkpoint(bus: Bus) -> tuple[tuple[Checkpoint, ...], int]:
    """The pages of the last whole checkpoint, and the first record of DECISIONS to read after it.

    A checkpoint whose last pages a crash cut off does not count; without one the log is read from
    its beginning, which is slower and has the same result.
    """
    info = await wait_for_stream(bus, subjects.DECISIONS)
    first_seq = max(info.first_seq, 1)
    last = await _last_page(bus, first_seq)
    if last is None:
        return (), first_seq
    page = codec.decode_decision_record(last.payload)
    if not isinstance(page, Checkpoint) or page.page != page.pages - 1:
        return (), first_seq
    pages = [page]
    seq = last.seq
    while len(pages) < page.pages:
        seq -= 1
        stored = await bus.get_message(subjects.DECISIONS, seq)
        if stored is not None and is_foreign(subjects.DECISIONS, stored.payload):
            continue
        record = codec.decode_decision_record(stored.payload) if stored else None
        if not isinstance(record, Checkpoint) or record.up_to != page.up_to:
            return (), first_seq
        pages.append(record)
    return tuple(reversed(pages)), page.up_to + 1


async def _last_page(bus: Bus, first_seq: int) -> StoredMessage | None:
    """The newest record on the checkpoints' subject that is no foreign message, if any."""
    last = await bus.get_last(subjects.DECISIONS, subjects.DECISIONS_CHECKPOINT)
    if last is None or not is_foreign(subjects.DECISIONS, last.payload):
        return last
    end, reach = last.seq, _REACH_BACK
    while end > first_seq:
        # A subject can only be searched forward, so ever longer parts are searched from the end.
        begin = max(first_seq, end - reach)
        newest: StoredMessage | None = None
        seq = begin
        while True:
            stored = await bus.get_next(subjects.DECISIONS, subjects.DECISIONS_CHECKPOINT, seq)
            if stored is None or stored.seq >= end:
                break
            if not is_foreign(subjects.DECISIONS, stored.payload):
                newest = stored
            seq = stored.seq + 1
        if newest is not None:
            return newest
        end, reach = begin, 2 * reach
    return None


async def read_opened(bus: Bus, server_ms: int | None) -> tuple[StreamOpened, int] | None:
    """The first record of DECISIONS, and its age in milliseconds at `server_ms` of the server's
    clock; None when it has aged out.
    """
    # The oldest on its subject: newer ones may be foreign messages.
    stored = await bus.get_next(subjects.DECISIONS, subjects.DECISIONS_OPENED, 1)
    if stored is None or is_foreign(subjects.DECISIONS, stored.payload):
        return None
    record = codec.decode_decision_record(stored.payload)
    if not isinstance(record, StreamOpened):
        return None
    if server_ms is None or stored.stored_ms is None:
        return record, 0
    return record, max(0, server_ms - stored.stored_ms)


class LogFollower:
    """Reads the logs into the inbox while its tasks run."""

    def __init__(self, bus: Bus, inbox: Inbox, ordinal: int) -> None:
        self._bus = bus
        self._inbox = inbox
        self._readers = {
            stream: LogReader(bus, stream, subjects.planner_consumer(stream, ordinal))
            for stream in (subjects.CLUSTER, subjects.DECISIONS, subjects.OUTCOMES)
        }
        self._verdicts = LogReader(
            bus,
            subjects.VERDICTS,
            subjects.planner_consumer(subjects.VERDICTS, ordinal),
            filtered=True,
        )
        self._epoch = 0
        #: Generations of DECISIONS and VERDICTS, and the first record of DECISIONS unless that has
        #: aged out; set before the first `CheckpointArrival`.
        self.decisions_generation = ""
        self.verdicts_generation = ""
        self.opened: StreamOpened | None = None
        self._opened_s = 0.0
        self._following_verdicts: asyncio.Task[None] | None = None
        self.set_pause(0.0)

    @property
    def opened_age_ms(self) -> int:
        """How long ago `opened` was stored."""
        return int((steady_s() - self._opened_s) * 1000)

    def set_pause(self, pause_s: float) -> None:
        """Read each log once per `pause_s` seconds while it is busy."""
        for reader in (*self._readers.values(), self._verdicts):
            reader.pace.rest(pause_s)

    async def read_ends(self) -> EndsArrival:
        """The last sequences of the streams.

        Raises:
            NoAnswer: JetStream does not answer; the call may be repeated.
        """
        ends = {stream: (await self._bus.stream_info(stream)).last_seq for stream in self._readers}
        return EndsArrival({**ends, subjects.VERDICTS: await self._verdicts_end()})

    async def _verdicts_end(self) -> int:
        """Sequence of the last verdict; 0: there is none. The stream's own last message may have
        expired, or be a request for a PodGroup.
        """
        last = await self._bus.get_last(subjects.VERDICTS, subjects.VERDICTS_SUBJECTS)
        return last.seq if last is not None else 0

    def lead(self) -> None:
        """Read as the writer: CLUSTER and OUTCOMES at full speed, its own DECISIONS in batches, and
        its own VERDICTS not at all.
        """
        self._readers[subjects.CLUSTER].pace.go_full()
        self._readers[subjects.OUTCOMES].pace.go_full()
        self._readers[subjects.DECISIONS].pace.rest(OWN_RECORDS_PAUSE_S)
        if self._following_verdicts is not None:
            self._following_verdicts.cancel()

    async def follow_cluster(self) -> None:
        """Read a snapshot and the log after it; again after each new epoch or gap."""
        while True:
            pages = await fetch_snapshot(self._bus, epoch_min=self._epoch)
            self._epoch = pages[0].epoch
            arrived_s = steady_s() - pages[0].synced_age_ms / 1000
            await self._inbox.put([SnapshotArrival(pages, arrived_s)])
            try:
                await self._readers[subjects.CLUSTER].run(
                    pages[0].cluster_seq + 1, self._on_cluster
                )
            except NewEpoch as new:
                self._epoch = new.epoch
            except LogGap as gap:
                log.warning("CLUSTER no longer has the next record, loading a snapshot: %s", gap)

    async def follow_decisions(self) -> None:
        """Read the last checkpoint, then DECISIONS and OUTCOMES after it, and VERDICTS."""
        pages, start = await read_checkpoint(self._bus)
        decisions = await self._bus.stream_info(subjects.DECISIONS)
        outcomes = await wait_for_stream(self._bus, subjects.OUTCOMES)
        verdicts = await wait_for_stream(self._bus, subjects.VERDICTS)
        self.decisions_generation = decisions.generation
        self.verdicts_generation = verdicts.generation
        opened = await read_opened(self._bus, decisions.now_ms)
        if opened is not None:
            self.opened, age_ms = opened
            self._opened_s = steady_s() - age_ms / 1000
        goals = {
            subjects.DECISIONS: decisions.last_seq,
            subjects.OUTCOMES: outcomes.last_seq,
            subjects.VERDICTS: await self._verdicts_end(),
        }
        await self._inbox.put([CheckpointArrival(pages, goals)])
        outcomes_start = max(pages[0].outcomes_seq + 1 if pages else 1, outcomes.first_seq, 1)
        async with asyncio.TaskGroup() as group:
            group.create_task(
                self._readers[subjects.DECISIONS].run(
                    start, partial(self._put, self._decision_arrival)
                ),
                name="follow-decisions",
            )
            group.create_task(
                self._readers[subjects.OUTCOMES].run(
                    outcomes_start, partial(self._put, self._outcome_arrival)
                ),
                name="follow-outcomes",
            )
            self._following_verdicts = group.create_task(
                self._follow_verdicts(verdicts.first_seq), name="follow-verdicts"
            )

    async def _follow_verdicts(self, first_seq: int) -> None:
        """Read the last verdict of every gang. A gap is no loss: newer verdicts replaced those."""
        while True:
            try:
                await self._verdicts.run(max(first_seq, 1), partial(self._put, _verdict_arrival))
            except LogGap as gap:
                first_seq = gap.available

    async def _put(
        self, arrival_of: Callable[[Delivery], Arrival], deliveries: Sequence[Delivery]
    ) -> None:
        await self._inbox.put([arrival_of(delivery) for delivery in deliveries])

    async def _on_cluster(self, deliveries: list[Delivery]) -> None:
        arrivals: list[Arrival] = []
        now_s, reader = steady_s(), self._readers[subjects.CLUSTER]
        for delivery in deliveries:
            record = _decode_cluster(delivery.payload)
            if record is None:
                arrivals.append(_foreign_arrival(subjects.CLUSTER, delivery))
                continue
            if not isinstance(record, StreamOpened) and record.epoch > self._epoch:
                await self._inbox.put(arrivals)
                raise NewEpoch(record.epoch)
            arrived_s = now_s - reader.age_ms(delivery) / 1000
            arrivals.append(
                ClusterArrival(
                    delivery.seq, record, delivery.payload, delivery.stored_ms, arrived_s
                )
            )
        await self._inbox.put(arrivals)

    def _decision_arrival(self, delivery: Delivery) -> Arrival:
        if is_foreign(subjects.DECISIONS, delivery.payload):
            return _foreign_arrival(subjects.DECISIONS, delivery)
        age_ms = self._readers[subjects.DECISIONS].age_ms(delivery)
        return DecisionArrival(delivery.seq, delivery.payload, delivery.stored_ms, age_ms)

    def _outcome_arrival(self, delivery: Delivery) -> Arrival:
        outcome = _decode_outcome(delivery.payload)
        if outcome is None:
            return _foreign_arrival(subjects.OUTCOMES, delivery)
        if isinstance(outcome, DecisionClaimed):
            return IrrelevantArrival(delivery.seq)
        if outcome.generation not in {"", self.decisions_generation}:
            log.warning("skipping an outcome of a lost DECISIONS stream: %s", delivery.subject)
            return IrrelevantArrival(delivery.seq)
        return OutcomeArrival(delivery.seq, outcome, delivery.payload, delivery.stored_ms)


def _foreign_arrival(stream: str, delivery: Delivery) -> ForeignArrival:
    return ForeignArrival(stream, delivery.seq, delivery.subject, delivery.payload)


def _verdict_arrival(delivery: Delivery) -> Arrival:
    head = _decode_head(delivery.payload)
    if head is None:
        return _foreign_arrival(subjects.VERDICTS, delivery)
    return VerdictArrival(delivery.seq, head.gang_id, head.phase == "Gone", delivery.payload)
