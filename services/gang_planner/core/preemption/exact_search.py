"""The cheapest of all choices of a few units, by branch and bound.

Units are decided one after the other, taken or left. A choice is followed no further when it costs
as much as the best one known, when even everything that is left would not make enough room by
amounts alone, or when a unit just like one that was left would be taken in its stead. What may
suffice is proven. Two rounds: first the cost that counts (`_DECISIVE`), then which of equal
victims.

All of it is counted: beyond its budget the best choice found so far stands.
"""

from itertools import accumulate
from typing import TYPE_CHECKING, Final

from services.gang_planner.core.preemption.units import Unit, work_s

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from services.gang_planner.core.preemption.constraints import Allowances
    from services.gang_planner.core.preemption.units import Cost
    from services.gang_planner.core.preemption.upper_bounds import UpperBound

#: What is chosen from: more units have no exact answer in a few milliseconds.
_UNITS_MAX: Final = 16
_PODS_MAX: Final = 32
#: Choices looked at in one search, both rounds together.
_CHOICES_MAX: Final = 2_000
_PROOFS_MAX: Final = 100
#: Parts of a cost that say how much harm is done: budgets, gangs broken, priority, pods. Those
#: after it choose between equals.
_DECISIVE: Final = 4
_PODS: Final = 3
#: A gang, in parts of which each of its pods counts one.
_WHOLE: Final = 1_000_000
_ENDS: Final = 4
_WORK: Final = 6


class Exact:
    """One search among few units; nothing has changed when it ends."""

    def __init__(
        self,
        pool: "Sequence[Unit]",
        upper_bounds: "Sequence[UpperBound]",
        cost: "Callable[[Sequence[Unit]], Cost]",
        allowances: "Allowances",
        proven: "Callable[[Sequence[Unit]], bool]",
        now_ms: int,
    ) -> None:
        """`cost` never falls when a unit is added; `proven`: whether the gang fits without them."""
        self._pool = pool
        self._upper_bounds = upper_bounds
        self._cost = cost
        self._allowances = allowances
        self._proven = proven
        self._alike = [_likeness(unit) for unit in pool]
        self._least = [_Least(pool[at:], now_ms) for at in range(len(pool) + 1)]
        self._choices_left = _CHOICES_MAX
        self._proofs_left = _PROOFS_MAX
        self._compared: int | None = _DECISIVE
        self._chosen: list[Unit] = []
        self._best: list[Unit] | None = None
        self._best_cost: Cost | None = None

    def better_than(self, known: "list[Unit] | None") -> "list[Unit] | None":
        """The cheapest choice that suffices; `known` is one that does, None: none is known."""
        self._best = known
        self._best_cost = None if known is None else self._cost(known)
        for self._compared in (_DECISIVE, None):
            self._walk(0, new=False)
            if self._best is None:
                break
        return self._best

    @property
    def budget_exceeded(self) -> bool:
        """Whether it ended by its budget: what it did not find may exist."""
        return self._choices_left <= 0 or self._proofs_left <= 0

    def _walk(self, at: int, *, new: bool) -> None:
        """Decide the unit at a place and those after it; `new`: one was taken just now."""
        self._choices_left -= 1
        if self.budget_exceeded or not self._promising(at):
            return
        if new and not any(hope.pods_missing() for hope in self._upper_bounds):
            self._proofs_left -= 1
            if self._proven(self._chosen):
                self._best, self._best_cost = list(self._chosen), self._cost(self._chosen)
                return
        if at == len(self._pool):
            return
        unit = self._pool[at]
        if self._may(unit):
            self._chosen.append(unit)
            self._change(unit, 1)
            self._walk(at + 1, new=True)
            self._change(unit, -1)
            self._chosen.pop()
        self._walk(self._after(at), new=False)

    def _promising(self, at: int) -> bool:
        """Whether what is chosen now, or more with it, may be cheaper than the best, and enough."""
        if not all(hope.lasts(at) for hope in self._upper_bounds):
            return False
        if self._best_cost is None:
            return True
        cost = list(self._cost(self._chosen))
        pods = max((hope.pods_missing() for hope in self._upper_bounds), default=0)
        cost[_PODS] += pods
        if pods and self._compared is None:
            least = self._least[at]
            cost[_ENDS] += least.ends(pods)
            cost[_WORK] += least.work_s(pods)
        return tuple(cost[: self._compared]) < self._best_cost[: self._compared]

    def _may(self, unit: Unit) -> bool:
        if unit.whole and self._allowances.lost(unit).count:
            return False
        return self._allowances.allows(unit)

    def _change(self, unit: Unit, sign: int) -> None:
        self._allowances.add(unit, sign)
        for hope in self._upper_bounds:
            hope.free(unit, sign)

    def _after(self, at: int) -> int:
        """The next place after a unit that is left, and after those just like it."""
        if self._compared is None or self._allowances.by_name:
            return at + 1
        alike = self._alike[at]
        while at < len(self._pool) and self._alike[at] == alike:
            at += 1
        return at


class _Least:
    """What so many pods of some units cost at least, beside the harm that decides."""

    def __init__(self, units: "Sequence[Unit]", now_ms: int) -> None:
        #: Of a gang that ends each pod counts for its part.
        ends = [
            _WHOLE // len(unit.members) if unit.whole else 0 for unit in units for _ in unit.members
        ]
        work = [work_s(member, now_ms) for unit in units for member in unit.members]
        self._ends = [0, *accumulate(sorted(ends))]
        self._work_s = [0, *accumulate(sorted(work))]

    def ends(self, pods: int) -> int:
        """Gangs that end."""
        return self._ends[min(pods, len(self._ends) - 1)] // _WHOLE

    def work_s(self, pods: int) -> int:
        """Work that is lost."""
        return self._work_s[min(pods, len(self._work_s) - 1)]


def is_few(pool: "Sequence[Unit]") -> bool:
    """Whether a pool is small enough for every choice to be looked at."""
    return len(pool) <= _UNITS_MAX and sum(len(one.members) for one in pool) <= _PODS_MAX


def _likeness(unit: Unit) -> "Hashable":
    """Equal for units of which it does not matter which is taken, as far as harm goes."""
    amounts = tuple(
        (slot, tuple(sorted(freed.items()))) for slot, freed in sorted(unit.freed.items())
    )
    same = amounts, unit.breaks, unit.gang.priority, tuple(one.shape.id for one in unit.members)
    if unit.whole and not unit.source.surplus:
        return same
    return *same, unit.whole, unit.gang.key, unit.members[0].pod.role
