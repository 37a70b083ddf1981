"""A timeline as a table."""

from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tutti.trace.jaeger import link
from tutti.trace.timeline import Line, Timeline


def show(found: Timeline, console: Console, jaeger: str) -> None:
    """Print it; in colour where the console has colours."""
    console.print(Text(f"{found.gang} ({found.gang_id}): {found.phase}", "bold"))
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("TIME (UTC)", no_wrap=True)
    table.add_column("AFTER", justify="right", no_wrap=True)
    table.add_column("TOOK", justify="right", no_wrap=True)
    table.add_column("WHAT", no_wrap=True)
    table.add_column("DETAIL", overflow="fold")
    begun_ms = found.lines[0].at_ms if found.lines else 0
    for line in found.lines:
        table.add_row(*_cells(line, begun_ms), style="red" if line.failed else "")
    console.print(table)
    for number, trace_id in enumerate(found.traces, start=1):
        where = link(jaeger, trace_id) if jaeger else trace_id
        console.print(Text(f"trace {number}: {where}"), soft_wrap=True)


def _cells(line: Line, begun_ms: int) -> tuple[str, str, str, str, Text]:
    at = datetime.fromtimestamp(line.at_ms / 1000, UTC)
    return (
        at.strftime("%H:%M:%S.") + f"{line.at_ms % 1000:03d}",
        f"+{_duration(line.at_ms - begun_ms)}",
        _duration(line.took_ms) if line.took_ms > 0 else "",
        line.what,
        Text(line.detail),
    )


def _duration(ms: int) -> str:
    return f"{ms} ms" if ms < 10_000 else f"{ms / 1000:.1f} s"
