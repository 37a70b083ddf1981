"""`tutti timeline`: when gangs waited, and on which nodes they ran."""

import asyncio
import time
from pathlib import Path
from typing import Final

import click
from rich.text import Text

from tutti.api.access import Access, open_client
from tutti.api.failures import run
from tutti.api.flags import Duration, access_flags, namespace_flag, report_flag
from tutti.api.output import print_report
from tutti.client.asynchronous import AsyncClient
from tutti.terminal import drawing_width, report_console
from tutti.timeline.history import BuiltHistory, History, build_history, trimmed
from tutti.timeline.strips import by_gang, by_node
from tutti.timeline.svg import draw_svg

_ROWS_MAX: Final = 100


@click.command()
@access_flags
@click.option(
    "--since",
    "since_ms",
    type=Duration(),
    default="15m",
    show_default=True,
    metavar="DURATION",
    help="How far back: 90s, 15m, 2h.",
)
@click.option(
    "--by", type=click.Choice(["gang", "node"]), default="gang", help="One row per gang or node."
)
@namespace_flag("Only gangs of this namespace.")
@click.option(
    "--svg",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write an SVG drawing with one row per node instead.",
)
@report_flag
def timeline(
    *, access: Access, since_ms: int, by: str, namespace: str, svg: Path | None, output: str
) -> None:
    """Draw when gangs waited, and on which nodes they ran.

    Tutti's API has the newest decisions, and the ends of pods since its service started. Anything
    else is left out.
    """
    built = run(_collect(access, since_ms, namespace))
    history = trimmed(built.history)
    if built.left_out:
        remark = f"{built.left_out} stays on nodes are left out: their end is not known"
        click.echo(f"tutti: {remark}", err=True)
    if svg is not None:
        svg.write_text(draw_svg(history, "Gangs on nodes"), encoding="utf-8")
        click.echo(
            f"tutti: {svg}: {len(history.gangs)} gangs on {len(history.nodes)} nodes", err=True
        )
    else:
        print_report(history, output, lambda: _print(history, by))


async def _collect(access: Access, since_ms: int, namespace: str) -> BuiltHistory:
    to_ms = time.time_ns() // 1_000_000
    everywhere = not namespace
    async with open_client(access) as kube:
        client = AsyncClient(kube=kube)
        decisions, gangs = await asyncio.gather(
            client.decisions(namespace=namespace, all_namespaces=everywhere),
            client.gangs(namespace=namespace, all_namespaces=everywhere),
        )
    return build_history(decisions, gangs, from_ms=to_ms - since_ms, to_ms=to_ms)


def _print(history: History, by: str) -> None:
    console = report_console()
    if not history.gangs:
        console.print(Text("no gang waited or ran in this period"))
        return
    draw = by_node if by == "node" else by_gang
    console.print(draw(history, drawing_width(console), _ROWS_MAX))
