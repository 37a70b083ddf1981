"""Checks that what is tried is undone to the last unit, on every path, wherever it is tried.

While `checked` lasts, capacity, host ports, counts of pods by terms and charges of queues are
compared before and after: every `Trial`, every `ReleasedReservations` that is taken back, and every
question whose answer must change nothing.
"""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from services.gang_planner.core.allocation import gang_allocation
from services.gang_planner.core.allocation.gang_allocation import ReleasedReservations
from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.foresight.plan import Future
from services.gang_planner.core.foresight.reservations import Reservations
from services.gang_planner.core.lifecycle import repair
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.preemption.trial import Trial
from services.gang_planner.core.queueing import fair_share
from services.gang_planner.core.state.planner_state import State

_STATES: WeakKeyDictionary[Session, State] = WeakKeyDictionary()


class Capacity:
    """What is free on the nodes, and what queues are charged, at one moment."""

    def __init__(self, state: State) -> None:
        node_capacity = state.node_capacity
        node_capacity.fit_cells()
        self.cells = node_capacity.free.cells[:, : node_capacity.nodes.size].tolist()
        self.ports = {slot: dict(one) for slot, one in node_capacity.ports.content().items()}
        self.pairs = {tally: dict(one) for tally, one in node_capacity.pairs.content().items()}
        self.used = {
            name: {row: amount for row, amount in queue.used.items() if amount}
            for name, queue in state.queues.entries.items()
        }

    def check(self, after: "Capacity", what: str) -> None:
        """Raise unless nothing has changed."""
        assert after.cells == self.cells, f"{what} left other free amounts"
        assert after.ports == self.ports, f"{what} left other host ports"
        assert after.pairs == self.pairs, f"{what} left other counts of pods by terms"
        assert after.used == self.used, f"{what} left other charges of queues"


class Counts(dict[str, int]):
    """How often each kind of trial was checked."""

    def add(self, what: str) -> None:
        self[what] = self.get(what, 0) + 1


def checked(monkeypatch: pytest.MonkeyPatch) -> Counts:
    """Check every trial from now on; returns how many were, by kind."""
    counts = Counts()
    _check_trials(monkeypatch, counts)
    _check_loans(monkeypatch, counts)
    _check_futures(monkeypatch, counts)
    _remember_states(monkeypatch)
    for module, name in (
        (gang_allocation, "would_fit"),
        (repair, "_gangs_to_release"),
        (fair_share, "fits_otherwise"),
    ):
        monkeypatch.setattr(module, name, _unchanged(getattr(module, name), name, counts))
    return counts


def _unchanged(function: Callable[..., Any], name: str, counts: Counts) -> Callable[..., Any]:
    def call(tried: CycleContext | Session, *rest: Any) -> Any:
        state = _STATES[tried] if isinstance(tried, Session) else tried.state
        before, freed = Capacity(state), state.node_capacity.freed
        found = function(tried, *rest)
        before.check(Capacity(state), name)
        assert state.node_capacity.freed == freed, f"{name} reported capacity as freed"
        counts.add(name)
        return found

    return call


def _remember_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Know the tables of each session: a question that takes no more may change any of them."""
    refuse = gang_allocation.refuse

    def refused(work: CycleContext, *rest: Any, **named: Any) -> None:
        _STATES[work.session] = work.state
        refuse(work, *rest, **named)

    monkeypatch.setattr(gang_allocation, "refuse", refused)


def _check_trials(monkeypatch: pytest.MonkeyPatch, counts: Counts) -> None:
    init, enter, leave = Trial.__init__, Trial.__enter__, Trial.__exit__
    states: dict[Trial, State] = {}
    before: dict[Trial, tuple[Capacity, int]] = {}

    def made(trial: Trial, state: State, *claims: Any, **named: Any) -> None:
        states[trial] = state
        init(trial, state, *claims, **named)

    def entered(trial: Trial) -> Trial:
        before[trial] = Capacity(states[trial]), states[trial].node_capacity.freed
        return enter(trial)

    def left(trial: Trial, *error: object) -> None:
        leave(trial, *error)
        was, freed = before.pop(trial)
        was.check(Capacity(states[trial]), "a trial")
        assert states[trial].node_capacity.freed == freed, "a trial reported capacity as freed"
        counts.add("Trial")

    monkeypatch.setattr(Trial, "__init__", made)
    monkeypatch.setattr(Trial, "__enter__", entered)
    monkeypatch.setattr(Trial, "__exit__", left)


def _check_futures(monkeypatch: pytest.MonkeyPatch, counts: Counts) -> None:
    begin, leave = Reservations.future, Future.__exit__
    before: dict[Future, tuple[State, Capacity]] = {}

    def begun(reservations: Reservations, now_ms: int) -> Future:
        reservations.lift()
        state: State = vars(reservations)["_state"]
        was = Capacity(state)
        future = begin(reservations, now_ms)
        before[future] = state, was
        return future

    def left(future: Future, *error: object) -> None:
        leave(future, *error)
        state, was = before.pop(future)
        was.check(Capacity(state), "a plan")
        counts.add("Future")

    monkeypatch.setattr(Reservations, "future", begun)
    monkeypatch.setattr(Future, "__exit__", left)


def _check_loans(monkeypatch: pytest.MonkeyPatch, counts: Counts) -> None:
    init, restore = ReleasedReservations.__init__, ReleasedReservations.restore
    before: dict[ReleasedReservations, tuple[State, Capacity]] = {}

    def released(reservations: ReleasedReservations, state: State, holds: Any) -> None:
        before[reservations] = state, Capacity(state)
        init(reservations, state, holds)

    def restored(reservations: ReleasedReservations) -> None:
        restore(reservations)
        state, was = before.pop(reservations)
        was.check(Capacity(state), "a restored reservation")
        counts.add("ReleasedReservations")

    monkeypatch.setattr(ReleasedReservations, "__init__", released)
    monkeypatch.setattr(ReleasedReservations, "restore", restored)
