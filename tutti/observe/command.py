"""`tutti observe`: the report of a `tutti up --observe`."""

import asyncio
from pathlib import Path
from typing import Final

import click
import msgspec

from shared.bus.connection import Bus
from shared.bus.errors import NoAnswer
from shared.bus.questions import ask
from shared.contracts import codec, subjects
from shared.contracts.observing import Observation, ObservationRequest
from tutti.api.failures import Refusal, run
from tutti.api.flags import report_flag
from tutti.api.output import print_report
from tutti.observe.view import Summary, show, summarize
from tutti.service_bus import ServiceBus, service_options
from tutti.terminal import report_console
from tutti.up.options import OBSERVED_DIR

#: Timeout of a report; thousands of rows take a fraction of it.
_ANSWER_S: Final = 5.0


class _Report(msgspec.Struct, frozen=True, kw_only=True):
    """What `-o json` prints."""

    summary: Summary
    observation: Observation


@click.group()
def observe() -> None:
    """Show what `tutti up --observe` found beside another scheduler."""


@observe.command()
@service_options
@click.option(
    "--file",
    "-f",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read the report that `tutti up --observe --report` wrote, instead of a running observer.",
)
@report_flag
def report(*, services: ServiceBus, path: Path | None, output: str) -> None:
    """Show when the other scheduler bound each gang, when Tutti would have, and which gangs stay
    bound in part.
    """
    found = run(_read_file(path) if path is not None else _ask(services))
    data = _Report(summary=summarize(found), observation=found)
    print_report(data, output, lambda: show(found, report_console()))


async def _read_file(path: Path) -> Observation:
    content = await asyncio.to_thread(path.read_bytes)
    try:
        return msgspec.json.decode(content, type=Observation)
    except msgspec.MsgspecError as error:
        raise Refusal(f"{path}: {error}") from None


async def _ask(services: ServiceBus) -> Observation:
    folder = await services.folder()
    if folder is not None:
        services = msgspec.structs.replace(services, data_dir=folder / OBSERVED_DIR)
    async with services.connected("tutti-observe") as bus:
        first = await _page(bus, ObservationRequest())
        gangs = list(first.gangs)
        for number in range(1, first.pages):
            page = await _page(bus, ObservationRequest(page=number, at_ms=first.at_ms))
            gangs += page.gangs
        return msgspec.structs.replace(first, gangs=tuple(gangs), pages=1)


async def _page(bus: Bus, question: ObservationRequest) -> Observation:
    decode = codec.decode_observation
    try:
        return await ask(bus, subjects.ASK_OBSERVATION, question, decode, timeout_s=_ANSWER_S)
    except NoAnswer:
        raise Refusal("no observer answers") from None
