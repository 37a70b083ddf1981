"""When the gangs that wait now start, if nothing else happens than what is known.

The planner runs forward from the present: no gang arrives, no node changes, no pod fails. Running
gangs, and those that start, hold their capacity until their run limits end, or for as long as short
runs of the past took. Gangs without a limit never end. What is in flight arrives at once.
"""

import heapq
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from services.gang_planner.core.forecast.present import Present
from services.gang_planner.core.planner import Planner
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.past_runs import PartsOfLimits
from services.gang_planner.core.state.run_limits import NEVER, end_ms, stated_ms
from services.gang_planner.core.state.titles import title_of
from shared.contracts.decisions import NoteOpened
from shared.contracts.pending_reasons import PendingReason

#: Cycles in a row, without an event or a decision, before it ends.
_IDLE_MAX: Final = 200
#: A forecast reaches no further.
_HORIZON_MS: Final = 30 * 86_400_000
#: While more gangs wait, what ends within these percent of the time until then ends together: at
#: the end of that time for the latest starts, at its beginning for the earliest.
_EXACT_MAX: Final = 50
_WINDOW_PERCENT: Final = 5
#: Reasons of gangs that are tried as soon as these end.
_BEFORE: Final = frozenset({PendingReason.NOT_ADMITTED, PendingReason.BACKOFF})
#: How many of a hundred past runs were at most as long as runs are expected to be for the earliest
#: starts; and for the latest ones, where no user has stated a limit.
SHORT_PERCENT: Final = 15
LONG_PERCENT: Final = 95


class WaitingGang(NamedTuple):
    """A gang that has not started, at the beginning of the forecast."""

    gang_id: str
    namespace: str
    queue: str
    #: Its place in the queue, from 1 on.
    position: int


class StartForecast(NamedTuple):
    """What came out."""

    waiting: list[WaitingGang]
    #: When gangs start, in milliseconds since the epoch, by gang id.
    starts: dict[str, int]
    #: It ended here: nothing more would happen, or its time was over.
    until_ms: int
    cut_off: bool
    #: Gangs without a run limit that hold capacity: namespace and title.
    endless: list[tuple[str, str]]


def forecast(
    planner: Planner, now_ms: int, *, short: bool, go_on: Callable[[], bool]
) -> StartForecast:
    """Run a planner forward that was copied for it.

    Args:
        planner: It is of no other use afterwards.
        now_ms: The present.
        short: Runs take as long as short runs of the past did, instead of their whole limits.
        go_on: Whether there is time for another cycle.
    """
    return _Run(planner, now_ms, short=short).play(go_on)


class _Run:
    def __init__(self, planner: Planner, now_ms: int, *, short: bool) -> None:
        #: (instant, id) of gangs that end, and the newest instant of each.
        self._ends: list[tuple[int, str]] = []
        self._end_of: dict[str, int] = {}
        self._short = short
        self._parts = PartsOfLimits(planner.past_runs)
        self._now_ms = self._begin_ms = now_ms
        self._present = Present(planner, now_ms, self._expect_end)

    def play(self, go_on: Callable[[], bool]) -> StartForecast:
        present, starts = self._present, self._present.starts
        gangs = present.state.gangs.gangs.values()
        here = [gang for gang in gangs if gang.members and not gang.history.started]
        before = {gang.gang_id for gang in here if not gang.have()}
        _, wakeup_ms = present.decide(self._now_ms)
        waiting = (gang for gang in here if gang.gang_id in before and self._waits(gang))
        listed = list(_in_their_queues(waiting))
        endless = self._endless()
        awaited = {gang.gang_id for gang in listed}
        idle, cut_off = 0, False
        while not awaited <= starts.keys():
            if not go_on():
                cut_off = True
                break
            next_ms = min(self._ends[0][0] if self._ends else NEVER, wakeup_ms or NEVER)
            if next_ms > self._begin_ms + _HORIZON_MS or idle == _IDLE_MAX:
                break
            self._now_ms = max(self._now_ms, next_ms)
            window_ms = 0
            if len(listed) > _EXACT_MAX:
                window_ms = (self._now_ms - self._begin_ms) * _WINDOW_PERCENT // 100
            ended = self._end_gangs(self._now_ms + window_ms)
            if not self._short:
                self._now_ms += window_ms
            decided, wakeup_ms = present.decide(self._now_ms)
            idle = 0 if ended or decided else idle + 1
        known = {gang_id: at_ms for gang_id, at_ms in starts.items() if gang_id in awaited}
        return StartForecast(listed, known, self._now_ms, cut_off, endless)

    def _waits(self, gang: Gang) -> bool:
        """Whether the gang starts at once, or waits for capacity or its admission."""
        placed = gang.gang_id in self._present.starts
        return placed or gang.bucket is not None or gang.pending_reason in _BEFORE

    def _endless(self) -> list[tuple[str, str]]:
        state = self._present.state
        return [
            (gang.namespace, title_of(state, gang))
            for gang in state.gangs.gangs.values()
            if gang.have() and end_ms(gang, self._now_ms) == NEVER
        ]

    def _expect_end(self, gang: Gang, note: NoteOpened) -> None:
        if gang.gang_id in self._end_of and self._percent_of(gang):
            # Its notice does not change for how long it runs.
            return
        at_ms = self._end_at(gang, note)
        self._end_of[gang.gang_id] = at_ms
        heapq.heappush(self._ends, (at_ms, gang.gang_id))

    def _end_at(self, gang: Gang, note: NoteOpened) -> int:
        percent = self._percent_of(gang)
        if not percent:
            return end_ms(gang, self._now_ms)
        limit, run_ms = note.until_ms - note.since_ms, max(self._now_ms - note.since_ms, 0)
        queue, namespace = gang.queue.name, gang.namespace
        lasts_ms = self._parts.lasts_ms(queue, namespace, run_ms, limit, percent)
        return max(note.since_ms + lasts_ms, self._now_ms + 1)

    def _percent_of(self, gang: Gang) -> int:
        """How many of a hundred past runs are at most as long as its run; 0: it takes its limit."""
        if self._short:
            return SHORT_PERCENT
        # A limit that only its queue has says nothing about this gang.
        return LONG_PERCENT if self._parts.known and not stated_ms(gang) else 0

    def _end_gangs(self, until_ms: int) -> bool:
        """End the gangs whose instants come until then; whether there were any."""
        ended = False
        while self._ends and self._ends[0][0] <= until_ms:
            at_ms, gang_id = heapq.heappop(self._ends)
            gang = self._present.state.gangs.find(gang_id)
            if gang is not None and self._end_of.get(gang_id) == at_ms:
                del self._end_of[gang_id]
                self._present.end(gang)
                ended = True
        return ended


def _in_their_queues(gangs: Iterable[Gang]) -> Iterable[WaitingGang]:
    """The gangs with their places in their queues."""
    places: dict[str, int] = {}
    for gang in sorted(gangs, key=lambda gang: (gang.queue.name, gang.order, gang.key)):
        place = places[gang.queue.name] = places.get(gang.queue.name, 0) + 1
        yield WaitingGang(gang.gang_id, gang.namespace, gang.queue.name, place)
