"""Tables of `tutti top`, with a bar for each share. Pure."""

from collections.abc import Sequence
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from shared.contracts.asking import LedgerAmount, LedgerAnswer, LedgerQueue
from tutti.drawing import bar, shortened
from tutti.top.nodes import NodeUse, Room

#: Rows of one table: what is more is counted.
ROWS_MAX: Final = 200
_BAR: Final = 16
_BAR_LEAST: Final = 4
_NAME_MAX: Final = 40
_BESIDE: Final = 46
_AMOUNTS: Final = 14
_GANGS_MAX: Final = 2
#: On nodes nobody looks at these first.
_QUIET: Final = frozenset({"pods", "ephemeral-storage"})


def of_queues(ledger: LedgerAnswer) -> RenderableType:
    """Queues, those that hold the largest part of their share first; a line per resource."""
    table = _table("QUEUE", "RUN", "WAIT", "RESOURCE", "SHARE", "", "USED", "OF", "WAITING")
    ranked = sorted(ledger.queues, key=lambda queue: (-_largest(queue), queue.name))
    for queue in ranked[:ROWS_MAX]:
        head = (queue.name, str(queue.running), str(queue.waiting + queue.outside))
        if not queue.amounts:
            table.add_row(*head)
        for index, one in enumerate(queue.amounts):
            table.add_row(*(head if index == 0 else ("", "", "")), *_cells(one))
    _count_rest(table, len(ranked))
    return table


def of_nodes(found: Sequence[NodeUse], width: int = 160) -> RenderableType:
    """Nodes in the order given, a bar per resource that any of them has, in so many columns."""
    resources = list(
        dict.fromkeys(
            room.resource for one in found for room in one.rooms if room.resource not in _QUIET
        )
    )
    table = _table("NODE", "STATE", *(name.upper() for name in resources), "PODS", "GANGS")
    table.columns[0].min_width = min(
        _NAME_MAX, max((len(one.name) for one in found[:ROWS_MAX]), default=4)
    )
    # Beside the bars: the amounts, and what stands around them.
    left = (width - _BESIDE) // max(1, len(resources)) - _AMOUNTS
    bars = min(_BAR, max(_BAR_LEAST, left))
    for one in found[:ROWS_MAX]:
        pods = one.room("pods")
        table.add_row(
            one.name,
            Text(one.state, "green" if one.state == "Ready" else "yellow"),
            *(_drawn(one.room(resource), bars) for resource in resources),
            str(pods.used if pods is not None else 0),
            _named(one.gangs),
        )
    _count_rest(table, len(found))
    return table


def _table(*titles: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in titles:
        table.add_column(title, no_wrap=True)
    return table


def _count_rest(table: Table, rows: int) -> None:
    if rows > ROWS_MAX:
        table.add_row(Text(f"and {rows - ROWS_MAX} more", "dim"))


def _whole(one: LedgerAmount) -> int | None:
    return one.deserved if one.deserved is not None else one.ceiling


def _share(one: LedgerAmount) -> float:
    whole = _whole(one)
    return one.used / whole if whole else 0.0


def _largest(queue: LedgerQueue) -> float:
    return max((_share(one) for one in queue.amounts), default=0.0)


def _cells(one: LedgerAmount) -> tuple[RenderableType, ...]:
    whole, share = _whole(one), _share(one)
    colour = "yellow" if share > 1 else "green"
    return (
        one.resource,
        bar(share, 1.0, _BAR, colour) if whole else "",
        f"{share:.0%}" if whole else "",
        shortened(one.resource, one.used),
        shortened(one.resource, whole) if whole else "",
        Text(shortened(one.resource, one.wanted) if one.wanted else "", "yellow"),
    )


def _drawn(room: Room | None, width: int) -> RenderableType:
    if room is None:
        return Text("-", "dim")
    colour = "red" if room.share > 1 else "yellow" if room.share > 0.9 else "green"
    drawn = bar(room.share, 1.0, width, colour)
    used, of = shortened(room.resource, room.used), shortened(room.resource, room.allocatable)
    return drawn.append(f" {used}/{of}", "dim")


def _named(gangs: Sequence[str]) -> str:
    named = ", ".join(gangs[:_GANGS_MAX])
    more = len(gangs) - _GANGS_MAX
    return f"{named} +{more}" if more > 0 else named
