"""Reports in a terminal: tables, bars, sparklines, and screens that are redrawn."""

import sys
from collections.abc import AsyncIterator, Collection, Iterable
from typing import Final, Literal

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from shared.kube.quantities import format_quantity

_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_LEVELS: Final = "▁▂▃▄▅▆▇█"
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi")
#: Columns of a drawing that goes to a file or another program.
_DRAWN: Final = 200
#: Columns of text and tables there: no line is broken, for programs that read lines.
_UNBROKEN: Final = 10_000


def report_console() -> Console:
    """The console of a report: as wide as the terminal; without one, no line of text or of a table
    is broken.
    """
    return Console(width=None if sys.stdout.isatty() else _UNBROKEN)


def screen_console() -> Console:
    """The console of a screen with frames around its parts, which are as wide as the console."""
    return Console(width=None if sys.stdout.isatty() else _DRAWN)


def drawing_width(console: Console) -> int:
    """The columns for what is drawn to a width, such as bars."""
    return _DRAWN if console.width == _UNBROKEN else console.width


def print_line(console: Console, text: Text) -> None:
    """Print without breaking lines, for grep."""
    console.print(text, soft_wrap=True)


def plain_table(*titles: str, right: Collection[str] = (), folded: str = "") -> Table:
    """A table without lines, as kubectl's.

    Args:
        titles: The columns.
        right: The columns whose cells are aligned right: numbers.
        folded: The column whose cells are broken into several lines on a narrow terminal.
    """
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in titles:
        justify: Literal["right", "left"] = "right" if title in right else "left"
        table.add_column(title, justify=justify, overflow="fold" if title == folded else "ellipsis")
    return table


async def redraw(frames: AsyncIterator[RenderableType], console: Console) -> None:
    """Show each frame in place of the one before, until there are no more.

    Afterwards, also when interrupted, the terminal is as it was, with the last frame on it. Without
    a terminal the frames are printed one below the other.
    """
    if not console.is_terminal:
        async for frame in frames:
            console.print(frame)
        return
    last: RenderableType = ""
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            async for frame in frames:
                last = frame
                live.update(frame, refresh=True)
    finally:
        console.print(last)


def bar(value: float, most: float, width: int, style: str) -> Text:
    """`value` of `most` as a bar of `width` characters, to an eighth of one; the rest is shaded.

    A value above 0 is at least an eighth; a value above `most` fills the bar.
    """
    part = min(1.0, max(0.0, value / most)) if most > 0 else 0.0
    eighths = round(part * width * 8)
    if value > 0 and most > 0:
        eighths = max(1, eighths)
    full, rest = divmod(eighths, 8)
    drawn = "█" * full + (_EIGHTHS[rest] if rest else "")
    return Text.assemble((drawn, style), ("░" * (width - len(drawn)), "bright_black"))


def sparkline(values: Iterable[float]) -> str:
    """A character per value, whose height is the value's part of the maximum; 0 is the lowest."""
    heights = list(values)
    most = max(heights, default=0.0)
    if most <= 0:
        return _LEVELS[0] * len(heights)
    top = len(_LEVELS) - 1
    return "".join(
        _LEVELS[max(1, round(height / most * top)) if height > 0 else 0] for height in heights
    )


def shortened(resource: str, amount: int) -> str:
    """An amount in the model's units in about five characters: `1500m`, `24`, `3.5Gi`."""
    if resource != "memory" and "storage" not in resource:
        return format_quantity(resource, amount)
    scaled, unit = float(amount), 0
    while scaled >= 1024 and unit < len(_BINARY) - 1:
        scaled /= 1024
        unit += 1
    return f"{scaled:.3g}{_BINARY[unit]}" if scaled < 1000 else f"{scaled:.0f}{_BINARY[unit]}"


def count(number: int, noun: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def counted(number: int) -> str:
    """A count in at most five characters: `812`, `2.1k`, `31k`, `1.2M`."""
    for unit, size in (("G", 1_000_000_000), ("M", 1_000_000), ("k", 1_000)):
        if number >= size:
            scaled = number / size
            return f"{scaled:.1f}{unit}" if scaled < 10 else f"{scaled:.0f}{unit}"
    return str(number)


def cut(text: str, limit: int) -> str:
    """The text without its middle if it is longer than the limit: names that belong together mostly
    differ at their ends.
    """
    if len(text) <= limit:
        return text
    kept = max(limit - 1, 1)
    tail = kept // 2
    return f"{text[: kept - tail]}…{text[len(text) - tail :]}"
