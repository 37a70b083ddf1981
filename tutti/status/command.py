"""`tutti status`: services, gangs and rates, once or on a screen that is redrawn."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Final, NoReturn, TypeAlias

import click
import msgspec
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from shared.bus.connection import Bus
from shared.contracts.questions import LedgerAnswer, ServiceStatus
from shared.contracts.subjects import CLUSTER, DECISIONS, OUTCOMES, VERDICTS
from shared.contracts.visibility_resources import INSTANCES
from shared.kube.errors import ApiError
from shared.model.invariants import InvariantViolation
from tutti.api.failures import run
from tutti.api.flags import report_flag
from tutti.api.output import as_yaml, print_report, report_data
from tutti.client.asynchronous import AsyncClient
from tutti.nats_server import NoHealth, store_problem
from tutti.service_access import (
    NoStandby,
    Reached,
    ServiceBus,
    is_passing,
    reached,
    read_queues,
    service_options,
)
from tutti.status.live import StatusScreen
from tutti.status.report import Report, StreamLine, report, report_of_api
from tutti.terminal import plain_table, redraw, report_console, screen_console
from tutti.up.readiness import ask_services

#: Services answer within milliseconds; a busy planner answers between two cycles.
_ANSWERS_S: Final = 0.5
_STREAMS: Final = (CLUSTER, DECISIONS, OUTCOMES, VERDICTS)

Round: TypeAlias = tuple[Report, LedgerAnswer | None, float]
"""A report, the ledger of queues (None: no planner answers), and the seconds since the previous
round."""


@click.command()
@service_options
@click.option(
    "--interval",
    "interval_s",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0.1, 60.0),
    help="Seconds over which rates are measured.",
)
@report_flag
@click.option(
    "--watch",
    "-w",
    is_flag=True,
    help="Refresh on one screen until Ctrl-C; with -o json or yaml print one per interval.",
)
def status(*, services: ServiceBus, interval_s: float, output: str, watch: bool) -> None:
    """Show services, gangs by phase and decisions per second.

    Tutti's API answers, with the gangs that the user may see; or all services over NATS, with
    rates, streams and remarks for operators, too. Exits with status 1 when a required service is
    missing or not ready.
    """
    if watch:
        run(_watch(services, interval_s, output), interrupted=0)
    found = run(_collect(services, interval_s), interrupted=0)
    print_report(found, output, lambda: show(found, report_console(), datetime.now(UTC)))
    sys.exit(0 if found.ready else 1)


async def _collect(services: ServiceBus, interval_s: float) -> Report:
    async with reached(services, "tutti-status", INSTANCES) as way:
        if isinstance(way, AsyncClient):
            return await _read_api(way)
        started_s = time.monotonic()
        first = await ask_services(way, _ANSWERS_S)
        await asyncio.sleep(max(0.0, interval_s - (time.monotonic() - started_s)))
        seconds = time.monotonic() - started_s
        second = await ask_services(way, _ANSWERS_S)
        streams = [await _stream(way, name) for name in _STREAMS]
    return report(first, second, seconds, streams, await _store_problem(services))


async def _read_api(client: AsyncClient) -> Report:
    instances, gangs = await asyncio.gather(client.instances(), client.gangs(all_namespaces=True))
    return report_of_api(instances, gangs)


async def _watch(services: ServiceBus, interval_s: float, output: str) -> NoReturn:
    """Show a report per interval until interrupted."""
    async with reached(services, "tutti-status", INSTANCES) as way:
        if isinstance(way, AsyncClient):
            rounds = _api_rounds(way, interval_s)
        else:
            rounds = _rounds(way, services, interval_s)
        if output == "text":
            await redraw(_screens(rounds), screen_console())
        else:
            async for found, _, _ in rounds:
                _print_data(found, output)
    raise InvariantViolation("rounds of questions", "must not end by themselves")


def _print_data(found: Report, output: str) -> None:
    """One line of JSON, or one document of YAML."""
    data = report_data(found)
    if output == "yaml":
        click.echo(f"---\n{as_yaml(data)}")
    else:
        click.echo(msgspec.json.encode(data))


async def _screens(rounds: AsyncIterator[Round]) -> AsyncIterator[RenderableType]:
    screen = StatusScreen()
    async for found, ledger, seconds in rounds:
        screen.take(found, ledger, seconds)
        yield screen.draw(datetime.now(UTC))


async def _api_rounds(client: AsyncClient, interval_s: float) -> AsyncIterator[Round]:
    """As `_rounds`, from Tutti's API."""
    while True:
        began_s = time.monotonic()
        found = await _read_api(client)
        yield found, await _ledger(client), interval_s
        await asyncio.sleep(max(0.0, interval_s - (time.monotonic() - began_s)))


