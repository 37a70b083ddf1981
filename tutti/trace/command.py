"""`tutti trace` as it is typed."""

import asyncio
import sys
from collections.abc import Sequence

import click
import msgspec
from rich.console import Console

from shared.bus.errors import BusError
from shared.kube.errors import KubeError
from tutti.api.failures import explained
from tutti.service_bus import NotReachable, ServiceBus, service_options
from tutti.trace import jaeger
from tutti.trace.gathering import UnknownGang, Wanted, gather, read_reference
from tutti.trace.jaeger import JaegerError
from tutti.trace.showing import show
from tutti.trace.timeline import Line, Timeline, timeline, traces


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
    help="Ask this Jaeger, too, and print links to it.  [env: TUTTI_JAEGER]",
)
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text")
def trace(*, gang: str, namespace: str, suite: ServiceBus, address: str, output: str) -> None:
    """Show what happened to a gang, and when.

    GANG is the name of a PodGroup, of a Volcano Job, NAMESPACE/NAME, or a gang's id: a PodGroup's
    UID. Ends with status 1 when no such gang is known.
    """
    wanted = read_reference(gang, namespace)
    try:
        found = asyncio.run(_ask(suite, wanted, address))
    except (BusError, KubeError, OSError, NotReachable, UnknownGang) as error:
        click.echo(f"tutti: {explained(error)}", err=True)
        sys.exit(1)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        show(found, Console(), address)


async def _ask(suite: ServiceBus, wanted: Wanted, address: str) -> Timeline:
    async with suite.connected("tutti-trace") as bus:
        story = await gather(bus, wanted)
    return timeline(story, await _told(address, traces(story)))


async def _told(address: str, trace_ids: Sequence[str]) -> list[Line]:
    """What Jaeger knows; that it cannot be asked is said, and no reason to keep the rest back."""
    if not address:
        return []
    try:
        return await jaeger.lines(address, trace_ids)
    except JaegerError as error:
        click.echo(f"tutti: {error}", err=True)
        return []
