"""`tutti demo`: gang scheduling and pod-by-pod scheduling compared on an embedded cluster."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import click
from rich.console import Console

from tutti.api.failures import run
from tutti.demo.screen import WIDTH
from tutti.demo.session import Options, play

#: Exit status, plus the signal's number, of a process that a signal ended.
_SIGNALLED = 128


@click.command()
@click.option(
    "--fast", is_flag=True, help="Without pauses to read; every claim is checked. For CI."
)
@click.option("--color/--no-color", default=True, help="Use colours where the terminal has them.")
@click.option(
    "--keep",
    is_flag=True,
    help="Leave everything running until Ctrl-C, with a running and a waiting job.",
)
@click.option("--kill", is_flag=True, help="Kill every process of Tutti once during the demo.")
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the session as an animated SVG.",
)
def demo(*, fast: bool, color: bool, keep: bool, kill: bool, record: Path | None) -> None:
    """Compare pod-by-pod and gang scheduling on an embedded cluster.

    Prints the address of the console, which shows the same in a browser. Exits with status 1
    unless every claim held.
    """
    no_color = None if color else True
    console = Console(no_color=no_color, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH
    sys.exit(run(_play(Options(fast=fast, kill=kill, keep=keep, record=record), console)))


async def _play(options: Options, console: Console) -> int:
    playing = asyncio.ensure_future(play(options, console))
    received: list[int] = []

    def stop(number: int) -> None:
        received.append(number)
        playing.cancel()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    try:
        return 0 if await playing else 1
    except asyncio.CancelledError:
        return _SIGNALLED + received[0]
