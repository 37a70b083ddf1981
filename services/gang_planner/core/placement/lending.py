"""A loan: held room given back for the length of one attempt.

While it lasts, the rows are in the table and their room is free on the ground, uncharged. It ends
in one of two ways: nothing came of the attempt and all of it is taken back, or something did and
what still fits is.
"""

from collections.abc import Collection, Iterable
from typing import Final

import numpy as np

from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.recovery.debts import Debt
from services.gang_planner.core.tables.columns import Ints
from services.gang_planner.state import State

_ONE: Final[Ints] = np.array([1], dtype=np.int64)


class Loan:
    """Room of some debts, at the disposal of an attempt."""

    def __init__(self, state: State, debts: Iterable[Debt]) -> None:
        """Lend the room of these debts; each has some."""
        self._state = state
        self._lent: dict[str, Debt] = {}
        for debt in debts:
            assert debt.room is not None, f"debt for {debt.uid} has no room to lend"
            self._lent[debt.uid] = debt
            state.ground.give_many(_at(debt.room.slot), _ONE, debt.shape)
            if debt.gang is not None:
                debt.gang.hold(debt.shape, -1)

    def take_back(self) -> None:
        """Nothing came of it: the world is as it was."""
        for debt in self._lent.values():
            self._retake(debt)
        self._lent.clear()

    def take_back_if_fits(self, session: Session, filled: Collection[Debt]) -> list[Debt]:
        """Something came of it: end the rows of the debts filled, keep what still fits.

        Returns:
            Debts that have lost their room.
        """
        displaced: list[Debt] = []
        for debt in list(self._lent.values()):
            if debt in filled:
                self.give_up(debt)
            elif self._fits(session, debt):
                self._retake(debt)
            else:
                self.give_up(debt)
                displaced.append(debt)
        self._lent.clear()
        return displaced

    def give_up(self, debt: Debt) -> None:
        """End a lent row for good: its room is somebody's, or free."""
        if self._lent.pop(debt.uid, None) is None:
            return
        assert debt.room is not None
        self._state.rooms.end_owed(debt.room, handed_over=True)
        # What the others left of it may be what somebody waits for.
        self._state.ground.freed += 1
        debt.room, debt.node, debt.tried = None, "", ()

    def _retake(self, debt: Debt) -> None:
        assert debt.room is not None
        self._state.ground.take_many(_at(debt.room.slot), _ONE, debt.shape)
        if debt.gang is not None:
            debt.gang.hold(debt.shape, 1)

    def _fits(self, session: Session, debt: Debt) -> bool:
        assert debt.room is not None
        if debt.gang is not None and not debt.gang.queue.headroom(debt.shape, 1):
            return False
        return session.fits.takes(debt.shape, debt.room.slot)


def _at(slot: int) -> Ints:
    return np.array([slot], dtype=np.int64)
