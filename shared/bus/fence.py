"""The fenced append: a log has one writer, which each append proves, without clocks.

Every append carries `Nats-Expected-Last-Sequence`, the sequence of the last record that this
process has applied, and awaits its acknowledgement. The server refuses a writer that has missed a
record: `Superseded`. `shared.bus.fence_machine` is the protocol; this module sends its messages.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Final, assert_never

from shared.bus.connection import Bus
from shared.bus.errors import (
    ApiRefused,
    AppendRefused,
    AppendUnresolved,
    BusUnavailable,
    MessageTooLarge,
    NoAnswer,
    Superseded,
    check_subject,
)
from shared.bus.fence_machine import (
    Action,
    Done,
    FenceMachine,
    GiveUp,
    NotStored,
    Overtaken,
    Read,
    Send,
)
from shared.bus.jetstream_api import (
    BATCH_DUPLICATE_ID,
    BATCH_INCOMPLETE,
    WRONG_LAST_SEQUENCE,
    PublishAnswer,
)
from shared.model.invariants import InvariantViolation

#: From this many records on an atomic batch is faster than one append each (measured on two shared
#: cores: a batch has a fixed cost of 3-4 ms on file storage, an append takes 0.2 ms).
BATCH_MIN: Final = 24
#: The server's limit for one atomic batch.
BATCH_MAX: Final = 1000
#: An append takes a fraction of a millisecond; a server that restarts is back within this.
SEND_TIMEOUT_S: Final = 1.0
#: Between attempts, so that retries do not burden a leader election.
PAUSE_S: Final = 0.25

Record = tuple[str, bytes]


class _Work:
    """One call of `append_batch`, kept until its result is known, so that a repetition of the call
    continues it.
    """

    def __init__(self, records: tuple[Record, ...]) -> None:
        self.records = records
        self.stored: list[int] = []
        #: Id of the chunk in flight; "" between chunks.
        self.chunk_id = ""

    def chunk(self) -> tuple[Record, ...]:
        """The records to send next: a batch if that is faster, else one record."""
        begin = len(self.stored)
        left = len(self.records) - begin
        return self.records[begin : begin + (min(left, BATCH_MAX) if left >= BATCH_MIN else 1)]


class FencedLog:
    """The writer of CLUSTER or DECISIONS.

    One append at a time; a second concurrent call is a misuse.
    """

    def __init__(self, bus: Bus, stream: str, *, last_applied: int, generation: str = "") -> None:
        """Prepare to append after the last record that this process has read and applied, or after
        none (0).

        `generation` is that of the stream in which the record was read; with `last_applied` it is
        the fencing token. "": that of the stream which exists at the first append.
        """
        self._bus = bus
        self._stream = stream
        self._generation = generation
        #: The connection (`Bus.connections`) over which the stream's generation was last checked: a
        #: server that was unreachable may have lost its storage.
        self._seen_over = -1
        self._machine = FenceMachine(last_applied)
        self._work: _Work | None = None
        self._busy = False
        self._is_foreign: Callable[[bytes], bool] = lambda _payload: False

    def overlook(self, is_foreign: Callable[[bytes], bool]) -> None:
        """From now on step over foreign messages, which no writer of the log can have written: an
        append may be stored after some of them, later than `last_applied` + 1.
        """
        self._is_foreign = is_foreign
        self._machine.overlooks = True

    @property
    def last_applied(self) -> int:
        """Sequence of the last record that this process has read and applied, or appended."""
        return self._machine.last_applied

    def applied(self, seq: int) -> None:
        """Note that a record read from the stream has been applied.

        Reading own appends changes nothing. A caller that applies another writer's record must have
        stopped deciding: afterwards this log would accept appends after that record.
        """
        self._machine.applied(seq)

    async def append(self, subject: str, payload: bytes) -> int:
        """Store one record after the last one applied, and return its sequence, which counts as
        applied.

        Raises:
            Superseded: Another writer appended. This log refuses every further append.
            BusUnavailable: Whether the record is stored is unknown after about 10 s of attempts.
                Call again with the same arguments: no other append is accepted until the result is
                known. The same holds after a cancellation.
            AppendRefused: The server refused and stored nothing (its storage may be full); a retry
                is possible.
            MessageTooLarge: Nothing was sent.
            InvalidSubject: Likewise; no retry cures it.
            InvariantViolation: Another append to this log is in flight.
        """
        return (await self.append_batch([(subject, payload)]))[0]

    async def append_batch(self, records: Sequence[Record]) -> list[int]:
        """Store several records in order, and return their sequences.

        Fewer than `BATCH_MIN` records are appended one by one, more as atomic batches of at most
        `BATCH_MAX`. The call as a whole is not atomic: after an exception a prefix may be stored.
        Errors and repetition as with `append`: a repetition continues where the call stopped.
        """
        if self._busy:
            raise InvariantViolation(self._stream, "has one append in flight at a time")
        if not records:
            return []
        self._busy = True
        try:
            work = self._take_up(tuple(records))
            while len(work.stored) < len(work.records):
                await self._append_chunk(work)
            self._work = None
            return work.stored
        finally:
            self._busy = False

    def _take_up(self, records: tuple[Record, ...]) -> _Work:
        """The unfinished call that this one repeats, or a new one."""
        if self._work is not None and self._work.records == records:
            return self._work
        if self._machine.unresolved:
            raise AppendUnresolved(
                f"{self._stream}: repeat the append whose result is unknown before any other"
            )
        limit = self._bus.payload_bytes_max
        for subject, payload in records:
            check_subject(subject)
            if len(payload) > limit:
                raise MessageTooLarge(f"{subject}: {len(payload)} bytes, at most {limit}")
        self._work = _Work(records)
        return self._work

    async def _append_chunk(self, work: _Work) -> None:
        chunk = work.chunk()
        if not work.chunk_id:
            work.chunk_id = self._bus.new_record_id()
        action = self._machine.begin(work.chunk_id, len(chunk))
        while True:
            match action:
                case Send():
                    action = await self._send(action, work.chunk_id, chunk)
                case Read():
                    action = await self._read(action)
                case Done(first, last):
                    work.chunk_id = ""
                    work.stored.extend(range(first, last + 1))
                    return
                case NotStored(code, text):
                    work.chunk_id = ""
                    raise AppendRefused(code, f"{self._stream}: {text}")
                case Overtaken(why):
                    raise Superseded(f"{self._stream}: {why}")
                case GiveUp(why):
                    raise BusUnavailable(f"{self._stream}: {why}")
                case _:
                    assert_never(action)

    async def _send(self, send: Send, chunk_id: str, chunk: Sequence[Record]) -> Action:
        headers = {"Nats-Expected-Last-Sequence": str(send.expected), "Nats-Msg-Id": chunk_id}
        try:
            if self._seen_over != self._bus.connections:
                replaced_by = await self._check_generation()
                if replaced_by:
                    return self._machine.on_replaced(replaced_by)
            if len(chunk) == 1:
                answer = await self._bus.append(
                    *chunk[0], timeout_s=SEND_TIMEOUT_S, headers=headers
                )
            else:
                answer = await self._send_batch(f"{chunk_id}.{send.attempt}", headers, chunk)
        except (NoAnswer, BusUnavailable, ApiRefused):
            return self._machine.on_no_answer()
        return self._judge(answer)

    async def _check_generation(self) -> str:
        """Check the stream's generation; returns that of a stream which replaced ours, else ""."""
        await self._bus.wait_connected()
        over = self._bus.connections
        generation = (await self._bus.stream_info(self._stream)).generation
        self._generation = self._generation or generation
        if generation != self._generation:
            return generation or "one without a name"
        self._seen_over = over
        return ""

    async def _send_batch(
        self, batch_id: str, first_headers: dict[str, str], chunk: Sequence[Record]
    ) -> PublishAnswer:
        """Send an atomic batch: no record of it is visible before its last message commits it."""
        await self._bus.wait_connected()
        *leading, (last_subject, last_payload) = chunk
        headers = {"Nats-Batch-Id": batch_id, **first_headers}
        for number, (subject, payload) in enumerate(leading, 1):
            headers["Nats-Batch-Sequence"] = str(number)
            await self._bus.publish(subject, payload, headers=headers)
            headers = {"Nats-Batch-Id": batch_id}
        headers |= {"Nats-Batch-Sequence": str(len(chunk)), "Nats-Batch-Commit": "1"}
        return await self._bus.append(
            last_subject, last_payload, timeout_s=SEND_TIMEOUT_S, headers=headers
        )

    def _judge(self, answer: PublishAnswer) -> Action:
        error = answer.error
        if error is None:
            return self._machine.on_ack(answer.seq)
        if error.err_code in {WRONG_LAST_SEQUENCE, BATCH_DUPLICATE_ID}:
            return self._machine.on_refused(error.description)
        if error.err_code == BATCH_INCOMPLETE or error.passes_by_itself:
            return self._machine.on_no_answer()
        return self._machine.on_rejected(error.err_code, error.description)

    async def _read(self, read: Read) -> Action:
        if read.attempt > 2:
            await asyncio.sleep(PAUSE_S)
        with contextlib.suppress(NoAnswer, BusUnavailable, ApiRefused):
            replaced_by = await self._check_generation()
            if replaced_by:
                return self._machine.on_replaced(replaced_by)
            stored = await self._bus.get_message(self._stream, read.seq)
            if stored is not None:
                message_id = stored.headers.get("Nats-Msg-Id", "")
                is_foreign = self._is_foreign(stored.payload)
                return self._machine.on_read(message_id, is_foreign=is_foreign)
            info = await self._bus.stream_info(self._stream)
            return self._machine.on_read_nothing(info.first_seq, info.last_seq)
        return self._machine.on_read_failed()
