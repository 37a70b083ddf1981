"""What a gang may take by its dominant share: from gangs of its queue whose share stays at least as
large as its own then is.

Each eviction brings two shares closer to each other, so it ends. No gang is evicted whole, because
its share would be zero.
"""

from typing import TYPE_CHECKING

from services.gang_planner.core.framework.dominant_share import dominant_share
from services.gang_planner.core.preemption.units import Unit, amounts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from services.gang_planner.core.state.gangs import Gang
    from services.gang_planner.core.state.planner_state import State
    from shared.model.gang_keys import GangKey


class DominantShareLedger:
    """A `Ledger` of shares."""

    def __init__(
        self, state: "State", gang: "Gang", wanted: dict[int, int], totals: "Sequence[int]"
    ) -> None:
        """`wanted`: the amounts that the gang would gain, by resource row; `totals`: the
        cluster's.
        """
        self._state = state
        self._totals = totals
        own = self._held_of(gang)
        for row, amount in wanted.items():
            own[row] = own.get(row, 0) + amount
        self._own = dominant_share(own, totals)
        #: Amounts that gangs hold without the units taken, by gang; filled on demand.
        self._held: dict[GangKey, dict[int, int]] = {}

    def allows(self, unit: Unit) -> bool:
        """As in `Ledger`."""
        held = dict(self._of(unit.gang))
        for row, amount in unit.amounts.items():
            held[row] = held.get(row, 0) - amount
        return dominant_share(held, self._totals) >= self._own

    def add(self, unit: Unit, by: int = 1) -> None:
        """As in `Ledger`."""
        held = self._of(unit.gang)
        for row, amount in unit.amounts.items():
            held[row] = held.get(row, 0) - by * amount

    def _of(self, gang: "Gang") -> dict[int, int]:
        held = self._held.get(gang.key)
        if held is None:
            held = self._held[gang.key] = self._held_of(gang)
        return held

    def _held_of(self, gang: "Gang") -> dict[int, int]:
        """Amounts that a gang holds, without pods whose eviction is decided."""
        held: dict[int, int] = {}
        for shape_id, count in gang.held.items():
            for row, amount in self._state.shapes.entries[shape_id].pairs:
                held[row] = held.get(row, 0) + amount * count
        victims = self._state.preemptions.victims
        if victims:
            going = [one for uid, one in gang.members.items() if uid in victims and one.charged]
            for row, amount in amounts_of(going).items():
                held[row] -= amount
        return held
