"""How often a shape could fit without some pods, by amounts alone: never less than the truth."""

from operator import add
from typing import TYPE_CHECKING

from services.gang_planner.core.columns import Ints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from services.gang_planner.core.preempting.units import Unit
    from services.gang_planner.core.session import Session
    from services.gang_planner.core.shapes import ShapeEntry


class Hope:
    """One shape, and units that are freed one by one in the order of their pool."""

    def __init__(
        self,
        session: "Session",
        shape: "ShapeEntry",
        wanted: int,
        pool: "Sequence[Unit]",
        avoid: Ints,
    ) -> None:
        """`wanted`: how many must fit; `avoid`: slots where they must not."""
        counts = session.fits.counts(shape)
        usable = session.fits.masks.mask(shape).copy()
        usable[avoid] = False
        slots = sorted({slot for unit in pool for slot in unit.freed if usable[slot]})
        cells = session.ground.free.cells
        self._pairs = shape.pairs
        #: What is free now, in the order of the shape's resources, by slot.
        self._free = {slot: [int(cells[row, slot]) for row, _ in shape.pairs] for slot in slots}
        elsewhere = int(counts.sum()) - int(counts[avoid].sum()) - int(counts[slots].sum())
        self._wanted = wanted - elsewhere
        #: What each unit leaves there, by its identity.
        self._freed = {id(unit): self._left_by(unit) for unit in pool}
        #: What every unit from a place on leaves.
        self._rest: list[dict[int, list[int]]] = [{}]
        for unit in reversed(pool):
            rest = dict(self._rest[-1])
            for slot, amounts in self._freed[id(unit)].items():
                rest[slot] = list(map(add, rest.get(slot, [0] * len(amounts)), amounts))
            self._rest.append(rest)
        self._rest.reverse()
        #: The most that one pod leaves of each resource.
        self._most = [
            max((dict(m.shape.pairs).get(row, 0) for u in pool for m in u.members), default=0)
            for row, _ in shape.pairs
        ]

    def free(self, unit: "Unit", sign: int = 1) -> None:
        """The unit is gone, or (-1) is back."""
        for slot, amounts in self._freed[id(unit)].items():
            free = self._free[slot]
            for at, amount in enumerate(amounts):
                free[at] += sign * amount

    def lasts(self, at: int) -> bool:
        """Whether enough could fit if all units from this place on were gone, too."""
        rest = self._rest[at]
        total = 0
        for slot, free in self._free.items():
            more = rest.get(slot)
            total += self._count(free if more is None else list(map(add, free, more)))
        return total >= self._wanted

    def pods_missing(self) -> int:
        """How many pods more must go at least."""
        counts = {slot: self._count(free) for slot, free in self._free.items()}
        missing = self._wanted - sum(counts.values())
        if missing <= 0:
            return 0
        pods = 1
        for at, (_, amount) in enumerate(self._pairs):
            steps: list[int] = []
            for slot, free in self._free.items():
                before = 0
                for more in range(1, missing + 1):
                    lacking = max((counts[slot] + more) * amount - free[at], 0)
                    steps.append(lacking - before)
                    before = lacking
            lacking = sum(sorted(steps)[:missing])
            if self._most[at]:
                pods = max(pods, -(-lacking // self._most[at]))
        return pods

    def _count(self, free: "Sequence[int]") -> int:
        least = min(
            (left // amount for left, (_, amount) in zip(free, self._pairs, strict=True)),
            default=self._wanted,
        )
        return max(least, 0)

    def _left_by(self, unit: "Unit") -> dict[int, list[int]]:
        return {
            slot: [amounts.get(row, 0) for row, _ in self._pairs]
            for slot, amounts in unit.freed.items()
            if slot in self._free
        }
