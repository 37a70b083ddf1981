"""The protocol of the fenced append, free of I/O: what to do next after each thing that can happen.

Intuition: a log with one writer is a chain, and an append is "mine comes behind record N". The
server compares N with its last record and refuses when another stands there, so that a writer that
missed a record cannot write. That needs no clock and no lease.

The complication is a lost answer. The record may be stored, may be on its way, or may be lost; so
nothing else is appended until the leader of the stream has been asked what stands at N+1. Ours: it
was stored. Another writer's: we are superseded. Nothing: send the same record again, with the same
condition. A late copy then does no harm: of two copies with the condition "behind N" only one can
be stored.

A log may overlook foreign messages: messages that no writer of it can have written, whatever its
version. A refusal is then looked into as well: what stands at N+1 is a foreign message, and the
record is sent again behind N+1. So "behind N+1" still says that this writer has seen all that
another wrote; a record of another writer, the first of which contains its epoch, is met before
anything is stored behind it.

The shell (`shared.bus.fence`) carries out actions and reports what came of them; a simulation can
do the same. Every action is answered by exactly one `on_…` call, and every `on_…` returns the next
action until one of the four ends: `Done`, `Overtaken`, `NotStored`, `GiveUp`.
"""

from typing import Final, TypeAlias

import msgspec

#: Sends and reads of one append before `GiveUp`; with the shell's timeouts and pauses about 10 s.
ATTEMPTS_MAX: Final = 8


class Send(msgspec.Struct, frozen=True):
    """Send the record (or the batch) with the condition that `expected` is the stream's last.

    No two sends of one record have the same `attempt`.
    """

    expected: int
    attempt: int


class Read(msgspec.Struct, frozen=True):
    """Ask the stream's leader for record `seq`; `attempt` grows with each look."""

    seq: int
    attempt: int


class Done(msgspec.Struct, frozen=True):
    """Stored as records `first` to `last`."""

    first: int
    last: int


class Overtaken(msgspec.Struct, frozen=True):
    """Another writer exists, or the stream is not the one we knew. Final for this machine."""

    why: str


class NotStored(msgspec.Struct, frozen=True):
    """The server refused for a reason of its own; nothing was stored and nothing is in flight."""

    code: int
    text: str


class GiveUp(msgspec.Struct, frozen=True):
    """Unknown still, after all attempts; `begin` with the same record continues."""

    why: str


Action: TypeAlias = Send | Read | Done | Overtaken | NotStored | GiveUp


class FenceMachine:
    """One writer's state: what it has applied, and the one append that may be in flight."""

    def __init__(self, last_applied: int, *, attempts_max: int = ATTEMPTS_MAX) -> None:
        assert last_applied >= 0, last_applied
        #: Whether foreign messages are stepped over; else one is as good as another writer.
        self.overlooks = False
        self._last_applied = last_applied
        self._attempts_max = attempts_max
        self._overtaken: Overtaken | None = None
        #: Id of the first record in flight; "" exactly when none is.
        self._record_id = ""
        self._count = 0
        #: What that record must stand behind. Fixed when it begins, whatever is applied meanwhile.
        self._expected = 0
        self._attempt = 0
        self._attempts_end = attempts_max
        #: How often it was sent with this condition: only after the first time a refusal is surely
        #: another writer's.
        self._sent = 0
        #: Whether a copy with this condition was refused by it.
        self._refused = False

    @property
    def last_applied(self) -> int:
        """Sequence of the last record read and applied, or appended."""
        return self._last_applied

    @property
    def unresolved(self) -> str:
        """Id of the record whose fate is not known; "" when there is none."""
        return self._record_id

    def applied(self, seq: int) -> None:
        """A record was read from the stream; echoes of what we appended change nothing."""
        self._last_applied = max(self._last_applied, seq)

    def begin(self, record_id: str, count: int = 1) -> Action:
        """Begin an append, or continue with the one whose fate is unknown (the same id again)."""
        assert record_id, "a record needs an id"
        assert count > 0, count
        if self._overtaken is not None:
            return self._overtaken
        self._attempt = 0
        self._attempts_end = self._attempts_max
        if self._record_id:
            assert (record_id, count) == (self._record_id, self._count), (
                f"{record_id} begun while the fate of {self._record_id} is unknown"
            )
            return self._read()
        self._record_id, self._count = record_id, count
        self._expected = self._last_applied
        self._sent = 0
        self._refused = False
        return self._send()

    def on_ack(self, last_seq: int) -> Action:
        """The server stored it, its last record as `last_seq`."""
        assert last_seq == self._expected + self._count, (
            f"{self._record_id}: stored as {last_seq}, expected {self._expected + self._count}"
        )
        return self._done()

    def on_refused(self, text: str) -> Action:
        """The condition did not hold, or the server knows the id already."""
        self._refused = True
        if self._sent > 1 or self.overlooks:
            # An earlier copy of ours may be what it stumbled over, or a foreign message.
            return self._read()
        return self._overtake(f"refused behind {self._expected}: {text}")

    def on_rejected(self, code: int, text: str) -> Action:
        """The server refused this copy for another reason."""
        if self._sent > 1:
            return self._read()
        self._record_id = ""
        return NotStored(code, text)

    def on_no_answer(self) -> Action:
        """Neither stored nor refused, as far as we know: no answer to a `Send`."""
        return self._read()

    def on_read(self, found_id: str, *, stray: bool = False) -> Action:
        """A record stands behind `expected`; `found_id` is its id ("" if it has none)."""
        if found_id == self._record_id:
            return self._done()
        if stray and self.overlooks:
            # No copy of ours that was sent before can be stored any more: its condition is over.
            self._expected += 1
            self._last_applied = max(self._last_applied, self._expected)
            self._sent = 0
            self._refused = False
            self._attempts_end = self._attempt + self._attempts_max
            return self._send()
        return self._overtake(f"record {self._expected + 1} was written by {found_id or 'another'}")

    def on_read_nothing(self, first_seq: int, last_seq: int) -> Action:
        """No record stands there; the stream holds `first_seq` to `last_seq`."""
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
            # It was removed, or came between the two questions; ours it is not.
            return self._overtake(f"refused behind {self._expected}, where nothing stands")
        return self._read()  # it arrived between the two questions

    def on_replaced(self, generation: str) -> Action:
        """The stream is another one by now: its sequences mean nothing to this log, even where they
        are the same.
        """
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
                f"the fate of {self._record_id} is unknown after {self._attempt} attempts"
            )
        self._attempt += 1
        if isinstance(action, Send):
            self._sent += 1
        return action

    def _done(self) -> Action:
        first, last = self._expected + 1, self._expected + self._count
        self._last_applied = max(self._last_applied, last)
        self._record_id = ""
        return Done(first, last)

    def _overtake(self, why: str) -> Action:
        self._overtaken = Overtaken(why)
        self._record_id = ""
        return self._overtaken
