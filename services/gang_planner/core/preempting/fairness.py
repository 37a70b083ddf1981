"""What a reclaim may take: the asking queue stays within what it deserves, and others give only
while they hold more than they deserve, and never so that they fall below their guarantee.

Nobody who takes in this way can be taken from in return: what it holds afterwards it deserves. So
two queues cannot evict each other for ever.

Within one queue nothing is limited here: priorities are.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from services.gang_planner.core.preempting.sources import Source

if TYPE_CHECKING:
    from services.gang_planner.core.backlog import Need
    from services.gang_planner.core.columns import Bools
    from services.gang_planner.core.members import Member
    from services.gang_planner.core.preempting.rules import Asks
    from services.gang_planner.core.queues import QueueEntry
    from services.gang_planner.core.shapes import ShapeTable


class Fairness:
    """What one gang may take from other queues."""

    def __init__(self, asks: "Asks", need: "Need", shapes: "ShapeTable") -> None:
        self._asks = asks
        self._need = need
        self._shapes = shapes

    def may_take(self, wanted: int) -> bool:
        """Whether so many members more leave their queue within what it deserves."""
        if self._asks.kind == "preempt":
            return True
        return self._asks.gang.queue.deserves(_amounts(self._need, wanted, self._shapes))

    def limited(self, sources: Sequence[Source], usable: "Bools | None") -> list[Source]:
        """As much of each source as its queue may lose, the cheapest first: any part of it may be
        lost then.
        """
        if self._asks.kind == "preempt":
            return list(sources)
        rows = sorted(_amounts(self._need, 1, self._shapes))
        own = self._asks.gang.queue
        left: dict[str, dict[int, int]] = {}
        found: list[Source] = []
        for source in sorted(sources, key=_place):
            # Up to where both belong to one queue: what that holds stays the same.
            chain = [one for one in source.gang.queue.chain if one not in own.chain]
            if not chain or own in source.gang.queue.chain:
                continue
            lines = [_Line(one, left.setdefault(one.name, dict(one.used))) for one in chain]
            kept = self._surplus(source, lines, rows, usable)
            whole = source.whole and self._whole(source, lines, rows)
            if kept or whole:
                found.append(
                    source._replace(
                        members=source.members if whole else tuple(kept),
                        surplus=min(source.surplus, len(kept)),
                        whole=whole,
                    )
                )
        return found

    @staticmethod
    def _surplus(
        source: Source,
        lines: "Sequence[_Line]",
        rows: Sequence[int],
        usable: "Bools | None",
    ) -> "list[Member]":
        kept: list[Member] = []
        for member in source.members:
            if len(kept) >= source.surplus:
                break
            if usable is not None and not usable[member.slot]:
                continue
            if all(one.gives(rows, [member]) for one in lines):
                kept.append(member)
                for one in lines:
                    _take(one.holds, [member])
        return kept

    @staticmethod
    def _whole(source: Source, lines: "Sequence[_Line]", rows: Sequence[int]) -> bool:
        """Whether all of it may be lost, when its surplus is."""
        rest = source.members[source.surplus :]
        if not rest or not all(one.gives(rows, rest) for one in lines):
            return False
        for one in lines:
            _take(one.holds, rest)
        return True


class _Line(NamedTuple):
    """A queue that would lose something, and what it holds when all before has been taken."""

    entry: "QueueEntry"
    holds: dict[int, int]

    def gives(self, rows: Sequence[int], members: "Sequence[Member]") -> bool:
        """Whether these may be taken from it: it holds more than it deserves of something that is
        asked for, and keeps what it is guaranteed.
        """
        deserved, holds = self.entry.deserved, self.holds
        if not any(row in deserved and holds.get(row, 0) > deserved[row] for row in rows):
            return False
        if not self.entry.guarantee:
            return True
        lost: dict[int, int] = {}
        _take(lost, members)
        return all(
            holds.get(row, 0) + lost[row] >= least
            for row, least in self.entry.guarantee.items()
            if row in lost
        )


def _take(holds: dict[int, int], members: "Sequence[Member]") -> None:
    for member in members:
        for row, amount in member.shape.pairs:
            holds[row] = holds.get(row, 0) - amount


def _amounts(need: "Need", wanted: int, shapes: "ShapeTable") -> dict[int, int]:
    amounts: dict[int, int] = {}
    for _, shape_id, count in need.wanted:
        taken = min(count, wanted)
        for row, amount in shapes.entries[shape_id].pairs:
            amounts[row] = amounts.get(row, 0) + amount * taken
        wanted -= taken
    return amounts


def _place(source: Source) -> tuple[int, str, str]:
    return source.gang.priority, source.gang.namespace, source.gang.name
