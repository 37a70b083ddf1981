"""Pauses after decisions that could not be carried out, and the pairs of pod and node that are
avoided meanwhile.

A pause is a note in DECISIONS, so that a restart neither forgets nor repeats it. Instants come from
the cycle: outcomes carry clocks of other machines.
"""

import heapq
from typing import Final

from services.gang_planner.core.gangs import Gang, GangKey
from services.gang_planner.core.inflight import BAD_PAIR_MS
from services.gang_planner.core.room import UNDATED
from services.gang_planner.state import State
from shared.contracts.decisions import Note, NoteClosed, NoteOpened

#: First pause; each further failure in a row doubles it, up to a minute.
_PAUSE_MS: Final = 1_000
_PAUSE_MS_MAX: Final = 60_000


class Timers:
    """Instants at which a gang is to be looked at again."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, GangKey]] = []
        self._known: set[tuple[int, GangKey]] = set()

    def set(self, at_ms: int, gang: Gang) -> None:
        """Look at the gang at this instant; setting it twice is setting it once."""
        entry = (at_ms, gang.key)
        if entry not in self._known:
            self._known.add(entry)
            heapq.heappush(self._heap, entry)

    def forget(self) -> None:
        """The clock was set back: instants set before it mean nothing now."""
        self._heap.clear()
        self._known.clear()

    def due(self, state: State, now_ms: int) -> None:
        """Touch every gang whose instant has come."""
        while self._heap and self._heap[0][0] <= now_ms:
            entry = heapq.heappop(self._heap)
            self._known.discard(entry)
            gang = state.gangs.gangs.get(entry[1])
            if gang is not None:
                state.gangs.touch(gang)

    @property
    def next_ms(self) -> int | None:
        """The next instant."""
        return self._heap[0][0] if self._heap else None


def open_pause(state: State, timers: Timers, gang: Gang, now_ms: int) -> Note | None:
    """Date a failure that outcomes reported; the note of the pause it opens, None when nothing
    failed.
    """
    if not gang.undated_failure:
        return None
    gang.undated_failure = False
    history = gang.history
    for pair, until_ms in list(history.bad.items()):
        if until_ms == UNDATED:
            history.bad[pair] = now_ms + BAD_PAIR_MS
    if history.bad:
        timers.set(now_ms + BAD_PAIR_MS, gang)
    history.failures += 1
    until_ms = now_ms + min(_PAUSE_MS << min(history.failures - 1, 16), _PAUSE_MS_MAX)
    note = NoteOpened(
        gang_id=gang.gang_id,
        epoch=state.epoch,
        kind="backoff",
        at_ms=now_ms,
        until_ms=until_ms,
        reason="DecisionFailed",
    )
    history.backoff = note
    return note


def close_pause(state: State, timers: Timers, gang: Gang, now_ms: int) -> Note | None:
    """The note that ends a pause whose instant has come; None while it lasts, or without one."""
    history = gang.history
    if history.backoff is None:
        return None
    # A pause that ends later than any pause can was opened before the clock was set back.
    if now_ms < history.backoff.until_ms <= now_ms + _PAUSE_MS_MAX:
        # Also after a restart, when another planner opened it.
        timers.set(history.backoff.until_ms, gang)
        return None
    history.backoff = None
    return NoteClosed(
        gang_id=gang.gang_id, epoch=state.epoch, kind="backoff", at_ms=now_ms, reason="Elapsed"
    )
