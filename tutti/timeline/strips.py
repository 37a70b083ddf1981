"""A history as strips of characters: a row per gang, or lanes per node. Pure."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tutti.terminal import count, cut
from tutti.timeline.history import History, Stay, Wait, lanes

#: Background colours for names in black.
PALETTE: Final = (
    "#7fb7e6",
    "#f6b26b",
    "#93c47d",
    "#d5a6bd",
    "#ffd966",
    "#76d7c4",
    "#b4a7d6",
    "#ea9999",
    "#a2c4c9",
    "#c9d77e",
)
_NAME_MAX: Final = 28
_WHERE: Final = 26
_TICKS: Final = 5
_MARKS: Final = {"evicted": "✗", "failed": "!"}


def by_gang(history: History, width: int, rows_max: int) -> RenderableType:
    """A row per gang: shaded while it waited, full while it was on nodes."""
    gangs = history.gangs
    names = min(_NAME_MAX, max((len(gang) for gang in gangs), default=4))
    strip = max(20, width - names - _WHERE - 3)
    colours = colours_of(gangs)
    table = Table(box=None, padding=(0, 1, 0, 0), show_header=False)
    table.add_column(no_wrap=True, max_width=names, overflow="ellipsis")
    table.add_column(no_wrap=True, width=strip)
    table.add_column(no_wrap=True, max_width=_WHERE, overflow="ellipsis")
    table.add_row(Text("GANG", "bold"), _axis(history, strip), Text("WHERE", "bold"))
    for gang in gangs[:rows_max]:
        waits = [wait for wait in history.waits if wait.gang == gang]
        stays = [stay for stay in history.stays if stay.gang == gang]
        drawn = _row(history, strip, waits, stays, colours[gang])
        table.add_row(cut(gang, names), drawn, _where(waits, stays))
    return Group(table, *_left_out(len(gangs), rows_max, "gangs"))


def by_node(history: History, width: int, rows_max: int) -> RenderableType:
    """A row per node and lane: the pods that ran there."""
    nodes = history.nodes
    names = min(_NAME_MAX, max((len(node) for node in nodes), default=4))
    strip = max(20, width - names - 2)
    colours = colours_of(history.gangs)
    table = Table(box=None, padding=(0, 1, 0, 0), show_header=False)
    table.add_column(no_wrap=True, max_width=names, overflow="ellipsis")
    table.add_column(no_wrap=True, width=strip)
    table.add_row(Text("NODE", "bold"), _axis(history, strip))
    rows = [
        (node if index == 0 else "", lane)
        for node in nodes
        for index, lane in enumerate(lanes([stay for stay in history.stays if stay.node == node]))
    ]
    for node, lane in rows[:rows_max]:
        table.add_row(cut(node, names), _lane(history, strip, lane, colours))
    waiting = [wait for wait in history.waits if not wait.ended_ms]
    notes: list[RenderableType] = list(_left_out(len(rows), rows_max, "rows"))
    if waiting:
        gangs = ", ".join(wait.gang for wait in waiting[:5])
        more = f" and {len(waiting) - 5} more" if len(waiting) > 5 else ""
        notes.append(Text(f"waiting: {gangs}{more}", "yellow"))
    return Group(table, *notes)


def colours_of(gangs: Sequence[str]) -> dict[str, str]:
    """A colour for each gang; neighbours have different ones."""
    return {gang: PALETTE[index % len(PALETTE)] for index, gang in enumerate(gangs)}


def clock(at_ms: int) -> str:
    """An instant on an axis, in UTC."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S}"


def lasted(milliseconds: int) -> str:
    """`340ms`, `12s`, `4m10s`, `2h05m`."""
    if milliseconds < 1000:
        return f"{max(0, milliseconds)}ms"
    seconds = milliseconds // 1000
    if seconds < 100:
        return f"{seconds}s"
    if seconds < 6000:
        return f"{seconds // 60}m{seconds % 60:02d}s"
    return f"{seconds // 3600}h{seconds % 3600 // 60:02d}m"


def _axis(history: History, width: int) -> Text:
    cells = [" "] * width
    for tick in range(_TICKS):
        text = clock(history.from_ms + (history.to_ms - history.from_ms) * tick // (_TICKS - 1))
        at = (width - len(text)) * tick // (_TICKS - 1)
        if tick in {0, _TICKS - 1} or width >= _TICKS * (len(text) + 2):
            cells[at : at + len(text)] = text
    return Text("".join(cells), "dim")


def _place(history: History, width: int, at_ms: int) -> int:
    span = max(1, history.to_ms - history.from_ms)
    return min(width - 1, max(0, (at_ms - history.from_ms) * width // span))


def _row(
    history: History, width: int, waits: Iterable[Wait], stays: Iterable[Stay], colour: str
) -> Text:
    cells = [(" ", "")] * width
    for wait in waits:
        first = _place(history, width, wait.began_ms)
        last = _place(history, width, wait.ended_ms or history.to_ms)
        for at in range(first, last + 1):
            cells[at] = ("░", "yellow")
    for stay in sorted(stays, key=lambda stay: stay.ended_ms or history.to_ms):
        first = _place(history, width, stay.began_ms)
        last = _place(history, width, stay.ended_ms or history.to_ms)
        for at in range(first, last + 1):
            cells[at] = ("█", colour)
        if stay.end in _MARKS:
            cells[last] = (_MARKS[stay.end], "bold red")
    return Text.assemble(*cells)


def _lane(history: History, width: int, lane: Sequence[Stay], colours: dict[str, str]) -> Text:
    cells = [("·", "bright_black")] * width
    for stay in lane:
        first = _place(history, width, stay.began_ms)
        last = _place(history, width, stay.ended_ms or history.to_ms)
        label = stay.gang.partition("/")[2][: max(0, last - first)]
        for at in range(first, last + 1):
            letter = label[at - first] if at - first < len(label) else " "
            cells[at] = (letter, f"black on {colours[stay.gang]}")
        if stay.end in _MARKS:
            cells[last] = (_MARKS[stay.end], f"bold red on {colours[stay.gang]}")
    return Text.assemble(*cells)


def _where(waits: Sequence[Wait], stays: Sequence[Stay]) -> Text:
    """Where the gang of a row is, why it waits, or where it was last: gangs that were one after the
    other, and runs of one gang, have one row.
    """
    shown = [stay for stay in stays if not stay.ended_ms]
    waiting = next((wait for wait in waits if not wait.ended_ms), None)
    if not shown and (waiting is not None or not stays):
        return Text(f"waits: {waiting.why}" if waiting and waiting.why else "waits", "yellow")
    shown = shown or _last_run(stays)
    pods = sum(stay.pods for stay in shown)
    nodes = len({stay.node for stay in shown})
    return Text(f"{count(pods, 'pod')}, {count(nodes, 'node')}", "dim")


def _last_run(stays: Sequence[Stay]) -> list[Stay]:
    """Of stays that have ended, those since the last time at which there was none."""
    run: list[Stay] = []
    ended_ms = 0
    for stay in sorted(stays, key=lambda stay: stay.began_ms):
        run = [*run, stay] if stay.began_ms <= ended_ms else [stay]
        ended_ms = max(ended_ms, stay.ended_ms)
    return run


def _left_out(number: int, most: int, what: str) -> list[RenderableType]:
    return [Text(f"and {number - most} {what} more", "dim")] if number > most else []
