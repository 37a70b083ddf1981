"""When the capacity that gangs hold becomes free: by run limits, and by the ends of holds."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.holds import HoldTable
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.queues import QueueEntry
from services.gang_planner.core.state.run_limits import NEVER, end_ms, overdue_ms
from shared.model.gang_keys import GangKey


class Pods(NamedTuple):
    """Pods of one shape: `counts[i]` on node `slots[i]`; slots are distinct."""

    shape: ShapeEntry
    slots: Ints
    counts: Ints


class Span(NamedTuple):
    """What becomes free at an instant."""

    #: `NEVER`: its gang has no run limit.
    end_ms: int
    #: Order of spans that end together: gangs without a limit by age.
    since_ms: int
    key: GangKey
    #: Whose pods end; None: a reservation for a lost member ends.
    gang: Gang | None
    #: Charged for them.
    queue: QueueEntry | None
    pods: tuple[Pods, ...]


class _Known(NamedTuple):
    """A gang's span, and `Gang.moves` when it was read."""

    moves: int
    gang: Gang
    span: Span


class Profile:
    """All spans that have an end, in its order. They are kept from cycle to cycle: only gangs whose
    members moved, that were assessed, or that should have ended are read again.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._known: dict[GangKey, _Known] = {}
        self._assessed: set[GangKey] = set()
        self._had_holds = False
        self.spans: list[Span] = []
        #: Grows whenever the spans may have changed.
        self.version = 0

    def follow(self, gang: Gang) -> None:
        """Read the gang again: it was assessed, and its end may have changed."""
        self._assessed.add(gang.key)

    def forget(self) -> None:
        """Keep nothing until the next `refresh`."""
        self._known.clear()
        self._assessed.clear()
        self.spans = []

    def refresh(self, now_ms: int) -> None:
        """Let the spans be those of this instant."""
        known = self._known
        stale = [
            key
            for key, each in known.items()
            if key in self._assessed or _has_changed(each, now_ms)
        ]
        for key in stale:
            del known[key]
        self._assessed.clear()
        changed = bool(stale)
        for gang in self._holding():
            if gang.key not in known and (until_ms := end_ms(gang, now_ms)) < NEVER:
                span = _span(gang, until_ms)
                if span.pods:
                    known[gang.key] = _Known(gang.moves, gang, span)
                    changed = True
        has_holds = bool(self._state.holds.by_uid)
        if changed or has_holds or self._had_holds:
            self._had_holds = has_holds
            self.version += 1
            spans = [each.span for each in known.values()]
            spans += (span for span in _of_holds(self._state.holds, now_ms) if span.end_ms < NEVER)
            self.spans = sorted(spans, key=_order)

    def endless(self, now_ms: int) -> list[Span]:
        """The gangs that have no run limit, the oldest first."""
        endless = [gang for gang in self._holding() if end_ms(gang, now_ms) >= NEVER]
        spans = [_span(gang, NEVER) for gang in endless]
        spans += (span for span in _of_holds(self._state.holds, now_ms) if span.end_ms >= NEVER)
        return sorted((span for span in spans if span.pods), key=_order)

    def _holding(self) -> Iterator[Gang]:
        """The gangs that hold capacity."""
        gangs = self._state.gangs.gangs
        for entry in self._state.queues.entries.values():
            for holder in entry.holders:
                if (gang := gangs.get(holder.key)) is not None:
                    yield gang

    def freed(self, after_ms: int, until_ms: int) -> Ints:
        """What becomes free after one instant and until another: amounts by resource row and slot.
        What gangs without a limit hold never does.
        """
        grid = self.nothing()
        for span in self.spans:
            if span.end_ms > until_ms:
                break
            if span.end_ms > after_ms:
                for pods in span.pods:
                    add(grid, pods)
        return grid

    def nothing(self) -> Ints:
        """Zeros by resource row and slot."""
        nodes = self._state.nodes
        return np.zeros((len(nodes.resources.names), nodes.size), dtype=np.int64)


def add(grid: Ints, pods: Pods) -> None:
    """Add what these pods request to amounts by resource row and slot."""
    grid[pods.shape.rows[:, None], pods.slots] += pods.shape.column * pods.counts


def by_shape(places: Iterator[tuple[ShapeEntry, int]]) -> tuple[Pods, ...]:
    """Pods of these shapes on these slots, counted."""
    counts: dict[int, tuple[ShapeEntry, dict[int, int]]] = {}
    for shape, slot in places:
        of_shape = counts.setdefault(shape.id, (shape, {}))[1]
        of_shape[slot] = of_shape.get(slot, 0) + 1
    return tuple(
        Pods(
            shape,
            np.fromiter(on, dtype=np.int64, count=len(on)),
            np.fromiter(on.values(), dtype=np.int64, count=len(on)),
        )
        for shape, on in counts.values()
    )


def _has_changed(known: _Known, now_ms: int) -> bool:
    gang, span = known.gang, known.span
    return gang.moves != known.moves or gang.queue is not span.queue or span.end_ms <= now_ms


def _span(gang: Gang, until_ms: int) -> Span:
    pods = by_shape(_places(gang))
    return Span(until_ms, gang.bound_ms, gang.key, gang, gang.queue, pods)


def _order(span: Span) -> tuple[int, int, GangKey]:
    return span[:3]


def _places(gang: Gang) -> Iterator[tuple[ShapeEntry, int]]:
    """Shape and slot of each member that holds capacity."""
    for member in gang.members.values():
        if not member.charged:
            continue
        if member.slot is not None:
            yield member.shape, member.slot
        elif member.reservation is not None:
            yield member.shape, member.reservation.slot


def _of_holds(holds: HoldTable, now_ms: int) -> Iterator[Span]:
    for hold in holds.by_uid.values():
        if hold.reservation is not None:
            pods = by_shape(iter([(hold.shape, hold.reservation.slot)]))
            queue = hold.gang.queue if hold.gang is not None else None
            until_ms = overdue_ms(hold.until_ms, now_ms)
            if hold.gang is not None:
                # The pods that it is kept for are expected, and end with its gang.
                until_ms = max(until_ms, end_ms(hold.gang, now_ms))
            yield Span(until_ms, hold.at_ms, ("", "", hold.uid), None, queue, pods)
