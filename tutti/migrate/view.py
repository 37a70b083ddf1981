"""A check as text: blocking findings first, one line per finding."""

from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tutti.migrate.findings import LEVELS, Check, Level

_STYLES: Final[dict[Level, str]] = {
    "blocks": "red",
    "step": "yellow",
    "changes": "",
    "tells": "dim",
}
_HEADS: Final[dict[Level, str]] = {
    "blocks": "does not work with Tutti as it is",
    "step": "to be done when switching",
    "changes": "works differently than now",
    "tells": "for information",
}


def show(check: Check, console: Console) -> None:
    """Print it; in colour where the console has colours."""
    for level in LEVELS:
        found = [one for one in check.findings if one.level == level]
        if not found:
            continue
        console.print(Text(f"{_HEADS[level]} ({len(found)})", style=_STYLES[level] or "bold"))
        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        table.add_column("TOPIC", no_wrap=True)
        table.add_column("WHAT", overflow="fold")
        table.add_column("MESSAGE", overflow="fold", ratio=1)
        for one in found:
            table.add_row(f"  {one.topic}", one.what, Text(one.message))
        console.print(table)
    console.print(Text(closing(check)))


def closing(check: Check) -> str:
    """The last line: the checked objects, and whether a switch is possible."""
    blocking = sum(1 for one in check.findings if one.level == "blocks")
    checked = (
        f"checked {check.pods} pods, {check.gangs} groups, {check.jobs} Jobs and "
        f"{check.queues} queues on {check.server}"
    )
    if blocking:
        what = "finding blocks" if blocking == 1 else "findings block"
        return f"{checked}: {blocking} {what} a switch"
    return f"{checked}: nothing blocks a switch"
