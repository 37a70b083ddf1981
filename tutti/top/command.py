"""`tutti top`: the queues or nodes with the highest usage, once or on a screen that is redrawn."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import TypeVar

import click
from rich.console import RenderableType
from rich.text import Text

from shared.contracts.visibility_resources import QUEUES
from shared.kube import objects
from shared.kube.client import KubeClient
from shared.kube.errors import ApiError, KubeError
from shared.kube.resources import NODES, PODS
from tutti.api.access import Access, open_client
from tutti.api.failures import explained, run
from tutti.api.fetches import list_typed
from tutti.api.flags import access_flags, objects_flag, report_flag
from tutti.api.output import print_objects, print_report
from tutti.client.asynchronous import AsyncClient
from tutti.client.errors import ApiNotServed
from tutti.service_access import QueueReport, is_passing, reached, read_queues
from tutti.service_bus import NoStandby, ServiceBus, service_options
from tutti.terminal import drawing_width, redraw, report_console
from tutti.top.tables import NodeUse, by_share, of_nodes, of_queues, uses

T = TypeVar("T")

_watch = click.option("--watch", "-w", is_flag=True, help="Refresh on one screen until Ctrl-C.")
_interval = click.option(
    "--interval",
    "interval_s",
    default=2.0,
    show_default=True,
    type=click.FloatRange(0.5, 60.0),
    help="Seconds between refreshes with --watch.",
)


@click.group()
def top() -> None:
    """Show the queues or nodes with the highest usage."""


@top.command()
@service_options
@_watch
@_interval
@objects_flag
def queues(*, services: ServiceBus, watch: bool, interval_s: float, output: str) -> None:
    """Show queues, those that use the largest part of their share first.

    The share is what a queue deserves while other queues want theirs, otherwise its limit. Tutti's
    API answers, or the standby planner over NATS.
    """

    def print_data(found: QueueReport) -> None:
        print_objects(QUEUES, found.queues, output, lambda: None)

    def draw(found: QueueReport, width: int) -> RenderableType:
        return of_queues(found.ledger, width)

    async def show() -> None:
        async with reached(services, "tutti-top", QUEUES) as way:
            data = print_data if output != "text" else None
            await _show(partial(read_queues, way), draw, data, interval_s if watch else None)

    run(show(), interrupted=0)


@top.command()
@access_flags
@click.option(
    "--sort-by",
    default="cpu",
    show_default=True,
    metavar="RESOURCE",
    help="Nodes that use the largest part of this resource first; `name`: by name.",
)
@_watch
@_interval
@report_flag
def nodes(*, access: Access, sort_by: str, watch: bool, interval_s: float, output: str) -> None:
    """Show the requests of the pods on each node, and their gangs.

    Needs the right to list nodes and pods.
    """

    def print_data(found: list[NodeUse]) -> None:
        print_report(found, output, lambda: None)

    async def show() -> None:
        async with open_client(access) as client:
            read = partial(_uses, client, sort_by)
            data = print_data if output != "text" else None
            await _show(read, of_nodes, data, interval_s if watch else None)

    run(show())


async def _show(
    read: Callable[[], Awaitable[T]],
    draw: Callable[[T, int], RenderableType],
    print_data: Callable[[T], None] | None,
    interval_s: float | None,
) -> None:
    """Print a table or data once, or show a table per interval without end."""
    if interval_s is None and print_data is not None:
        print_data(await read())
    else:
        console = report_console()
        await redraw(_frames(read, draw, drawing_width(console), interval_s), console)


async def _frames(
    read: Callable[[], Awaitable[T]],
    draw: Callable[[T, int], RenderableType],
    width: int,
    interval_s: float | None,
) -> AsyncIterator[RenderableType]:
    while True:
        try:
            yield draw(await read(), width)
        except (NoStandby, ApiError) as error:
            if interval_s is None or not is_passing(error):
                raise
            yield Text(explained(error), "yellow")
        if interval_s is None:
            return
        await asyncio.sleep(interval_s)


async def _uses(client: KubeClient, sort_by: str) -> list[NodeUse]:
    async with asyncio.TaskGroup() as group:
        nodes = group.create_task(list_typed(client, NODES, objects.Node), name="nodes")
        pods = group.create_task(list_typed(client, PODS, objects.Pod), name="pods")
        titles = group.create_task(_titles(client), name="gangs")
    found = uses(nodes.result(), pods.result(), titles.result())
    return found if sort_by == "name" else by_share(found, sort_by)


async def _titles(client: KubeClient) -> dict[tuple[str, str], str]:
    """The titles of all gangs by namespace and name; none if Tutti's API does not answer."""
    try:
        gangs = await AsyncClient(kube=client).gangs(all_namespaces=True)
    except (ApiNotServed, KubeError):
        return {}
    return {(one.metadata.namespace, one.metadata.name): one.status.title for one in gangs}
