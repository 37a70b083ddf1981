"""One cycle's inputs, and its decisions so far: decisions, and the notes that follow from what
happens to gangs.
"""

from dataclasses import dataclass, field
from typing import Final, assert_never

import msgspec

from services.gang_planner.core.foresight.reservations import Reservations
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state import in_flight
from services.gang_planner.core.state.gang_settings import start_deadline_ms
from services.gang_planner.core.state.gang_states import GangEvent
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.timers import Timers
from services.gang_planner.core.transitions import CLOSED, Effect, apply_event
from shared.contracts.decisions import (
    Act,
    Cycle,
    EvictionDecision,
    GangDecision,
    GangStarted,
    Note,
    NoteClosed,
    NoteKind,
    NoteOpened,
    Rooms,
)
from shared.model.gang_keys import GangKey

#: An attribute of an enum class is slow in Python 3.11, and every decided gang needs this one.
_MEMBERS_DECIDED: Final = GangEvent.MEMBERS_DECIDED
#: The reason for closing a note that is opened again under the gang's new id.
RENAMED: Final = "Renamed"


@dataclass(eq=False, slots=True)
class CycleContext:
    """Passed to all modules that decide in a cycle. It collects decisions and notes in the order in
    which they are appended to DECISIONS.
    """

    state: State
    session: Session
    cycle: Cycle
    #: The time of this cycle, in milliseconds.
    now_ms: int
    timers: Timers
    reservations: Reservations
    decisions: list[Act] = field(default_factory=list[Act])
    notes: list[Note] = field(default_factory=list[Note])
    #: Notes opened in this cycle: no module acts on a note before it is in the log.
    fresh: dict[tuple[GangKey, NoteKind], Gang] = field(
        default_factory=dict[tuple[GangKey, NoteKind], Gang]
    )
    #: Gangs for which this cycle decided to delete members.
    released: set[GangKey] = field(default_factory=set[GangKey])
    #: Gangs placed in this cycle on the capacity of their victims.
    took_over: set[GangKey] = field(default_factory=set[GangKey])
    #: The in-flight limit is reached: the first gang that waits for it blocks those behind it.
    throttled: bool = False
    #: The enqueue action is not configured: every group is admitted.
    admit_all: bool = False

    def add_decision(self, gang: Gang, decision: GangDecision) -> None:
        """Add a decision to place members of the gang, and apply its event to the gang's state."""
        apply_event(gang.history, _MEMBERS_DECIDED, gang)
        self.decisions.append(decision)

    def report(
        self,
        gang: Gang,
        event: GangEvent,
        *,
        reason: str = "",
        message: str = "",
        until_ms: int = 0,
    ) -> None:
        """Apply an event to a gang and carry out its effect.

        `reason` (in CamelCase) and `message` are those of the note that the effect opens; at
        `until_ms` the repair's deadline passes or the backoff ends.

        Raises:
            InvariantViolation: The event cannot happen in the gang's state.
        """
        history = gang.history
        effect = apply_event(history, event, gang)
        match effect:
            case Effect.NOTHING:
                pass
            case Effect.RECORD_START:
                self.close_note(gang, "repair", "Started")
                self._begin_start(gang)
            case Effect.COUNT_DECISION:
                history.attempt = 1
                self.state.gangs.touch(gang)
            case Effect.OPEN_REPAIR:
                self.open_note(gang, "repair", until_ms=until_ms, reason=reason, message=message)
            case Effect.CLOSE_REPAIR | Effect.WITHDRAW_RELEASE:
                self.close_note(gang, *CLOSED[effect])
            case Effect.OPEN_RELEASE:
                self._open_release(gang, reason, message)
            case Effect.FINISH_RELEASE:
                in_flight.forget_evictions(self.state.gangs, self.state.evictions, gang.gang_id)
                self.close_note(gang, "release", "Released")
                self._open_backoff(gang, reason, message, until_ms)
            case Effect.OPEN_BACKOFF:
                self._open_backoff(gang, reason, message, until_ms)
            case Effect.CLOSE_BACKOFF:
                self.close_note(gang, "backoff", "Gone" if gang.vacant else "Elapsed")
            case _:
                assert_never(effect)

    def _open_release(self, gang: Gang, reason: str, message: str) -> None:
        self.open_note(gang, "release", until_ms=0, reason=reason, message=message)
        for kind in ("repair", "start", "degraded", "run"):
            self.close_note(gang, kind, "Released")

    def _begin_start(self, gang: Gang) -> None:
        gang.history.failures = 0
        gang.history.known_as = gang.gang_id
        self.record_start(gang)
        lasts_ms = start_deadline_ms(gang)
        if lasts_ms and not gang.quorum_runs:
            self.open_note(gang, "start", until_ms=self.now_ms + lasts_ms, reason="QuorumPlaced")

    def _open_backoff(self, gang: Gang, reason: str, message: str, until_ms: int) -> None:
        gang.history.failures += 1
        self.open_note(gang, "backoff", until_ms=until_ms, reason=reason, message=message)

    def open_note(
        self,
        gang: Gang,
        kind: NoteKind,
        *,
        until_ms: int,
        reason: str,
        message: str = "",
        since_ms: int = 0,
        rooms: Rooms = (),
    ) -> None:
        """Open a note of the gang, or replace the open one of this kind.

        The gang is assessed again at `until_ms`, unless that is 0.
        """
        if until_ms:
            self.timers.set(until_ms, gang)
        note = NoteOpened(
            gang_id=gang.gang_id,
            epoch=self.state.epoch,
            kind=kind,
            at_ms=self.now_ms,
            until_ms=until_ms,
            reason=reason,
            attempt=gang.history.attempt,
            message=message,
            cycle=self.cycle,
            since_ms=since_ms,
            rooms=rooms,
        )
        gang.history.notes.put(note)
        gang.history.known_as = gang.gang_id
        self.fresh[gang.key, kind] = gang
        self.notes.append(note)
        self.state.gangs.touch(gang)

    def has_passed(self, gang: Gang, note: NoteOpened, lasts_ms: int) -> bool:
        """Whether a note's deadline, at most `lasts_ms` from now, has passed and the note is in the
        log; if not, the gang is assessed again then.
        """
        until_ms = min(note.until_ms, self.now_ms + lasts_ms)
        if until_ms < note.until_ms:
            # The clock was set back, or the setting was lowered.
            reason, message = note.reason, note.message
            self.open_note(gang, note.kind, until_ms=until_ms, reason=reason, message=message)
        if self.now_ms < until_ms or (gang.key, note.kind) in self.fresh:
            self.timers.set(max(until_ms, self.now_ms), gang)
            return False
        return True

    def record_start(self, gang: Gang) -> None:
        self.notes.append(
            GangStarted(
                gang_id=gang.gang_id,
                epoch=self.state.epoch,
                at_ms=self.now_ms,
                attempt=gang.history.attempt,
                cycle=self.cycle,
            )
        )

    def rename(self, gang: Gang) -> None:
        """Write the gang's open notes again, after a new object changed its id."""
        history = gang.history
        history.known_as = gang.gang_id
        # Also if it is dormant now: that depends on cycles that wrote no records.
        if history.has_started:
            self.record_start(gang)
        for note in list(history.notes):
            if note.gang_id == gang.gang_id:
                continue
            self.add_closed(note.gang_id, note.kind, RENAMED)
            again = msgspec.structs.replace(
                note,
                gang_id=gang.gang_id,
                epoch=self.state.epoch,
                attempt=history.attempt,
                cycle=self.cycle,
            )
            history.notes.put(again)
            self.notes.append(again)
        # Its deadlines are checked again in this cycle, even if no further record names the gang.
        self.state.gangs.touch(gang)

    def close_note(self, gang: Gang, kind: NoteKind, reason: str) -> None:
        """Close the gang's note of this kind; no effect if none is open."""
        if gang.history.notes.close(kind):
            self.add_closed(gang.gang_id, kind, reason)
            self.state.gangs.touch(gang)

    def add_closed(self, gang_id: str, kind: NoteKind, reason: str) -> None:
        """Add the end of a note to the records of this cycle."""
        self.notes.append(
            NoteClosed(
                gang_id=gang_id,
                epoch=self.state.epoch,
                kind=kind,
                at_ms=self.now_ms,
                reason=reason,
                cycle=self.cycle,
            )
        )

    def put_in_order(self) -> None:
        """Sort releases and notes by gang: the order of assessments depends on cycles that wrote no
        records, which a replay does not run. Evictions for preemptors keep their order: a later one
        counts on capacity that an earlier one frees.
        """
        taken = [decision for decision in self.decisions if isinstance(decision, EvictionDecision)]
        if taken:
            binds = [
                decision
                for decision in self.decisions
                if not isinstance(decision, EvictionDecision)
            ]
            releases = [eviction for eviction in taken if eviction.via != "eviction"]
            evictions = [eviction for eviction in taken if eviction.via == "eviction"]
            self.decisions = [*sorted(releases, key=_gang_id), *evictions, *binds]
        self.notes.sort(key=_gang_id)


def _gang_id(record: Act | Note) -> str:
    return record.gang_id
