"""Finds the cheapest choice among a few units, by branch and bound.

For one unit after the other the search decides whether it is taken. A branch ends when it costs as
much as the best choice known, when even all remaining units do not suffice by amounts, or when a
unit would be taken although an interchangeable one was not. A choice that may suffice is proven.
There are two rounds: the first compares the decisive parts of the cost (`_DECISIVE`), the second
chooses between equal victims.

The search has a budget; when it is spent, the best choice found so far is the result.
"""

from collections.abc import Callable, Hashable, Sequence
from itertools import accumulate
from typing import Final, TypeAlias

from services.gang_planner.core.preemption.constraints import Allowances
from services.gang_planner.core.preemption.units import Unit, kind_of, work_s
from services.gang_planner.core.preemption.upper_bounds import UpperBound

#: Limits of the pool: more units have no exact answer within a few milliseconds.
_UNITS_MAX: Final = 16
_PODS_MAX: Final = 32
#: Choices examined in one search, both rounds together.
_CHOICES_MAX: Final = 2_000
_PROOFS_MAX: Final = 100
Cost: TypeAlias = tuple[int, ...]
"""The harm of evicting pods, compared item by item: budgets violated, gangs broken, their highest
priority, pods, gangs that end, the importance of members, work lost (in pod seconds), restarts.
"""

#: The first parts of a cost are decisive. The last parts choose between equals.
_DECISIVE: Final = 4
#: Indices in a cost.
_PODS: Final = 3
_ENDS: Final = 4
_WORK: Final = 6
#: A gang in parts, of which each of its pods counts an equal number.
_WHOLE: Final = 1_000_000


class ExactSearch:
    """One search among few units, without lasting changes."""

    def __init__(
        self,
        pool: Sequence[Unit],
        upper_bounds: Sequence[UpperBound],
        cost: Callable[[Sequence[Unit]], Cost],
        allowances: Allowances,
        proven: Callable[[Sequence[Unit]], bool],
        now_ms: int,
    ) -> None:
        """`cost` must not fall when a unit is added; `proven`: whether the gang fits without these
        units.
        """
        self._pool = pool
        self._upper_bounds = upper_bounds
        self._cost = cost
        self._allowances = allowances
        self._proven = proven
        self._kinds = [_kind(unit) for unit in pool]
        self._least = [_Least(pool[at:], now_ms) for at in range(len(pool) + 1)]
        self._choices_left = _CHOICES_MAX
        self._proofs_left = _PROOFS_MAX
        self._compared: int | None = _DECISIVE
        self._chosen: list[Unit] = []
        self._best: list[Unit] | None = None
        self._best_cost: Cost | None = None

    def better_than(self, known: list[Unit] | None) -> list[Unit] | None:
        """The cheapest choice that suffices; `known`: a choice that does, if one is known."""
        self._best = known
        self._best_cost = None if known is None else self._cost(known)
        for compared in (_DECISIVE, None):
            self._compared = compared
            self._walk(0, new=False)
            if self._best is None:
                break
        return self._best

    @property
    def budget_exceeded(self) -> bool:
        """Whether it ended by its budget: a cheaper choice may exist."""
        return self._choices_left <= 0 or self._proofs_left <= 0

    def _walk(self, at: int, *, new: bool) -> None:
        """Decide the unit at an index and those after it; `new`: a unit was just taken."""
        self._choices_left -= 1
        if self.budget_exceeded or not self._promising(at):
            return
        if new and not any(bound.pods_missing() for bound in self._upper_bounds):
            self._proofs_left -= 1
            if self._proven(self._chosen):
                self._best, self._best_cost = list(self._chosen), self._cost(self._chosen)
                return
        if at == len(self._pool):
            return
        unit = self._pool[at]
        in_parts = unit.whole and self._allowances.lost(unit).count
        if not in_parts and self._allowances.allows(unit):
            self._chosen.append(unit)
            self._change(unit, 1)
            self._walk(at + 1, new=True)
            self._change(unit, -1)
            self._chosen.pop()
        self._walk(self._after(at), new=False)

    def _promising(self, at: int) -> bool:
        """Whether the current choice, or an extension of it, may suffice and be cheaper than the
        best one.
        """
        if not all(bound.may_suffice(at) for bound in self._upper_bounds):
            return False
        if self._best_cost is None:
            return True
        cost = list(self._cost(self._chosen))
        pods = max((bound.pods_missing() for bound in self._upper_bounds), default=0)
        cost[_PODS] += pods
        if pods and self._compared is None:
            least = self._least[at]
            cost[_ENDS] += least.ends(pods)
            cost[_WORK] += least.work_s(pods)
        return tuple(cost[: self._compared]) < self._best_cost[: self._compared]

    def _change(self, unit: Unit, sign: int) -> None:
        self._allowances.add(unit, sign)
        for bound in self._upper_bounds:
            bound.free(unit, sign)

    def _after(self, at: int) -> int:
        """The next index after a unit that is not taken, and after the interchangeable ones."""
        if self._compared is None or self._allowances.by_name:
            return at + 1
        kind = self._kinds[at]
        while at < len(self._pool) and self._kinds[at] == kind:
            at += 1
        return at


class _Least:
    """The least cost of a number of pods of some units, beyond the decisive parts."""

    def __init__(self, units: Sequence[Unit], now_ms: int) -> None:
        #: Of a gang that ends each pod counts for its part.
        ends = [
            _WHOLE // len(unit.members) if unit.whole else 0 for unit in units for _ in unit.members
        ]
        work = [work_s(member, now_ms) for unit in units for member in unit.members]
        self._ends = [0, *accumulate(sorted(ends))]
        self._work_s = [0, *accumulate(sorted(work))]

    def ends(self, pods: int) -> int:
        return self._ends[min(pods, len(self._ends) - 1)] // _WHOLE

    def work_s(self, pods: int) -> int:
        return self._work_s[min(pods, len(self._work_s) - 1)]


def is_small(pool: Sequence[Unit]) -> bool:
    """Whether a pool is small enough to examine every choice."""
    return len(pool) <= _UNITS_MAX and sum(len(unit.members) for unit in pool) <= _PODS_MAX


def _kind(unit: Unit) -> Hashable:
    """Equal for units that are interchangeable with regard to harm."""
    amounts = tuple(
        (slot, tuple(sorted(freed.items()))) for slot, freed in sorted(unit.freed.items())
    )
    same = (
        amounts,
        unit.breaks,
        unit.gang.priority,
        tuple(member.shape.id for member in unit.members),
    )
    if unit.whole and not unit.source.divisible:
        return same
    set_name = unit.part.set_name if unit.part is not None else ""
    return *same, unit.whole, unit.gang.key, set_name, kind_of(unit.gang, unit.members[0])
