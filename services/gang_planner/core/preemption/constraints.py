"""Which units may be evicted together: from each gang its surplus or all of it, within
PodDisruptionBudgets, and from each queue no more than its excess.

Every part of a permitted set is permitted: units can be undone in any order.
"""

from typing import TYPE_CHECKING, Protocol

from services.gang_planner.core.preemption.units import NOTHING_TAKEN, TakenUnits, Unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from services.gang_planner.core.preemption.disruption_budgets import Budgets
    from shared.model.gang_keys import GangKey


class Ledger(Protocol):
    """A limit on what is taken."""

    def allows(self, unit: Unit) -> bool:
        """Whether a unit may be taken besides those taken so far."""
        ...

    def add(self, unit: Unit, by: int = 1) -> None:
        """A unit is taken, or (-1) undone."""
        ...


class Allowances:
    """The units taken so far, and which others may be taken with them."""

    def __init__(self, ledgers: "Iterable[Ledger]" = ()) -> None:
        self._lost: dict[GangKey, TakenUnits] = {}
        self._ledgers = tuple(ledgers)

    @property
    def by_name(self) -> bool:
        """Whether it matters which of two pods with the same amounts is evicted."""
        return bool(self._ledgers)

    def allows(self, unit: Unit) -> bool:
        """Whether a unit may be taken besides those taken so far."""
        if not self._lost.get(unit.gang.key, NOTHING_TAKEN).allows(unit):
            return False
        return not self._ledgers or all(one.allows(unit) for one in self._ledgers)

    def allows_all(self, units: "Sequence[Unit]") -> bool:
        """Whether units may be taken together."""
        if len(units) == 1:
            return self.allows(units[0])
        taken: list[Unit] = []
        for unit in units:
            if not self.allows(unit):
                break
            self.add(unit)
            taken.append(unit)
        for unit in taken:
            self.add(unit, -1)
        return len(taken) == len(units)

    def add(self, unit: Unit, by: int = 1) -> None:
        """A unit is taken, or (-1) undone."""
        lost = self._lost.get(unit.gang.key)
        if lost is None:
            lost = self._lost[unit.gang.key] = TakenUnits()
        lost.add(unit, by)
        for one in self._ledgers:
            one.add(unit, by)

    def lost(self, unit: Unit) -> TakenUnits:
        """The units taken from a unit's gang."""
        return self._lost.get(unit.gang.key, NOTHING_TAKEN)


class BudgetLedger:
    """No PodDisruptionBudget is violated."""

    def __init__(self, budgets: "Budgets") -> None:
        self._budgets = budgets
        self._taken: dict[str, int] = {}

    def allows(self, unit: Unit) -> bool:
        """As in `Ledger`."""
        hits: dict[str, int] = {}
        for member in unit.members:
            for uid in self._budgets.of(member):
                hits[uid] = hits.get(uid, 0) + 1
        return all(
            self._taken.get(uid, 0) + count <= self._budgets.left(uid)
            for uid, count in hits.items()
        )

    def add(self, unit: Unit, by: int = 1) -> None:
        """As in `Ledger`."""
        for member in unit.members:
            for uid in self._budgets.of(member):
                self._taken[uid] = self._taken.get(uid, 0) + by
