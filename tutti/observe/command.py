"""`tutti observe` as it is typed."""

import asyncio
import sys
from pathlib import Path
from typing import Final

import click
import msgspec
from rich.console import Console

from shared.bus.connection import Bus
from shared.bus.errors import BusError, NoAnswer
from shared.bus.questions import ask
from shared.contracts import codec, subjects
from shared.contracts.observing import Observation, ObservationRequest
from shared.kube.credentials import load
from shared.kube.errors import KubeError
from tutti.api.failures import explained
from tutti.observe.showing import show
from tutti.observe.summary import Summary, summarize
from tutti.service_bus import NotReachable, ServiceBus, service_options
from tutti.up.options import OBSERVED_DIR, default_data_dir

#: Of a table that goes to a file or another program.
_WIDE: Final = 200
#: Thousands of rows are made and sent within a fraction of it.
_ANSWER_S: Final = 5.0


class _Report(msgspec.Struct, frozen=True, kw_only=True):
    """What `-o json` prints."""

    summary: Summary
    observation: Observation


@click.group()
def observe() -> None:
    """Look at what `tutti up --observe` finds beside another scheduler."""


@observe.command()
@service_options
@click.option(
    "--file",
    "-f",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A report that `tutti up --observe --report` wrote, instead of asking.",
)
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text")
def report(*, suite: ServiceBus, path: Path | None, output: str) -> None:
    """Show per gang when the other scheduler bound it, when Tutti would have, and what stays
    partial.
    """
    try:
        found = _read(path) if path is not None else asyncio.run(_ask(suite))
    except NoAnswer:
        click.echo("tutti: no observer answers", err=True)
        sys.exit(1)
    except (BusError, KubeError, OSError, NotReachable, msgspec.MsgspecError) as error:
        click.echo(f"tutti: {explained(error)}", err=True)
        sys.exit(1)
    if output == "json":
        whole = _Report(summary=summarize(found), observation=found)
        click.echo(msgspec.json.format(msgspec.json.encode(whole)).decode())
    else:
        show(found, Console(width=None if sys.stdout.isatty() else _WIDE))


def _read(path: Path) -> Observation:
    return msgspec.json.decode(path.read_bytes(), type=Observation)


async def _ask(suite: ServiceBus) -> Observation:
    if not suite.nats:
        folder = suite.data_dir
        if folder is None:
            folder = default_data_dir((await load(suite.kubeconfig, suite.context)).server)
        suite = msgspec.structs.replace(suite, data_dir=folder / OBSERVED_DIR)
    async with suite.connected("tutti-observe") as bus:
        first = await _page(bus, ObservationRequest())
        gangs = list(first.gangs)
        for number in range(1, first.pages):
            page = await _page(bus, ObservationRequest(page=number, at_ms=first.at_ms))
            gangs += page.gangs
        return msgspec.structs.replace(first, gangs=tuple(gangs), pages=1)


async def _page(bus: Bus, question: ObservationRequest) -> Observation:
    return await ask(
        bus, subjects.ASK_OBSERVATION, question, codec.decode_observation, timeout_s=_ANSWER_S
    )
