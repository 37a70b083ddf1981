"""`tutti timeline`: when gangs waited, and on which nodes they ran."""

import re
import time
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.text import Text
from typing_extensions import override

from tutti.api.failures import run
from tutti.api.flags import report_flag
from tutti.api.output import echo_json
from tutti.service_bus import ServiceBus, service_options
from tutti.timeline.history import History, Logs, build_history, trimmed
from tutti.timeline.log_reader import read_logs
from tutti.timeline.strips import by_gang, by_node
from tutti.timeline.svg import draw_svg

_DURATION: Final = re.compile(r"([0-9]+)([smh])")
_UNITS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000}
_ROWS_MAX: Final = 100


class _Duration(click.ParamType[int]):
    """`90s`, `15m` or `2h`, in milliseconds."""

    name = "duration"

    @override
    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        found = _DURATION.fullmatch(value)
        if found is None or not int(found[1]):
            self.fail(f"{value!r} is no duration: write 90s, 15m or 2h", param, ctx)
        return int(found[1]) * _UNITS[found[2]]


@click.command()
@service_options
@click.option(
    "--since",
    "since_ms",
    type=_Duration(),
    default="15m",
    show_default=True,
    metavar="DURATION",
    help="How far back: 90s, 15m, 2h.",
)
@click.option(
    "--by", type=click.Choice(["gang", "node"]), default="gang", help="One row per gang or node."
)
@click.option("--namespace", "-n", default="", metavar="NAME", help="Only gangs of this namespace.")
@click.option(
    "--svg",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write an SVG drawing with one row per node instead.",
)
@report_flag
def timeline(
    *, services: ServiceBus, since_ms: int, by: str, namespace: str, svg: Path | None, output: str
) -> None:
    """Draw when gangs waited, and on which nodes they ran.

    The data comes from the logs in NATS: decisions, their outcomes, and the ends of pods. The logs
    keep about an hour; anything that began earlier is left out.
    """
    found, history = run(_collect(services, since_ms, namespace))
    for stream in found.cut:
        click.echo(f"tutti: {stream} has more records than are read; try --since 2m", err=True)
    if svg is not None:
        svg.write_text(draw_svg(history, "Gangs on nodes"), encoding="utf-8")
        click.echo(
            f"tutti: {svg}: {len(history.gangs)} gangs on {len(history.nodes)} nodes", err=True
        )
    elif output == "json":
        echo_json(history)
    else:
        _print(history, by)


async def _collect(services: ServiceBus, since_ms: int, namespace: str) -> tuple[Logs, History]:
    to_ms = time.time_ns() // 1_000_000
    async with services.connected("tutti-timeline") as bus:
        found = await read_logs(bus, to_ms - since_ms)
    history = build_history(found, from_ms=to_ms - since_ms, to_ms=to_ms, namespace=namespace)
    return found, trimmed(history)


def _print(history: History, by: str) -> None:
    console = Console()
    if not history.gangs:
        console.print(Text("no gang waited or ran in this period"))
        return
    draw = by_node if by == "node" else by_gang
    console.print(draw(history, console.width, _ROWS_MAX))
