"""The run of a gang with a run limit: from when its minimum runs until its eviction.

The note of the run is opened when the minimum runs, so that a planner that takes over continues it.
The limit may change while the gang runs. Some time before the end the gang gets a notice, which is
a note in the log as well: no gang is evicted without it. Where the queue only plans with limits,
the note says that the gang has overrun its limit, and nothing is evicted.
"""

from typing import Final

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.lifecycle import release
from services.gang_planner.core.state import member_states
from services.gang_planner.core.state.gang_states import GangEvent
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.instants import duration
from services.gang_planner.core.state.run_limits import limit_ms
from shared.contracts.decisions import NoteOpened
from shared.contracts.pending_reasons import PendingReason

#: Reasons of the note: the gang runs, it has its notice, it has overrun a limit for planning only.
RUNNING: Final = "Running"
NOTICE: Final = "EvictionNotice"
OVERRUN: Final = "Overrun"


class RunLimit:
    """The run of one gang, in one cycle."""

    def __init__(self, work: CycleContext, gang: Gang) -> None:
        self._work = work
        self._gang = gang
        self._rules = gang.queue.run_rules

    def watch(self) -> None:
        """Open, follow or close the note of the gang's run."""
        gang, history, now_ms = self._gang, self._gang.history, self._work.now_ms
        note = history.notes.run
        # Members that have succeeded count for the quorum, and do not run.
        runs = history.started and gang.quorum_runs and gang.counts[member_states.RUNNING]
        if note is None and not runs:
            return
        if not history.started or history.releasing or gang.completed:
            self._end(note)
            return
        lasts_ms = limit_ms(gang)
        if note is not None and not self._rules.most_ms:
            # Only a queue's maximum allows a longer limit, whichever object stated the present one:
            # plans for other gangs count on it.
            present_ms = note.until_ms - note.since_ms
            lasts_ms = min(lasts_ms or present_ms, present_ms)
        if not lasts_ms:
            self._work.close_note(gang, "run", "Off")
        elif note is None:
            self._open(RUNNING, now_ms, now_ms + lasts_ms)
        else:
            self._follow(note, lasts_ms)

    def _end(self, note: NoteOpened | None) -> None:
        if note is not None and not self._gang.history.releasing:
            self._remember(note)
        self._work.close_note(self._gang, "run", "Ended")

    def _remember(self, note: NoteOpened) -> None:
        """Let estimates know for how long it ran."""
        queue, namespace = self._gang.queue.name, self._gang.namespace
        ran_ms, limit = self._work.now_ms - note.since_ms, note.until_ms - note.since_ms
        self._work.state.past_runs.add(queue, namespace, ran_ms, limit)

    def _follow(self, note: NoteOpened, lasts_ms: int) -> None:
        work, gang, enforced = self._work, self._gang, self._rules.enforced
        # A clock that was set back must not make the run longer.
        since_ms = min(note.since_ms, work.now_ms)
        until_ms = since_ms + lasts_ms
        if note.reason == NOTICE and enforced and until_ms <= note.until_ms:
            if work.now_ms < note.until_ms or (gang.key, "run") in work.fresh:
                work.timers.set(max(note.until_ms, work.now_ms), gang)
                return
            words = f"its run limit of {duration(lasts_ms)} has passed"
            event = GangEvent.RUN_LIMIT_PASSED
            if release.begin(work, gang, event, PendingReason.RUN_LIMIT, words):
                # It was assessed before, so members may wait, which no action places any more.
                work.state.backlog.take(gang)
                self._remember(note)
            return
        notice_ms = self._rules.notice_ms if enforced else 0
        turns_ms = until_ms - notice_ms
        if work.now_ms >= turns_ms and enforced:
            self._open(NOTICE, since_ms, max(until_ms, work.now_ms + notice_ms))
        elif work.now_ms >= turns_ms:
            if note.reason != OVERRUN or until_ms != note.until_ms:
                self._open(OVERRUN, since_ms, until_ms)
        elif note.reason != RUNNING or (since_ms, until_ms) != (note.since_ms, note.until_ms):
            self._open(RUNNING, since_ms, until_ms)
        else:
            work.timers.set(turns_ms, gang)

    def _open(self, reason: str, since_ms: int, until_ms: int) -> None:
        # The note's own timer is its end, which comes after the notice.
        work, gang = self._work, self._gang
        work.open_note(gang, "run", until_ms=until_ms, reason=reason, since_ms=since_ms)
        if reason == RUNNING and self._rules.enforced:
            work.timers.set(max(until_ms - self._rules.notice_ms, work.now_ms), gang)
