"""`tutti status` as it is typed."""

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
from shared.bus.errors import BusError, NoAnswer
from shared.bus.questions import ask, ask_all
from shared.contracts.codec import decode_ledger_answer, decode_status
from shared.contracts.questions import LedgerAnswer, LedgerRequest, ServiceStatus, StatusRequest
from shared.contracts.subjects import (
    ASK_LEDGER,
    ASK_STATUS,
    CLUSTER,
    DECISIONS,
    OUTCOMES,
    VERDICTS,
)
from shared.kube.errors import KubeError
from tutti.api.failures import explained
from tutti.nats_store import NoHealth, store_problem
from tutti.redrawing import redraw
from tutti.service_bus import NotReachable, ServiceBus, service_options
from tutti.status.live import Watched
from tutti.status.report import Report, StreamLine, report

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
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text")
@click.option("--watch", "-w", is_flag=True, help="Go on, on one screen; with -o json a line each.")
def status(
    *,
    suite: ServiceBus,
    interval_s: float,
    output: str,
    watch: bool,
) -> None:
    """Show the services, gangs by phase and decisions a second.

    Ends with status 1 when something that is needed is missing or not ready.
    """
    try:
        if watch:
            asyncio.run(_watch(suite, interval_s, output))
        found = asyncio.run(_collect(suite, interval_s))
    except (BusError, KubeError, OSError, NotReachable) as error:
        click.echo(f"tutti: {explained(error)}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(0)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        show(found, Console(), datetime.now(UTC))
    sys.exit(0 if found.ready else 1)


async def _collect(suite: ServiceBus, interval_s: float) -> Report:
    async with suite.connected("tutti-status") as bus:
        started_s = time.monotonic()
        first = await _ask(bus)
        await asyncio.sleep(max(0.0, interval_s - (time.monotonic() - started_s)))
        seconds = time.monotonic() - started_s
        second = await _ask(bus)
        streams = [await _stream(bus, name) for name in _STREAMS]
    return report(first, second, seconds, streams, await _store_problem(suite))


async def _watch(suite: ServiceBus, interval_s: float, output: str) -> NoReturn:
    """Show a round each interval until interrupted."""
    async with suite.connected("tutti-status") as bus:
        if output == "json":
            async for found, _, _ in _rounds(bus, suite, interval_s):
                click.echo(msgspec.json.encode(found))
        else:
            await redraw(_screens(bus, suite, interval_s), Console())
    raise AssertionError("rounds do not end")


async def _screens(bus: Bus, suite: ServiceBus, interval_s: float) -> AsyncIterator[RenderableType]:
    watched = Watched()
    async for found, ledger, seconds in _rounds(bus, suite, interval_s):
        watched.take(found, ledger, seconds)
        yield watched.screen(datetime.now(UTC))


async def _rounds(
    bus: Bus, suite: ServiceBus, interval_s: float
) -> AsyncIterator[tuple[Report, LedgerAnswer | None, float]]:
    """Without end: a report, what queues hold (None: no standby answers), and the seconds since
    the round before.
    """
    before: Sequence[ServiceStatus] = ()
    asked_s = time.monotonic()
    while True:
        began_s = time.monotonic()
        answers, ledger = await asyncio.gather(_ask(bus), _ledger(bus))
        now_s = time.monotonic()
        seconds, asked_s = now_s - asked_s, now_s
        streams = [await _stream(bus, name) for name in _STREAMS]
        problem = await _store_problem(suite)
        yield report(before or answers, answers, seconds, streams, problem), ledger, seconds
        before = answers
        await asyncio.sleep(max(0.0, interval_s - (time.monotonic() - began_s)))


async def _ledger(bus: Bus) -> LedgerAnswer | None:
    try:
        return await ask(
            bus, ASK_LEDGER, LedgerRequest(), decode_ledger_answer, timeout_s=_ANSWERS_S
        )
    except NoAnswer:
        return None


async def _ask(bus: Bus) -> Sequence[ServiceStatus]:
    return await ask_all(bus, ASK_STATUS, StatusRequest(), decode_status, wait_s=_ANSWERS_S)


async def _store_problem(suite: ServiceBus) -> str:
    """What our own NATS says of its store; "" where it was given or does not answer."""
    url = (await suite.find()).nats_monitor_url
    try:
        return await store_problem(url) if url else ""
    except NoHealth:
        return ""


async def _stream(bus: Bus, name: str) -> StreamLine:
    info = await bus.stream_info(name)
    return StreamLine(
        stream=name, messages=info.messages, first_seq=info.first_seq, last_seq=info.last_seq
    )


def show(found: Report, console: Console, now: datetime) -> None:
    """Print a report for people; colours only where the console has them."""
    style, word = ("bold green", "ready") if found.ready else ("bold red", "not ready")
    console.print(
        Text(f"tutti is {word}{': ' if found.problems else ''}{'; '.join(found.problems)}", style)
    )
    console.print(_services(found, now))
    gangs = ", ".join(f"{count} {phase}" for phase, count in found.gangs.items()) or "none"
    console.print(Text(f"gangs: {gangs}"))
    if found.holds:
        console.print(Text(f"holds: capacity of {found.holds} lost members is reserved or sought"))
    console.print(
        Text(
            f"decisions: {found.decisions_per_s:g} a second; "
            f"pods bound: {found.pods_bound_per_s:g} a second"
        )
    )
    if found.webhook_registered is not None:
        console.print(Text(f"webhook: {'' if found.webhook_registered else 'not '}registered"))
    for service in found.services:
        for topic, text in service.notes.items():
            console.print(Text(f"{service.instance}: {topic}: {text}"))
    streams = Table(box=None, padding=(0, 2, 0, 0))
    streams.add_column("STREAM")
    streams.add_column("RECORDS", justify="right")
    streams.add_column("LAST", justify="right")
    for line in found.streams:
        streams.add_row(line.stream, str(line.messages), str(line.last_seq))
    console.print(streams)


def _services(found: Report, now: datetime) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("SERVICE", "INSTANCE", "ROLE", "READY", "PID", "SINCE", "HTTP"):
        table.add_column(title)
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
