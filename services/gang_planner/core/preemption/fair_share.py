"""What a reclaim may take: the reclaiming queue stays within its deserved amounts; others lose pods
only while they hold more than they deserve, and stay above their guarantee.

Afterwards the reclaiming queue deserves everything that it holds, so nothing can be reclaimed from
it in return, and two queues cannot keep evicting each other.

Within one queue nothing is limited here; priorities are the limit there.
"""

from typing import TYPE_CHECKING

from services.gang_planner.core.preemption.units import Unit, amounts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from services.gang_planner.core.state.needs import Need
    from services.gang_planner.core.state.pod_shapes import ShapeTable
    from services.gang_planner.core.state.queues import QueueEntry


def amounts_wanted(need: "Need", wanted: int, shapes: "ShapeTable") -> dict[int, int]:
    """What `wanted` of its members request, by resource row."""
    amounts: dict[int, int] = {}
    for _, shape_id, count in need.wanted:
        taken = min(count, wanted)
        for row, amount in shapes.entries[shape_id].pairs:
            amounts[row] = amounts.get(row, 0) + amount * taken
        wanted -= taken
    return amounts


class FairShareLedger:
    """What one gang may take from other queues; a `Ledger`."""

    def __init__(
        self,
        own: "QueueEntry",
        need: "Need",
        shapes: "ShapeTable",
        levels: int | None,
        filled: "Sequence[QueueEntry]" = (),
    ) -> None:
        """`levels`: how many queues above a victim's must hold more than they deserve, too; None:
        all. `filled`: queues above `own` that must not hold more than now.
        """
        self._own = own
        self._filled = filled
        self._levels = levels
        self._rows = sorted(
            {row for _, one, _ in need.wanted for row, _ in shapes.entries[one].pairs}
        )
        #: Queues that would lose something, by the name of the gang's.
        self._lines: dict[str, tuple[_Line, ...]] = {}
        self._by_queue: dict[str, _Line] = {}

    def givers(self, pool: "Iterable[Unit]") -> list[Unit]:
        """Units of queues that may give anything."""
        return [
            unit
            for unit in pool
            if all(one in unit.gang.queue.chain for one in self._filled)
            and any(one.shares for one in self._of(unit))
            and all(one.has_too_much for one in self._of(unit))
        ]

    def allows(self, unit: Unit) -> bool:
        """As in `Ledger`."""
        block = amounts_of(unit.members[unit.source.surplus :]) if unit.whole else unit.amounts
        return all(one.gives(unit.amounts, block) for one in self._of(unit))

    def add(self, unit: Unit, by: int = 1) -> None:
        """As in `Ledger`."""
        block = amounts_of(unit.members[unit.source.surplus :]) if unit.whole else unit.amounts
        for one in self._of(unit):
            one.add(unit.amounts, block, by)

    def _of(self, unit: Unit) -> "tuple[_Line, ...]":
        queue = unit.gang.queue
        lines = self._lines.get(queue.name)
        if lines is None:
            # Up to where both belong to one queue: what that holds stays the same.
            chain = [one for one in queue.chain if one not in self._own.chain]
            if self._own in queue.chain:
                chain = []
            for height, one in enumerate(chain):
                if one.name not in self._by_queue:
                    asked = self._levels is None or height <= self._levels
                    self._by_queue[one.name] = _Line(one, self._rows, asked=asked)
            lines = self._lines[queue.name] = tuple(self._by_queue[one.name] for one in chain)
        return lines


class _Line:
    """A queue that would lose something.

    It gives a unit while it holds more than it deserves of something that is asked for. Taken in
    the best order, that is: all but the largest of what it gives must leave it with more.
    """

    def __init__(self, entry: "QueueEntry", rows: "Sequence[int]", *, asked: bool) -> None:
        """`asked`: it must have too much; else only its guarantee counts."""
        deserved = entry.deserved
        self._asked = asked and any(row in deserved for row in rows)
        #: By how much it holds more than it deserves, of what is asked for.
        self._over = {
            row: entry.used.get(row, 0) - deserved[row] for row in rows if row in deserved
        }
        self._spare = {
            row: entry.used.get(row, 0) - least for row, least in entry.guarantee.items()
        }
        self._lost: dict[int, int] = {}
        self._blocks: list[dict[int, int]] = []
        self._largest: dict[int, int] = {}

    @property
    def shares(self) -> bool:
        """Whether it has a share of what is asked for."""
        return self._asked

    @property
    def has_too_much(self) -> bool:
        """Whether it gives anything."""
        return not self._asked or any(over > 0 for over in self._over.values())

    def gives(self, amounts: dict[int, int], block: dict[int, int]) -> bool:
        """Whether it gives these amounts, too; `block`: the last of them, all at once."""
        lost, largest = self._lost, self._largest
        if self._asked and not any(
            lost.get(row, 0) + amounts[row] - max(largest.get(row, 0), block.get(row, 0)) < over
            for row, over in self._over.items()
            if amounts.get(row, 0)
        ):
            return False
        return all(
            row not in amounts or lost.get(row, 0) + amounts[row] <= spare
            for row, spare in self._spare.items()
        )

    def add(self, amounts: dict[int, int], block: dict[int, int], by: int) -> None:
        """These amounts were taken, or (-1) given back."""
        for row, amount in amounts.items():
            self._lost[row] = self._lost.get(row, 0) + by * amount
        if by > 0:
            self._blocks.append(block)
            for row, amount in block.items():
                self._largest[row] = max(self._largest.get(row, 0), amount)
            return
        self._blocks.remove(block)
        for row, amount in block.items():
            if amount == self._largest[row]:
                self._largest[row] = max((one.get(row, 0) for one in self._blocks), default=0)
