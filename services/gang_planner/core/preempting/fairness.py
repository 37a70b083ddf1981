"""What a reclaim may take: the asking queue stays within what it deserves, and others give only
while they hold more than they deserve, and never so that they fall below their guarantee.

Nobody who takes in this way can be taken from in return: what it holds afterwards it deserves. So
two queues cannot evict each other for ever.

Within one queue nothing is limited here: priorities are.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

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
        amounts = _amounts(self._need, wanted, self._shapes)
        for entry in self._asks.gang.queue.chain:
            for row, amount in amounts.items():
                deserved = entry.deserved.get(row)
                if deserved is not None and entry.used.get(row, 0) + amount > deserved:
                    return False
        return bool(self._asks.gang.queue.deserved)

    def limited(self, sources: Sequence[Source], usable: "Bools | None") -> list[Source]:
        """As much of each source as its queue may lose, the cheapest first: any part of it may be
        lost then.
        """
        if self._asks.kind == "preempt":
            return list(sources)
        rows = sorted(_amounts(self._need, 1, self._shapes))
        left: dict[str, dict[int, int]] = {}
        found: list[Source] = []
        for source in sorted(sources, key=_place):
            entry = source.gang.queue
            if _common(entry, self._asks.gang.queue):
                continue
            holds = left.setdefault(entry.name, dict(entry.used))
            kept = self._surplus(source, entry, holds, rows, usable)
            whole = source.whole and self._whole(source, entry, holds, rows)
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
        entry: "QueueEntry",
        holds: dict[int, int],
        rows: Sequence[int],
        usable: "Bools | None",
    ) -> "list[Member]":
        kept: list[Member] = []
        for member in source.members:
            if len(kept) >= source.surplus:
                break
            if usable is not None and not usable[member.slot]:
                continue
            if _over(entry, holds, rows) and _keeps_guarantee(entry, holds, [member]):
                kept.append(member)
                _take(holds, [member])
        return kept

    @staticmethod
    def _whole(
        source: Source, entry: "QueueEntry", holds: dict[int, int], rows: Sequence[int]
    ) -> bool:
        """Whether all of it may be lost; `holds` has lost its surplus already."""
        rest = source.members[source.surplus :]
        if not rest or not _over(entry, holds, rows) or not _keeps_guarantee(entry, holds, rest):
            return False
        _take(holds, rest)
        return True


def _over(entry: "QueueEntry", holds: dict[int, int], rows: Sequence[int]) -> bool:
    """Whether the queue holds more than it deserves of anything that is asked for."""
    return any(row in entry.deserved and holds.get(row, 0) > entry.deserved[row] for row in rows)


def _keeps_guarantee(
    entry: "QueueEntry", holds: dict[int, int], members: "Sequence[Member]"
) -> bool:
    if not entry.guarantee:
        return True
    lost: dict[int, int] = {}
    _take(lost, members)
    return all(
        holds.get(row, 0) + lost.get(row, 0) >= least
        for row, least in entry.guarantee.items()
        if row in lost
    )


def _take(holds: dict[int, int], members: "Sequence[Member]") -> None:
    for member in members:
        for row, amount in member.shape.pairs:
            holds[row] = holds.get(row, 0) - amount


def _common(one: "QueueEntry", other: "QueueEntry") -> bool:
    """Whether one is an ancestor of the other: nobody takes from his own share."""
    return one in other.chain or other in one.chain


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
