"""Reservations of holds, released for the duration of one attempt.

Their rows stay in the table, while their capacity is free and not charged. An attempt that places
nothing restores all of them; one that has placed its gang restores those that still fit.
"""

from collections.abc import Collection, Iterable
from typing import Final

import numpy as np

from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.holds import Hold
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.reservations import Reservation
from shared.model.invariants import required

_ONE: Final[Ints] = np.array([1], dtype=np.int64)


class ReleasedReservations:
    """The reservations of some holds, released for an attempt."""

    def __init__(self, state: State, holds: Iterable[Hold]) -> None:
        """Release the reservations of these holds; each has one."""
        self._state = state
        self._released: dict[str, Hold] = {}
        for hold in holds:
            slot = _reservation(hold).slot
            self._released[hold.uid] = hold
            state.node_capacity.give_many(_at(slot), _ONE, hold.shape)
            if hold.gang is not None:
                hold.gang.hold(hold.shape, -1)

    def restore(self) -> None:
        """Reserve everything again, after an attempt that placed nothing."""
        for hold in self._released.values():
            self._retake(hold)
        self._released.clear()

    def restore_if_fits(self, session: Session, filled: Collection[Hold]) -> list[Hold]:
        """Settle the reservations after an attempt that placed its gang: end the rows of the holds
        that it fills, restore the rest as far as they fit.

        Returns:
            Holds that have lost their reservation.
        """
        displaced: list[Hold] = []
        for hold in list(self._released.values()):
            if hold in filled:
                self.give_up(hold)
            elif self._fits(session, hold):
                self._retake(hold)
            else:
                self.give_up(hold)
                displaced.append(hold)
        self._released.clear()
        return displaced

    def give_up(self, hold: Hold) -> None:
        """End a released row permanently: its capacity is used, or free."""
        if self._released.pop(hold.uid, None) is None:
            return
        self._state.reservations.end_apart(_reservation(hold), handed_over=True)
        # A part of it may be left, and enough for a waiting gang.
        self._state.node_capacity.freed += 1
        hold.reservation, hold.node, hold.tried = None, "", ()

    def _retake(self, hold: Hold) -> None:
        self._state.node_capacity.take_many(_at(_reservation(hold).slot), _ONE, hold.shape)
        if hold.gang is not None:
            hold.gang.hold(hold.shape, 1)

    def _fits(self, session: Session, hold: Hold) -> bool:
        if hold.gang is not None and not hold.gang.queue.headroom(hold.shape, 1):
            return False
        return session.fits.takes(hold.shape, _reservation(hold).slot)


def _reservation(hold: Hold) -> Reservation:
    return required(hold.reservation, f"hold for {hold.uid}", "has no reservation")


def _at(slot: int) -> Ints:
    return np.array([slot], dtype=np.int64)
