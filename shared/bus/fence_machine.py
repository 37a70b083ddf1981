"""The protocol of the fenced append, without I/O: the next action after each event.

The idea: each append carries the condition "after record N", and the server refuses it unless N is
the stream's last record. So a writer that has missed a record cannot write. That needs no clock and
no lease.

The difficulty is a lost answer. The record may be stored, may be on its way, or may be lost. So
nothing else is appended until the stream's leader has returned the record at N+1. If it is ours, it
was stored. If it is another writer's, this writer is superseded. If there is none, the same record
is sent again with the same condition. A late copy does no harm: of two copies with the condition
"after N" the server stores only one.

A log may step over foreign messages, which no writer of it can have written in any version. Then
the machine also reads N+1 after a refusal: if a foreign message is there, it sends the record again
with the condition "after N+1". This still proves that this writer has seen every record: it reads
one record at a time, so it finds another writer's record before it can store anything after that.

The shell (`shared.bus.fence`) carries out the actions and reports the results; a simulation does
the same. Each action is answered by exactly one `on_…` call, and each `on_…` returns the next
action, until one of the four final ones: `Done`, `Overtaken`, `NotStored`, `GiveUp`.
"""

from typing import Final, TypeAlias

import msgspec

from shared.model.invariants import InvariantViolation

#: Sends and reads of one append before `GiveUp`; with the shell's timeouts and pauses about 10 s.
ATTEMPTS_MAX: Final = 8


class Send(msgspec.Struct, frozen=True):
    """Send the record (or the batch) with the condition that `expected` is the stream's last.

    No two sends of one record have the same `attempt`.
    """

    expected: int
    attempt: int


class Read(msgspec.Struct, frozen=True):
    """Read record `seq` from the stream's leader; `attempt` grows with each read."""

    seq: int
    attempt: int


class Done(msgspec.Struct, frozen=True):
    """Stored as records `first` to `last`."""

    first: int
    last: int


class Overtaken(msgspec.Struct, frozen=True):
    """Another writer exists, or the stream was replaced. Final for this machine."""

    why: str


class NotStored(msgspec.Struct, frozen=True):
    """The server refused for another reason: nothing is stored, and nothing is in flight."""

    code: int
    text: str


class GiveUp(msgspec.Struct, frozen=True):
    """The result is still unknown after all attempts; `begin` with the same record continues."""

    why: str


Action: TypeAlias = Send | Read | Done | Overtaken | NotStored | GiveUp


