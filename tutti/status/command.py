"""`tutti status`: services, gangs and rates, once or on a screen that is redrawn."""

import asyncio
import contextlib
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Final, NoReturn, TypeAlias

import click
import msgspec
from rich.box import ROUNDED
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from shared.bus.connection import Bus
from shared.bus.errors import NoAnswer
from shared.bus.questions import ask_ledger
from shared.contracts.subjects import STREAMS
from shared.contracts.visibility import Queue
from shared.model.invariants import InvariantViolation
from shared.visible_objects import build_queues
from tutti.api.failures import run
from tutti.api.flags import report_flag
from tutti.api.output import as_yaml, print_report, report_data
from tutti.nats_server import NoHealth, store_problem
from tutti.nodes_command import share_of
from tutti.service_access import ServiceBus, service_options
from tutti.status.report import Report, ServiceLine, StreamLine, report
from tutti.terminal import (
    bar,
    counted,
    plain_table,
    redraw,
    report_console,
    screen_console,
    shortened,
    sparkline,
)
from tutti.up.readiness import ask_services

#: Number of rounds in a sparkline: a minute, at one per second.
HISTORY: Final = 60
_QUEUES_MAX: Final = 12
_WIDTH: Final = 30
_COLOURS: Final = {
    "Running": "green",
    "Starting": "cyan",
    "Inqueue": "yellow",
    "Pending": "bright_black",
    "Unknown": "magenta",
    "Repairing": "red",
    "Releasing": "bright_red",
    "Completed": "blue",
}


class StatusScreen:
    """The reports of the last rounds."""

    def __init__(self) -> None:
        self.report: Report | None = None
        self.queues: Sequence[Queue] | None = None
        self._decisions: deque[float] = deque(maxlen=HISTORY)
        self._bound: deque[float] = deque(maxlen=HISTORY)
        #: Last sequence and records per second of each stream.
        self._streams: dict[str, tuple[int, float]] = {}

    def take(self, round_: Report, queues: Sequence[Queue] | None, seconds: float) -> None:
        """Add a round, `seconds` after the previous one; `queues` None: no planner answers."""
        self.report, self.queues = round_, queues
        self._decisions.append(round_.decisions_per_s)
        self._bound.append(round_.pods_bound_per_s)
        for line in round_.streams:
            before, _ = self._streams.get(line.stream, (line.last_seq, 0.0))
            gained = max(0, line.last_seq - before)
            self._streams[line.stream] = line.last_seq, gained / seconds if seconds > 0 else 0.0

    def draw(self, now: datetime) -> RenderableType:
        """The screen after the last round."""
        last = self.report
        if last is None:
            return Text("asking the services…", "dim")
        parts: list[RenderableType] = [
            _head(last, now),
            Panel(_drawn_services(last, now), title="services", title_align="left", box=ROUNDED),
            Panel(self._gangs(last), title="gangs", title_align="left", box=ROUNDED),
        ]
        if self.queues:
            queues = _queues(self.queues)
            parts.append(Panel(queues, title="queues", title_align="left", box=ROUNDED))
        if last.streams:
            parts.append(self._draw_streams(last.streams))
        return Group(*parts)

    def _gangs(self, last: Report) -> RenderableType:
        table = Table.grid(padding=(0, 2))
        table.add_column(justify="right")
        table.add_column(justify="right")
        table.add_column()
        most = max(last.gangs.values(), default=1)
        for phase, count in last.gangs.items():
            colour = _COLOURS.get(phase, "white")
            table.add_row(Text(phase, colour), str(count), bar(count, most, _WIDTH, colour))
        if not last.gangs:
            table.add_row(Text("none", "dim"), "", "")
        if last.holds:
            table.add_row(Text("reserved", "magenta"), str(last.holds), "")
        for title, values in (("decisions/s", self._decisions), ("pods bound/s", self._bound)):
            if values:
                line = Text(sparkline(values), "cyan")
                table.add_row(Text(title, "bold"), f"{values[-1]:g}", line)
        return table

    def _draw_streams(self, streams: tuple[StreamLine, ...]) -> RenderableType:
        drawn = Text(" ")
        for line in streams:
            rate = self._streams.get(line.stream, (0, 0.0))[1]
            drawn.append(f"{line.stream} ", "dim")
            drawn.append(counted(line.messages))
            drawn.append(f" +{counted(round(rate))}/s  ", "cyan" if rate >= 1 else "dim")
        return drawn


