"""`tutti demo` as it is typed: flags in, exit status out."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import click
from rich.console import Console

from shared.bus.errors import BusError
from shared.kube.errors import KubeError
from tutti.api.failures import first_failure
from tutti.demo.performance import Options, play
from tutti.demo.processes import ProcessFailed
from tutti.demo.screen import WIDTH

#: As shells report a process that a signal ended.
_SIGNALLED = 128


@click.command()
@click.option("--fast", is_flag=True, help="Nothing to read, everything checked: for CI.")
@click.option("--color/--no-color", default=True, help="Colours; where the terminal has them.")
@click.option("--keep", is_flag=True, help="Leave the cluster and Tutti running until Ctrl-C.")
@click.option("--kill", is_flag=True, help="Kill every process of Tutti once meanwhile.")
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the session as an animated SVG.",
)
def demo(*, fast: bool, color: bool, keep: bool, kill: bool, record: Path | None) -> None:
    """Play the seeds' experiment on an embedded cluster; exit 1 unless every claim held."""
    no_color = None if color else True
    console = Console(no_color=no_color, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH
    sys.exit(asyncio.run(_run(Options(fast=fast, kill=kill, keep=keep, record=record), console)))


async def _run(options: Options, console: Console) -> int:
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
    except (BaseExceptionGroup, BusError, KubeError, ProcessFailed, OSError) as error:
        reason = first_failure(error) if isinstance(error, BaseExceptionGroup) else error
        if not isinstance(reason, BusError | KubeError | ProcessFailed | OSError):
            raise
        click.echo(f"tutti: {reason}", err=True)
        return 1
