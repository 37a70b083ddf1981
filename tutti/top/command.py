"""`tutti top` as it is typed."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TypeVar

import click
import msgspec
from rich.console import Console, RenderableType
from rich.text import Text

from shared.bus.connection import Bus
from shared.bus.errors import BusError, NoAnswer
from shared.bus.questions import ask
from shared.contracts import codec, subjects
from shared.contracts.questions import LedgerAnswer, LedgerRequest
from shared.kube import objects
from shared.kube.client import KubeClient
from shared.kube.decoding import Undecodable
from shared.kube.errors import KubeError
from shared.kube.resources import NODES, PODS, Resource
from tutti.api.access import Access, opened
from tutti.api.failures import explained, run
from tutti.api.flags import access_flags
from tutti.redrawing import redraw
from tutti.service_bus import NotReachable, ServiceBus, service_options
from tutti.top.nodes import NodeUse, by_share, uses
from tutti.top.tables import of_nodes, of_queues

_ANSWER_S: Final = 3.0
_PAGE: Final = 500

T = TypeVar("T", bound=objects.KubeStruct)

_watch = click.option("--watch", "-w", is_flag=True, help="Go on, on one screen.")
_interval = click.option(
    "--interval",
    "interval_s",
    default=2.0,
    show_default=True,
    type=click.FloatRange(0.5, 60.0),
    help="Seconds between two looks, with --watch.",
)
_output = click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text")


@click.group()
def top() -> None:
    """Show which queues or nodes hold the most."""


@top.command()
@service_options
@_watch
@_interval
@_output
def queues(*, suite: ServiceBus, watch: bool, interval_s: float, output: str) -> None:
    """Show queues, those that hold the largest part of their share first.

    The share is what a queue deserves while others claim theirs, else its limit. The planner's
    standby answers.
    """

    async def show() -> None:
        async with suite.connected("tutti-top") as bus:
            if not watch and output == "json":
                _print_json(await _ledger(bus))
                return

            console = Console()

            async def look() -> RenderableType:
                return of_queues(await _ledger(bus), console.width)

            await redraw(_pictures(look, interval_s if watch else None), console)

    try:
        asyncio.run(show())
    except KeyboardInterrupt:
        sys.exit(0)
    except NoAnswer:
        click.echo("tutti: no standby of the planner answers", err=True)
        sys.exit(1)
    except (BusError, KubeError, OSError, NotReachable) as error:
        click.echo(f"tutti: {explained(error)}", err=True)
        sys.exit(1)


@top.command()
@access_flags
@click.option(
    "--sort-by",
    default="cpu",
    show_default=True,
    metavar="RESOURCE",
    help="Nodes with the largest part of this in use first; name: by name.",
)
@_watch
@_interval
@_output
def nodes(*, access: Access, sort_by: str, watch: bool, interval_s: float, output: str) -> None:
    """Show what the pods of each node ask for, and which gangs are there.

    Needs the right to list nodes and pods.
    """

    async def show() -> None:
        async with opened(access) as client:
            if not watch and output == "json":
                _print_json(await _uses(client, sort_by))
                return

            console = Console()

            async def look() -> RenderableType:
                return of_nodes(await _uses(client, sort_by), console.width)

            await redraw(_pictures(look, interval_s if watch else None), console)

    run(show())


async def _pictures(
    look: Callable[[], Awaitable[RenderableType]], interval_s: float | None
) -> AsyncIterator[RenderableType]:
    """One table, or one after each interval without end."""
    while True:
        try:
            yield await look()
        except NoAnswer:
            if interval_s is None:
                raise
            yield Text("no standby of the planner answers", "yellow")
        if interval_s is None:
            return
        await asyncio.sleep(interval_s)


async def _ledger(bus: Bus) -> LedgerAnswer:
    return await ask(
        bus,
        subjects.ASK_LEDGER,
        LedgerRequest(),
        codec.decode_ledger_answer,
        timeout_s=_ANSWER_S,
    )


async def _uses(client: KubeClient, sort_by: str) -> list[NodeUse]:
    async with asyncio.TaskGroup() as group:
        nodes = group.create_task(_all(client, NODES, objects.Node), name="nodes")
        pods = group.create_task(_all(client, PODS, objects.Pod), name="pods")
    found = uses(nodes.result(), pods.result())
    return found if sort_by == "name" else by_share(found, sort_by)


async def _all(client: KubeClient, resource: Resource, kind: type[T]) -> list[T]:
    found: list[T] = []
    token = ""
    while True:
        page = await client.list(resource, kind, limit=_PAGE, continue_=token)
        found.extend(one for one in page.items if not isinstance(one, Undecodable))
        token = page.metadata.continue_
        if not token:
            return found


def _print_json(found: LedgerAnswer | list[NodeUse]) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
