"""`tutti status`: services, gangs and rates, once or on a screen that is redrawn."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Final, NoReturn

import click
import msgspec
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from shared.bus.connection import Bus
from shared.bus.questions import ask_all
from shared.contracts.codec import decode_status
from shared.contracts.questions import LedgerAnswer, ServiceStatus, StatusRequest
from shared.contracts.subjects import ASK_STATUS, CLUSTER, DECISIONS, OUTCOMES, VERDICTS
from shared.model.invariants import InvariantViolation
from tutti.api.failures import run
from tutti.api.flags import report_flag
from tutti.api.output import print_report
from tutti.nats_store import NoHealth, store_problem
from tutti.service_bus import NoStandby, ServiceBus, read_ledger, service_options
from tutti.status.live import StatusScreen
from tutti.status.report import Report, StreamLine, report
from tutti.terminal import plain_table, redraw

#: Services answer within milliseconds; a busy planner answers between two cycles.
_ANSWERS_S: Final = 0.5
_STREAMS: Final = (CLUSTER, DECISIONS, OUTCOMES, VERDICTS)


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
    help="Refresh on one screen until Ctrl-C; with -o json print one line per interval.",
)
def status(*, services: ServiceBus, interval_s: float, output: str, watch: bool) -> None:
    """Show services, gangs by phase and decisions per second.

    Exits with status 1 when a required service is missing or not ready.
    """
    if watch:
        run(_watch(services, interval_s, output), interrupted=0)
    found = run(_collect(services, interval_s), interrupted=0)
    print_report(found, output, lambda: show(found, Console(), datetime.now(UTC)))
    sys.exit(0 if found.ready else 1)


async def _collect(services: ServiceBus, interval_s: float) -> Report:
    async with services.connected("tutti-status") as bus:
        started_s = time.monotonic()
        first = await _ask(bus)
        await asyncio.sleep(max(0.0, interval_s - (time.monotonic() - started_s)))
        seconds = time.monotonic() - started_s
        second = await _ask(bus)
        streams = [await _stream(bus, name) for name in _STREAMS]
    return report(first, second, seconds, streams, await _store_problem(services))


async def _watch(services: ServiceBus, interval_s: float, output: str) -> NoReturn:
    """Show a report per interval until interrupted."""
    async with services.connected("tutti-status") as bus:
        if output == "json":
            async for found, _, _ in _rounds(bus, services, interval_s):
                click.echo(msgspec.json.encode(found))
        else:
            await redraw(_screens(bus, services, interval_s), Console())
    raise InvariantViolation("rounds of questions", "must not end by themselves")


async def _screens(
    bus: Bus, services: ServiceBus, interval_s: float
) -> AsyncIterator[RenderableType]:
    screen = StatusScreen()
    async for found, ledger, seconds in _rounds(bus, services, interval_s):
        screen.take(found, ledger, seconds)
        yield screen.draw(datetime.now(UTC))


async def _rounds(
    bus: Bus, services: ServiceBus, interval_s: float
) -> AsyncIterator[tuple[Report, LedgerAnswer | None, float]]:
    """Without end: a report, the ledger of queues (None: no standby answers), and the seconds
    since the previous round.
    """
    before: Sequence[ServiceStatus] = ()
    asked_s = time.monotonic()
    while True:
        began_s = time.monotonic()
        answers, ledger = await asyncio.gather(_ask(bus), _ledger(bus))
        now_s = time.monotonic()
        seconds, asked_s = now_s - asked_s, now_s
        streams = [await _stream(bus, name) for name in _STREAMS]
        problem = await _store_problem(services)
        yield report(before or answers, answers, seconds, streams, problem), ledger, seconds
        before = answers
        await asyncio.sleep(max(0.0, interval_s - (time.monotonic() - began_s)))


async def _ledger(bus: Bus) -> LedgerAnswer | None:
    try:
        return await read_ledger(bus, timeout_s=_ANSWERS_S)
    except NoStandby:
        return None


async def _ask(bus: Bus) -> Sequence[ServiceStatus]:
    return await ask_all(bus, ASK_STATUS, StatusRequest(), decode_status, wait_s=_ANSWERS_S)


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
    streams = plain_table("STREAM", "RECORDS", "LAST", right=("RECORDS", "LAST"))
    for line in found.streams:
        streams.add_row(line.stream, str(line.messages), str(line.last_seq))
    console.print(streams)


def _services(found: Report, now: datetime) -> Table:
    table = plain_table("SERVICE", "INSTANCE", "ROLE", "READY", "PID", "SINCE", "HTTP")
    for line in found.services:
        since = datetime.fromtimestamp(line.started_ms / 1000, UTC)
        table.add_row(
            line.service,
            line.instance,
            "active" if line.active else "standby",
            Text("yes", "green") if line.ready else Text(", ".join(line.not_ready) or "no", "red"),
            str(line.pid),
            f"{int((now - since).total_seconds())} s",
            str(line.http_port),
        )
    return table