def _head(last: Report, now: datetime) -> RenderableType:
    word, style = ("ready", "black on green") if last.ready else ("not ready", "white on red")
    head = Table.grid(expand=True)
    head.add_column()
    head.add_column(justify="right")
    title = Text.assemble((f" tutti is {word} ", f"bold {style}"))
    if last.webhook_registered is False:
        title.append("  webhook not registered", "yellow")
    for problem in last.problems:
        title.append(f"  {problem}", "red")
    head.add_row(title, Text(f"{now.astimezone(UTC):%H:%M:%S} UTC ", "dim"))
    return head


def _drawn_services(last: Report, now: datetime) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for line in last.services:
        state = Text("●", "green" if line.ready else "red")
        role = Text("active", "bold") if line.active else Text("standby", "dim")
        table.add_row(state, line.instance, role, _age(line, now), _words(line))
    return table


def _age(line: ServiceLine, now: datetime) -> Text:
    seconds = max(0, int(now.timestamp() - line.started_ms / 1000))
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * length:
            return Text(f"{seconds // length}{unit}", "dim")
    return Text(f"{seconds}s", "dim")


def _words(line: ServiceLine) -> Text:
    if not line.ready:
        return Text(", ".join(line.not_ready) or "not ready", "red")
    return Text("; ".join(f"{topic}: {text}" for topic, text in line.notes.items()), "dim")


