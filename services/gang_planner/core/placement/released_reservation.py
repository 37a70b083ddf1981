"""Reservations of holds, released for the length of one attempt.

Meanwhile their rows stay in the table, and their capacity is free and uncharged. An attempt that
places nothing restores all of them; one that placed its gang restores those that still fit.
"""

from collections.abc import Collection, Iterable
from typing import Final

import numpy as np

from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state.columns import Ints
from services.gang_planner.core.state.holds import Hold
from services.gang_planner.core.state.planner_state import State

_ONE: Final[Ints] = np.array([1], dtype=np.int64)


class ReleasedReservations:
    """The reservations of some holds, at the disposal of an attempt."""

    def __init__(self, state: State, holds: Iterable[Hold]) -> None:
        """Release the reservations of these holds; each has one."""
        self._state = state
        self._released: dict[str, Hold] = {}
        for hold in holds:
            assert hold.reservation is not None, (
                f"hold for {hold.uid} has no reservation to release"
            )
            self._released[hold.uid] = hold
            state.node_capacity.give_many(_at(hold.reservation.slot), _ONE, hold.shape)
            if hold.gang is not None:
                hold.gang.hold(hold.shape, -1)

    def restore(self) -> None:
        """The attempt placed nothing: reserve all of it again."""
        for hold in self._released.values():
            self._retake(hold)
        self._released.clear()

    def restore_if_fits(self, session: Session, filled: Collection[Hold]) -> list[Hold]:
        """The attempt placed its gang: end the rows of the holds filled, restore those that fit.

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
        """End a released row for good: its capacity is used, or free."""
        if self._released.pop(hold.uid, None) is None:
            return
        assert hold.reservation is not None
        self._state.reservations.end_replacement(hold.reservation, handed_over=True)
        # What is left of it may be enough for a gang that waits.
        self._state.node_capacity.freed += 1
        hold.reservation, hold.node, hold.tried = None, "", ()

    def _retake(self, hold: Hold) -> None:
        assert hold.reservation is not None
        self._state.node_capacity.take_many(_at(hold.reservation.slot), _ONE, hold.shape)
        if hold.gang is not None:
            hold.gang.hold(hold.shape, 1)

    def _fits(self, session: Session, hold: Hold) -> bool:
        assert hold.reservation is not None
        if hold.gang is not None and not hold.gang.queue.headroom(hold.shape, 1):
            return False
        return session.fits.takes(hold.shape, hold.reservation.slot)


def _at(slot: int) -> Ints:
    return np.array([slot], dtype=np.int64)
