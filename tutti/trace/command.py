"""`tutti trace`: the timeline of one gang."""

from collections.abc import Sequence
from datetime import UTC, datetime

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shared.contracts.visibility_resources import DECISIONS
from shared.kube.errors import Forbidden
from shared.telemetry.tracing import jaeger_trace_url
from tutti.api.failures import run
from tutti.api.flags import report_flag
from tutti.api.output import print_report
from tutti.client.asynchronous import AsyncClient
from tutti.service_access import ServiceBus, reached, service_options
from tutti.terminal import report_console
from tutti.trace import jaeger
from tutti.trace.api_timeline import api_timeline
from tutti.trace.jaeger import JaegerError
from tutti.trace.records import Wanted, read_gang, read_reference
from tutti.trace.timeline import Line, Timeline, timeline, with_lines
from tutti.why.kinds import complete_reference


@click.command()
@click.argument("gang", metavar="GANG", shell_complete=complete_reference)
@click.option("--namespace", "-n", default="default", show_default=True, help="Namespace.")
@service_options
@click.option(
    "--jaeger",
    "address",
    default="",
    envvar="TUTTI_JAEGER",
    metavar="URL",
    help="Also query this Jaeger, and print links to it.  [env: TUTTI_JAEGER]",
)
@report_flag
def trace(*, gang: str, namespace: str, services: ServiceBus, address: str, output: str) -> None:
    """Show what happened to a gang, and when.

    GANG is the name of a PodGroup or of a Volcano Job, NAMESPACE/NAME, KIND/NAME as lists of gangs
    have it, or a gang's id: the UID of a PodGroup. Tutti's API has decisions and conditions; the
    records in NATS, for operators, also have what binders did, and when. Exits with status 1 when
    no such gang is known.
    """
    found = run(_read(services, read_reference(gang, namespace), address))
    print_report(found, output, lambda: show(found, report_console(), address))


async def _read(services: ServiceBus, wanted: Wanted, address: str) -> Timeline:
    async with reached(services, "tutti-trace", DECISIONS) as way:
        if isinstance(way, AsyncClient):
            wanted = await _by_title(way, wanted)
            namespace = wanted.namespace
            gangs = await way.gangs(namespace=namespace)
            found = api_timeline(wanted, gangs, await way.decisions(namespace=namespace))
        else:
            found = timeline(await read_gang(way, wanted))
    exported = await _exported(address, found.traces)
    return with_lines(found, exported)


async def _by_title(way: AsyncClient, wanted: Wanted) -> Wanted:
    """The gang that has the reference as its title, also one that is gone, if there is one; else
    the reference itself.
    """
    if not wanted.title:
        return wanted
    try:
        gangs = await way.gangs(namespace=wanted.place)
        decisions = await way.decisions(namespace=wanted.place)
    except Forbidden:
        return wanted
    titled = [one.metadata for one in gangs if one.status.title == wanted.title]
    if titled:
        return Wanted("", titled[-1].namespace, titled[-1].name)
    gone = [one.status for one in decisions if one.status.title == wanted.title]
    return Wanted(gone[-1].gang_id, wanted.place, wanted.name) if gone else wanted


async def _exported(address: str, trace_ids: Sequence[str]) -> list[Line]:
    """Lines from Jaeger; when it does not answer, that is reported, and the rest is shown."""
    if not address:
        return []
    try:
        return await jaeger.lines(address, trace_ids)
    except JaegerError as error:
        click.echo(f"tutti: {error}", err=True)
        return []


def show(found: Timeline, console: Console, address: str) -> None:
    console.print(Text(f"{found.gang} ({found.gang_id}): {found.phase}", "bold"))
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("TIME (UTC)", no_wrap=True)
    table.add_column("AFTER", justify="right", no_wrap=True)
    table.add_column("TOOK", justify="right", no_wrap=True)
    table.add_column("WHAT", no_wrap=True)
    table.add_column("DETAIL", overflow="fold")
    begun_ms = found.lines[0].at_ms if found.lines else 0
    for line in found.lines:
        table.add_row(*_cells(line, begun_ms), style="red" if line.failed else "")
    console.print(table)
    for number, trace_id in enumerate(found.traces, start=1):
        where = jaeger_trace_url(address, trace_id) if address else trace_id
        console.print(Text(f"trace {number}: {where}"), soft_wrap=True)


def _cells(line: Line, begun_ms: int) -> tuple[str, str, str, str, Text]:
    at = datetime.fromtimestamp(line.at_ms / 1000, UTC)
    return (
        at.strftime("%H:%M:%S.") + f"{line.at_ms % 1000:03d}",
        f"+{_duration(line.at_ms - begun_ms)}",
        _duration(line.took_ms) if line.took_ms > 0 else "",
        line.what,
        Text(line.detail),
    )


def _duration(ms: int) -> str:
    return f"{ms} ms" if ms < 10_000 else f"{ms / 1000:.1f} s"