class FenceMachine:
    """One writer's state: the last applied record, and the one append that may be in flight."""

    def __init__(self, last_applied: int, *, attempts_max: int = ATTEMPTS_MAX) -> None:
        #: Whether foreign messages are stepped over; if not, one counts as another writer's record.
        self.overlooks = False
        #: Sequence of the last record read and applied, or appended.
        self.last_applied = last_applied
        self._attempts_max = attempts_max
        self._overtaken: Overtaken | None = None
        #: Id of the first record in flight, whose result is unknown; "" exactly when none is.
        self.unresolved = ""
        self._count = 0
        #: Sequence in that record's condition: fixed when it begins, also if more is applied later.
        self._expected = 0
        self._attempt = 0
        self._attempts_end = attempts_max
        #: How often it was sent with this condition. Only a refusal of the first copy proves that
        #: another writer has appended.
        self._sent = 0
        #: Whether a copy was refused because of this condition.
        self._refused = False

    def applied(self, seq: int) -> None:
        """A record was read from the stream; own appends change nothing."""
        self.last_applied = max(self.last_applied, seq)

    def begin(self, record_id: str, count: int = 1) -> Action:
        """Begin an append of `count` (1 or more) records, or continue the one whose result is
        unknown. The id of the (first) record is unique and not empty; the same again to continue.

        Raises:
            InvariantViolation: The result of another append is unknown.
        """
        if self._overtaken is not None:
            return self._overtaken
        self._attempt = 0
        self._attempts_end = self._attempts_max
        if self.unresolved:
            if (record_id, count) != (self.unresolved, self._count):
                raise InvariantViolation(
                    f"record {record_id}",
                    "begins only when no other append is unresolved",
                    unresolved=self.unresolved,
                )
            return self._read()
        self.unresolved, self._count = record_id, count
        self._expected = self.last_applied
        self._sent = 0
        self._refused = False
        return self._send()

    def on_ack(self, last_seq: int) -> Action:
        """The server stored the records, the last one as `last_seq`."""
        expected = self._expected + self._count
        if last_seq != expected:
            raise InvariantViolation(
                f"record {self.unresolved}",
                "is stored right behind the last record applied",
                expected=expected,
                stored=last_seq,
            )
        return self._done()

    def on_refused(self, text: str) -> Action:
        """The condition did not hold, or the server knows the id already."""
        self._refused = True
        if self._sent > 1 or self.overlooks:
            # The server may have met an earlier copy of ours, or a foreign message.
            return self._read()
        return self._overtake(f"refused after {self._expected}: {text}")

    def on_rejected(self, code: int, text: str) -> Action:
        """The server refused this copy for another reason."""
        if self._sent > 1:
            return self._read()
        self.unresolved = ""
        return NotStored(code, text)

    def on_no_answer(self) -> Action:
        """No answer to a `Send`: the records may be stored or not."""
        return self._read()

    def on_read(self, found_id: str, *, is_foreign: bool = False) -> Action:
        """The leader has a message after `expected`; `found_id` is its id ("" if it has none)."""
        if found_id == self.unresolved:
            return self._done()
        if is_foreign and self.overlooks:
            # No copy of ours that was sent before can be stored any more: its condition is over.
            self._expected += 1
            self.last_applied = max(self.last_applied, self._expected)
            self._sent = 0
            self._refused = False
            self._attempts_end = self._attempt + self._attempts_max
            return self._send()
        return self._overtake(f"record {self._expected + 1} was written by {found_id or 'another'}")

    def on_read_nothing(self, first_seq: int, last_seq: int) -> Action:
        """The leader has no such record; the stream contains `first_seq` to `last_seq`."""
        if last_seq < self._expected:
            return self._overtake(
                f"the stream ends at {last_seq}, before {self._expected}: it was created again"
            )
        if last_seq == self._expected:
            return self._send()
        if first_seq > self._expected + 1:
            return self._overtake(
                f"record {self._expected + 1} was written and is gone: the first is {first_seq}"
            )
        if self._refused and self._sent == 1:
            # The message was removed, or came between the two requests; it is not ours.
            return self._overtake(f"refused after {self._expected}, which is the last record")
        return self._read()  # a message arrived between the two requests

    def on_replaced(self, generation: str) -> Action:
        """The stream was replaced: its sequences have no meaning for this log, even equal ones."""
        return self._overtake(f"the stream was created again: it is {generation} by now")

    def on_read_failed(self) -> Action:
        """The leader did not answer a `Read`."""
        return self._read()

    def _send(self) -> Action:
        return self._next(Send(self._expected, self._attempt + 1))

    def _read(self) -> Action:
        return self._next(Read(self._expected + 1, self._attempt + 1))

    def _next(self, action: Send | Read) -> Action:
        if self._attempt >= self._attempts_end:
            return GiveUp(
                f"the result of {self.unresolved} is unknown after {self._attempt} attempts"
            )
        self._attempt += 1
        if isinstance(action, Send):
            self._sent += 1
        return action

    def _done(self) -> Action:
        first, last = self._expected + 1, self._expected + self._count
        self.last_applied = max(self.last_applied, last)
        self.unresolved = ""
        return Done(first, last)

    def _overtake(self, why: str) -> Action:
        self._overtaken = Overtaken(why)
        self.unresolved = ""
        return self._overtaken
