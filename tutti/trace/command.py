"""`tutti trace`: the timeline of one gang."""

from collections.abc import Sequence

import click
from rich.console import Console

from tutti.api.failures import run
from tutti.api.flags import report_flag
from tutti.api.output import echo_json
from tutti.service_bus import ServiceBus, service_options
from tutti.trace import jaeger
from tutti.trace.jaeger import JaegerError
from tutti.trace.records import Wanted, read_gang, read_reference
from tutti.trace.timeline import Line, Timeline, timeline, traces
from tutti.trace.view import show


@click.command()
@click.argument("gang", metavar="GANG")
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

    GANG is the name of a PodGroup or of a Volcano Job, NAMESPACE/NAME, or a gang's id: the UID of
    a PodGroup. Exits with status 1 when no such gang is known.
    """
    found = run(_read(services, read_reference(gang, namespace), address))
    if output == "json":
        echo_json(found)
    else:
        show(found, Console(), address)


async def _read(services: ServiceBus, wanted: Wanted, address: str) -> Timeline:
    async with services.connected("tutti-trace") as bus:
        records = await read_gang(bus, wanted)
    return timeline(records, await _exported(address, traces(records)))


async def _exported(address: str, trace_ids: Sequence[str]) -> list[Line]:
    """Lines from Jaeger; when it does not answer, that is reported, and the rest is shown."""
    if not address:
        return []
    try:
        return await jaeger.lines(address, trace_ids)
    except JaegerError as error:
        click.echo(f"tutti: {error}", err=True)
        return []
