"""How many pods may be in flight: as many as binders lately finished within a second or two.

Decisions made beyond that limit would wait before the binders, and every more urgent gang would
wait behind them: the order of gangs counts only until they are decided. Binders finish as many pods
as the API server takes. With a round trip shorter than `ahead_ms` the limit grows by itself until
binders are always busy, within a few round trips.

The limit is an input of a cycle, like the instant: it depends on when answers were read. So each
cycle records the limit that it was given, and a replay gives it the same.
"""

from collections import deque
from typing import Final

#: Answers that come within so long of each other are counted as one.
_STEP_MS: Final = 20


class InFlightLimit:
    """The limit of one planner while it is the writer. When the clock goes back, answers are
    counted from then on.
    """

    def __init__(self, ahead_ms: int, least: int) -> None:
        """Allow the pods answered in the last `ahead_ms` (0: no limit), but at least `least`."""
        self._ahead_ms = ahead_ms
        self._least = least
        #: (instant, pods), oldest first; no more than one for each step.
        self._answers: deque[tuple[int, int]] = deque()
        self._sum = 0
        self._answered = 0

    def begin(self, now_ms: int, answered: int, in_flight_max: int) -> None:
        """Continue with the limit of the planner before; `answered` pods are answered by now."""
        self._answers.clear()
        self._sum = 0
        self._answered = answered
        self._count(now_ms, in_flight_max)

    def in_flight_max(self, now_ms: int, answered: int) -> int:
        """How many pods may be in flight, given how many were answered so far; 0: any number."""
        if not self._ahead_ms:
            return 0
        if self._answers and now_ms < self._answers[-1][0]:
            self._answers.clear()
            self._sum = 0
        if answered > self._answered:
            self._count(now_ms, answered - self._answered)
            self._answered = answered
        while self._answers and self._answers[0][0] <= now_ms - self._ahead_ms:
            self._sum -= self._answers.popleft()[1]
        return max(self._sum, self._least)

    def _count(self, now_ms: int, pods: int) -> None:
        if not pods:
            return
        self._sum += pods
        if self._answers and now_ms - self._answers[-1][0] < _STEP_MS:
            at_ms, before = self._answers.pop()
            self._answers.append((at_ms, before + pods))
        else:
            self._answers.append((now_ms, pods))