def _queues(queues: Sequence[Queue]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    gangs = [(queue, queue.status.gangs) for queue in queues]
    busy = [
        (queue, each.running, each.waiting + each.not_admitted)
        for queue, each in gangs
        if each.running or each.waiting or each.not_admitted
    ]
    for queue, running, waits in busy[:_QUEUES_MAX]:
        waiting = Text(f"{waits} wait", "yellow" if waits else "dim")
        table.add_row(queue.metadata.name, f"{running} run", waiting, *_largest(queue))
    if len(busy) > _QUEUES_MAX:
        table.add_row(Text(f"and {len(busy) - _QUEUES_MAX} more", "dim"))
    if not busy:
        table.add_row(Text("all idle", "dim"))
    return table


def _largest(queue: Queue) -> tuple[RenderableType, Text]:
    """A bar and the amounts of the resource of which the queue uses most of its share."""
    shares = {amounts.resource: share_of(amounts) for amounts in queue.status.resources}
    resource = max(
        (resource for resource, share in shares.items() if share.whole),
        key=lambda resource: shares[resource].part,
        default=None,
    )
    if resource is None:
        return Text(""), Text("")
    share = shares[resource]
    used, of = shortened(resource, share.used), shortened(resource, share.whole)
    drawn = bar(share.part, 1.0, _WIDTH, "yellow" if share.part > 1 else "green")
    return drawn, Text(f"{used} of {of} {resource}", "dim")


#: Services answer within milliseconds; a busy planner answers between two cycles.
_ANSWERS_S: Final = 0.5

Round: TypeAlias = tuple[Report, Sequence[Queue] | None, float]
"""A report, the queues (None: no planner answers), and the seconds since the previous round."""


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

    For operators: all services answer over NATS, also while Tutti's API does not. Users list
    `kubectl get instances.visibility.tutti.dev`. Exits with status 1 when a required service is
    missing or not ready.
    """
    if watch:
        run(_watch(services, interval_s, output), interrupted=0)
    collected = run(_collect(services, interval_s), interrupted=0)
    print_report(collected, output, lambda: show(collected, report_console(), datetime.now(UTC)))
    sys.exit(0 if collected.ready else 1)


async def _collect(services: ServiceBus, interval_s: float) -> Report:
    async with services.connected("tutti-status") as bus:
        started_s = time.monotonic()
        first = await ask_services(bus, _ANSWERS_S)
        await asyncio.sleep(max(0.0, interval_s - (time.monotonic() - started_s)))
        seconds = time.monotonic() - started_s
        second = await ask_services(bus, _ANSWERS_S)
        streams = [await _stream(bus, name) for name in STREAMS]
    return report(first, second, seconds, streams, await _store_problem(services))


async def _watch(services: ServiceBus, interval_s: float, output: str) -> NoReturn:
    """Show a report per interval until interrupted."""
    async with services.connected("tutti-status") as bus:
        rounds = _rounds(bus, services, interval_s)
        if output == "text":
            await redraw(_screens(rounds), screen_console())
        else:
            async for last, _, _ in rounds:
                _print_data(last, output)
    raise InvariantViolation("rounds of questions", "must not end by themselves")


def _print_data(last: Report, output: str) -> None:
    """One line of JSON, or one document of YAML."""
    data = report_data(last)
    if output == "yaml":
        click.echo(f"---\n{as_yaml(data)}")
    else:
        click.echo(msgspec.json.encode(data))


async def _screens(rounds: AsyncIterator[Round]) -> AsyncIterator[RenderableType]:
    screen = StatusScreen()
    async for last, queues, seconds in rounds:
        screen.take(last, queues, seconds)
        yield screen.draw(datetime.now(UTC))


async def _rounds(bus: Bus, services: ServiceBus, interval_s: float) -> AsyncIterator[Round]:
    """Rounds without end."""
    before = None
    asked_s = time.monotonic()
    while True:
        began_s = time.monotonic()
        answers, queues = await asyncio.gather(ask_services(bus, _ANSWERS_S), _read_queues(bus))
        now_s = time.monotonic()
        seconds, asked_s = now_s - asked_s, now_s
        streams = [await _stream(bus, name) for name in STREAMS]
        problem = await _store_problem(services)
        yield report(before or answers, answers, seconds, streams, problem), queues, seconds
        before = answers
        await asyncio.sleep(max(0.0, interval_s - (time.monotonic() - began_s)))


async def _read_queues(bus: Bus) -> Sequence[Queue] | None:
    with contextlib.suppress(NoAnswer):
        return build_queues(await ask_ledger(bus, timeout_s=_ANSWERS_S), None)
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


def show(collected: Report, console: Console, now: datetime) -> None:
    style, word = ("bold green", "ready") if collected.ready else ("bold red", "not ready")
    console.print(
        Text(
            f"tutti is {word}{': ' if collected.problems else ''}{'; '.join(collected.problems)}",
            style,
        )
    )
    console.print(_services(collected, now))
    gangs = ", ".join(f"{count} {phase}" for phase, count in collected.gangs.items()) or "none"
    console.print(Text(f"gangs: {gangs}"))
    if collected.holds:
        console.print(
            Text(f"holds: capacity for {collected.holds} lost members is reserved or missing")
        )
    console.print(
        Text(
            f"decisions: {collected.decisions_per_s:g} per second; "
            f"pods bound: {collected.pods_bound_per_s:g} per second"
        )
    )
    if collected.webhook_registered is not None:
        console.print(Text(f"webhook: {'' if collected.webhook_registered else 'not '}registered"))
    for service in collected.services:
        for topic, text in service.notes.items():
            console.print(Text(f"{service.instance}: {topic}: {text}"))
    if collected.streams:
        streams = plain_table("STREAM", "RECORDS", "LAST", right=("RECORDS", "LAST"))
        for line in collected.streams:
            streams.add_row(line.stream, str(line.messages), str(line.last_seq))
        console.print(streams)


def _services(collected: Report, now: datetime) -> Table:
    table = plain_table("SERVICE", "INSTANCE", "ROLE", "READY", "SINCE", "PID", "HTTP")
    for line in collected.services:
        since = datetime.fromtimestamp(line.started_ms / 1000, UTC)
        table.add_row(
            line.service,
            line.instance,
            "active" if line.active else "standby",
            Text("yes", "green") if line.ready else Text(", ".join(line.not_ready) or "no", "red"),
            f"{int((now - since).total_seconds())} s",
            str(line.pid),
            str(line.http_port),
        )
    return table
