"""The earliest instant at which a waiting gang fits, and where, found on a copy of the nodes.

Pods leave the copy in the order in which their gangs end, and the gang is placed there as in any
cycle: by its shapes, topology, devices, volumes and quota. The instant is found by bisection, so a
plan takes a few placements, however many gangs run.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import NamedTuple, Protocol, Self, TypeAlias

from services.gang_planner.core.foresight.curtain import Curtain
from services.gang_planner.core.foresight.profile import Pods, Profile, Span
from services.gang_planner.core.placement import gang_placement
from services.gang_planner.core.placement.attempt import PlacementRequest
from services.gang_planner.core.placement.gang_placement import Refusal
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.run_limits import NEVER

_Stop: TypeAlias = tuple[int, int]
"""An instant, and how many spans have ended then."""


class Plan(NamedTuple):
    """Where a gang fits from an instant on."""

    #: `NEVER`: gangs without a limit would have to end.
    from_ms: int
    rooms: tuple[Pods, ...]


class Hides(Protocol):
    """What other reservations hide from a gang."""

    def ends(self) -> Iterable[int]:
        """The instants, before `NEVER`, at which gangs that have a reservation would end."""
        ...

    def hidden(self, at_ms: int, until_ms: int) -> Ints | None:
        """What a gang must leave that would run from one instant to another; None: nothing."""
        ...


class Future:
    """The nodes of a session at a later instant, as a context manager: while it lasts, queues are
    charged for less.
    """

    def __init__(self, session: Session, profile: Profile, now_ms: int) -> None:
        self._live = session
        self._now_ms = now_ms
        self._spans = list(profile.spans)
        self._endless: Callable[[], list[Span]] = partial(profile.endless, now_ms)
        self._finite = len(self._spans)
        #: How many of the spans have ended.
        self._ended = 0
        #: Node columns that plans have examined.
        self.spent = 0

    @cached_property
    def _session(self) -> Session:
        live = self._live
        copied = live.node_capacity.copy()
        session = Session(copied, live.shapes, live.fits.masks, live.policies)
        session.begin()
        return session

    @cached_property
    def _curtain(self) -> Curtain:
        return Curtain(self._session.node_capacity)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Charge the queues as before."""
        self._move(0)

    def plan(
        self,
        request: PlacementRequest,
        lasts_ms: int,
        hides: Hides,
        *,
        near_ms: int,
        until_ms: int | None = None,
        beyond: bool = False,
    ) -> Plan | None:
        """The earliest instant at which a gang fits that runs for `lasts_ms` (0: without a limit);
        None: there is none.

        Args:
            request: The gang.
            lasts_ms: Its run limit.
            hides: What other reservations hide from it.
            near_ms: The instant of the last plan, which is often the present one; `NEVER`: none.
            until_ms: The last instant that is tried; None: when all gangs with a limit have ended.
            beyond: Whether gangs without a limit may end, the oldest first.
        """
        finite = self._finite
        times = {span.end_ms for span in self._spans[:finite]} | set(hides.ends())
        times.add(self._now_ms)
        if until_ms is not None:
            times = {at_ms for at_ms in times if at_ms < until_ms} | {until_ms}
        stops = [
            (at_ms, bisect_right(self._spans, at_ms, hi=finite, key=_end))
            for at_ms in sorted(times)
        ]
        plan = self._first(stops, near_ms, request, lasts_ms, hides)
        if plan is not None or not beyond:
            return plan
        if len(self._spans) == finite:
            self._spans += self._endless()
        never = [(NEVER, ended) for ended in range(finite + 1, len(self._spans) + 1)]
        return self._first(never, NEVER, request, lasts_ms, hides)

    def _first(
        self,
        stops: list[_Stop],
        near_ms: int,
        request: PlacementRequest,
        lasts_ms: int,
        hides: Hides,
    ) -> Plan | None:
        """The plan at the first of these stops at which the gang fits."""
        best = None
        low, high = 0, len(stops)
        # Most gangs fit at no stop, or where they did before.
        probe = min(bisect_left(stops, (near_ms, 0)), len(stops) - 1)
        neighbour = near_ms < NEVER
        while low < high:
            plan = self._try(stops[probe], request, lasts_ms, hides)
            if plan is not None:
                best, high = plan, probe
            elif probe == len(stops) - 1:
                return best
            else:
                low = probe + 1
            probe = high - 1 if neighbour and plan is not None else (low + high) // 2
            neighbour = False
        return best

    def _try(
        self, stop: _Stop, request: PlacementRequest, lasts_ms: int, hides: Hides
    ) -> Plan | None:
        at_ms, ended = stop
        self._move(ended)
        hidden = hides.hidden(at_ms, at_ms + lasts_ms if lasts_ms else NEVER)
        if hidden is not None:
            self._curtain.draw(hidden)
        work_left = self._session.work_left
        placement = gang_placement.place(self._session, request)
        self.spent += work_left - self._session.work_left
        self._curtain.lift()
        if isinstance(placement, Refusal):
            return None
        rooms = tuple(
            Pods(allocation.shape, allocation.slots, allocation.counts)
            for allocation in placement.statement.allocations
        )
        placement.statement.discard()
        return Plan(at_ms, rooms)

    def _move(self, ended: int) -> None:
        """Let so many spans have ended."""
        for span in self._spans[self._ended : ended]:
            self._change(span, away=True)
        for span in reversed(self._spans[ended : self._ended]):
            self._change(span, away=False)
        self._ended = ended

    def _change(self, span: Span, *, away: bool) -> None:
        node_capacity = self._session.node_capacity
        change = node_capacity.give_many if away else node_capacity.take_many
        for pods in span.pods:
            change(pods.slots, pods.counts, pods.shape)
            if span.queue is not None:
                count = int(pods.counts.sum())
                span.queue.charge(pods.shape, -count if away else count)


def _end(span: Span) -> int:
    return span.end_ms
