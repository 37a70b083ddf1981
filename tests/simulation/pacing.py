"""Judges how many pods are decided ahead of the binders.

Each record has what its cycle was allowed. What the planner counts is at least what the servers
hold: pods of decisions that have no outcome, and that are there and not bound.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from services.gang_planner.core.state.in_flight import UNANSWERED_MS
from shared.contracts.decisions import GangDecision
from tests.simulation.truth import Stored, Truth

if TYPE_CHECKING:
    from shared.contracts.decisions import Act, Binding

#: Notes of gangs that are made whole, whatever is in flight.
_RESERVING: Final = ("repair", "hold")


class Pacing:
    """Called with every decision to bind, once it is stored."""

    def __init__(
        self,
        truth: Truth,
        *,
        lands: Callable[["Binding"], bool],
        begun: Callable[[GangDecision], bool],
        broken: Callable[[str, str], None],
    ) -> None:
        """`lands(binding)`: its pod is there and not bound. `begun(act)`: some of its gang is:
        what makes it whole is a repair, whose note follows.
        """
        self._truth = truth
        self._lands = lands
        self._begun = begun
        self._broken = broken

    def judge(self, stored: Stored, act: GangDecision) -> None:
        """A fresh gang goes within the bound, or alone."""
        most = act.cycle.in_flight_max
        if not most or not self._fresh(act):
            return
        others = sum(
            self._lands(binding)
            for one in self._truth.unanswered.values()
            if one.seq != stored.seq and _before_binders(one.act, act.cycle.now_ms)
            for binding in one.act.bindings
        )
        size = len(act.bindings)
        if others and others + size > most:
            self._broken(
                act.gang_id,
                f"decision {stored.seq} puts {size} pods in flight beside {others}, "
                f"{most} are allowed",
            )

    def _fresh(self, act: GangDecision) -> bool:
        if act.again or act.fills or act.preemption or act.gang_id in self._truth.started:
            return False
        if any(self._truth.open_notes({act.gang_id}, kind) for kind in _RESERVING):
            return False
        return not self._begun(act)


def _before_binders(act: "Act", now_ms: int) -> bool:
    """Whether nothing but binders has to do something about it."""
    if not isinstance(act, GangDecision) or act.again:
        return False
    if now_ms - act.cycle.now_ms >= UNANSWERED_MS:
        return False
    return all(one.volume for one in act.volumes)
