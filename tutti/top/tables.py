"""Tables of `tutti top`, with a bar for each share. Pure."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from shared.contracts.questions import LedgerAmount, LedgerAnswer, LedgerQueue
from tutti.terminal import bar, shortened
from tutti.top.nodes import NodeUse, ResourceUse

#: Maximum number of rows; further ones are counted.
ROWS_MAX: Final = 200
_BAR: Final = 16
_BAR_LEAST: Final = 4
_NAME_MAX: Final = 40
#: Console width in which no table is wrapped.
_RULER: Final = 10_000
_GANGS_MAX: Final = 2
#: Resources that the table of nodes leaves out.
_QUIET: Final = frozenset({"pods", "ephemeral-storage"})


def of_queues(ledger: LedgerAnswer, width: int = 160) -> RenderableType:
    """A table of queues, sorted by the part of their share in use, with a row per resource;
    `width` in characters.
    """
    ranked = sorted(ledger.queues, key=lambda queue: (-_largest(queue), queue.name))

    def drawn(style: _Style) -> Table:
        table = _table(
            style, "QUEUE", "RUN", "WAIT", "RESOURCE", "SHARE", "", "USED", "OF", "WAITING"
        )
        for queue in ranked[:ROWS_MAX]:
            name = _cut(queue.name, style.name_max)
            head = (name, str(queue.running), str(queue.waiting + queue.outside))
            if not queue.amounts:
                table.add_row(*head)
            for index, one in enumerate(queue.amounts):
                table.add_row(*(head if index == 0 else ("", "", "")), *_cells(one, style))
        _count_rest(table, len(ranked))
        return table

    return _fitted(drawn, width)


def of_nodes(found: Sequence[NodeUse], width: int = 160) -> RenderableType:
    """A table of nodes in the given order, with a bar per resource; `width` in characters."""
    resources = list(
        dict.fromkeys(
            use.resource for one in found for use in one.resources if use.resource not in _QUIET
        )
    )

    def drawn(style: _Style) -> Table:
        titles = (_cut(name.upper(), style.name_max) for name in resources)
        table = _table(style, "NODE", "STATE", *titles, "PODS", "GANGS")
        for one in found[:ROWS_MAX]:
            pods = one.use("pods")
            table.add_row(
                _cut(one.name, style.name_max),
                Text(one.state, "green" if one.state == "Ready" else "yellow"),
                *(_drawn(one.use(resource), style.bar) for resource in resources),
                str(pods.used if pods is not None else 0),
                _cut(_named(one.gangs), style.name_max * 2),
            )
        _count_rest(table, len(found))
        return table

    return _fitted(drawn, width)


class _Style(NamedTuple):
    """The parts of a table that shrink on a narrow terminal; figures never do."""

    #: Characters of a bar.
    bar: int
    #: Characters of a name.
    name_max: int
    #: Characters between columns.
    gap: int


#: From the widest to the narrowest.
_STYLES: Final = (
    _Style(_BAR, _NAME_MAX, 2),
    _Style(8, _NAME_MAX, 2),
    _Style(_BAR_LEAST, 24, 1),
    _Style(_BAR_LEAST, 16, 1),
    _Style(0, 16, 1),
    _Style(0, 10, 1),
)


def _fitted(drawn: Callable[[_Style], Table], width: int) -> Table:
    """The table in the widest style that fits, else in the narrowest."""
    ruler = Console(width=_RULER)
    for style in _STYLES[:-1]:
        table = drawn(style)
        if ruler.measure(table).maximum <= width:
            return table
    return drawn(_STYLES[-1])


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _table(style: _Style, *titles: str) -> Table:
    table = Table(box=None, padding=(0, style.gap, 0, 0), header_style="bold")
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


def _cells(one: LedgerAmount, style: _Style) -> tuple[RenderableType, ...]:
    whole, share = _whole(one), _share(one)
    colour = "yellow" if share > 1 else "green"
    return (
        _cut(one.resource, style.name_max),
        bar(share, 1.0, style.bar, colour) if whole and style.bar else "",
        f"{share:.0%}" if whole else "",
        shortened(one.resource, one.used),
        shortened(one.resource, whole) if whole else "",
        Text(shortened(one.resource, one.wanted) if one.wanted else "", "yellow"),
    )


def _drawn(use: ResourceUse | None, width: int) -> RenderableType:
    if use is None:
        return Text("-", "dim")
    colour = "red" if use.share > 1 else "yellow" if use.share > 0.9 else "green"
    drawn = bar(use.share, 1.0, width, colour) if width else Text()
    used, of = shortened(use.resource, use.used), shortened(use.resource, use.allocatable)
    return drawn.append(f"{' ' if width else ''}{used}/{of}", "dim" if width else colour)


def _named(gangs: Sequence[str]) -> str:
    named = ", ".join(gangs[:_GANGS_MAX])
    more = len(gangs) - _GANGS_MAX
    return f"{named} +{more}" if more > 0 else named