async def _rounds(bus: Bus, services: ServiceBus, interval_s: float) -> AsyncIterator[Round]:
    """Rounds without end."""
    before: Sequence[ServiceStatus] = ()
    asked_s = time.monotonic()
    while True:
        began_s = time.monotonic()
        answers, ledger = await asyncio.gather(ask_services(bus, _ANSWERS_S), _ledger(bus))
        now_s = time.monotonic()
        seconds, asked_s = now_s - asked_s, now_s
        streams = [await _stream(bus, name) for name in _STREAMS]
        problem = await _store_problem(services)
        yield report(before or answers, answers, seconds, streams, problem), ledger, seconds
        before = answers
        await asyncio.sleep(max(0.0, interval_s - (time.monotonic() - began_s)))


async def _ledger(way: Reached) -> LedgerAnswer | None:
    try:
        return (await read_queues(way, timeout_s=_ANSWERS_S)).ledger
    except (NoStandby, ApiError) as error:
        if not is_passing(error):
            raise
        return None


async def _store_problem(services: ServiceBus) -> str:
    """Why the NATS of `tutti up` cannot store; "" if it can, or if it does not answer."""
    url = (await services.find()).nats_monitor_url
    try:
        return await store_problem(url) if url else ""
    except NoHealth:
        return ""


async def _stream(bus: Bus, name: str) -> StreamLine:
    return msgspec.convert(await bus.stream_info(name), StreamLine, from_attributes=True)


def show(found: Report, console: Console, now: datetime) -> None:
    style, word = ("bold green", "ready") if found.ready else ("bold red", "not ready")
    console.print(
        Text(f"tutti is {word}{': ' if found.problems else ''}{'; '.join(found.problems)}", style)
    )
    console.print(_services(found, now))
    gangs = ", ".join(f"{count} {phase}" for phase, count in found.gangs.items()) or "none"
    console.print(Text(f"gangs: {gangs}"))
    if found.holds:
        console.print(
            Text(f"holds: capacity for {found.holds} lost members is reserved or missing")
        )
    if found.decisions_per_s is not None and found.pods_bound_per_s is not None:
        console.print(
            Text(
                f"decisions: {found.decisions_per_s:g} per second; "
                f"pods bound: {found.pods_bound_per_s:g} per second"
            )
        )
    if found.webhook_registered is not None:
        console.print(Text(f"webhook: {'' if found.webhook_registered else 'not '}registered"))
    for service in found.services:
        for topic, text in service.notes.items():
            console.print(Text(f"{service.instance}: {topic}: {text}"))
    if found.streams:
        streams = plain_table("STREAM", "RECORDS", "LAST", right=("RECORDS", "LAST"))
        for line in found.streams:
            streams.add_row(line.stream, str(line.messages), str(line.last_seq))
        console.print(streams)


def _services(found: Report, now: datetime) -> Table:
    # What only NATS has is left out where it is not known.
    known = any(line.pid is not None for line in found.services)
    table = plain_table(
        "SERVICE", "INSTANCE", "ROLE", "READY", "SINCE", *(("PID", "HTTP") if known else ())
    )
    for line in found.services:
        since = datetime.fromtimestamp(line.started_ms / 1000, UTC)
        table.add_row(
            line.service,
            line.instance,
            "active" if line.active else "standby",
            Text("yes", "green") if line.ready else Text(", ".join(line.not_ready) or "no", "red"),
            f"{int((now - since).total_seconds())} s",
            *((str(line.pid), str(line.http_port)) if known else ()),
        )
    return table
