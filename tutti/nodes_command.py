"""`tutti nodes` and `tutti queues --shares`: the nodes or queues with the highest usage, once or on
a screen that is redrawn.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar

import click
import msgspec
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from shared.contracts.visibility import Gang, Node, Queue, QueueAmounts
from shared.kube.errors import ApiError
from shared.kube.quantities import amount
from shared.kube.requests import PODS as POD_COUNT
from tutti.api.access import Access, open_client
from tutti.api.failures import explained, running
from tutti.api.flags import access_flags, report_flag
from tutti.api.output import print_report
from tutti.client.asynchronous import AsyncClient
from tutti.terminal import bar, cut, drawing_width, redraw, report_console, shortened

#: Maximum number of rows; further ones are counted.
ROWS_MAX: Final = 200
_BAR: Final = 16
_BAR_LEAST: Final = 4
_NAME_MAX: Final = 40
#: Console width in which no table is wrapped.
_RULER: Final = 10_000
_GANGS_MAX: Final = 2
_UNAVAILABLE: Final = 503
#: Resources that the table of nodes leaves out.
_QUIET: Final = frozenset({"pods", "ephemeral-storage"})


class ResourceUse(msgspec.Struct, frozen=True, kw_only=True):
    """One resource of one node, in the model's units."""

    resource: str
    used: int
    allocatable: int

    @property
    def share(self) -> float:
        """The part in use; above 1 if the node has shrunk below the requests of its pods."""
        if self.allocatable <= 0:
            return 1.0 if self.used else 0.0
        return self.used / self.allocatable


class NodeUse(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    #: "Ready", "NotReady", and ",cordoned" behind it.
    state: str
    #: cpu and memory, then devices by name, then pods.
    resources: tuple[ResourceUse, ...]
    #: "namespace/title" of the gangs with members on it, those with most members first.
    gangs: tuple[str, ...] = ()

    def use(self, resource: str) -> ResourceUse | None:
        """The use of one resource; None: the node has none."""
        return next((use for use in self.resources if use.resource == resource), None)


def uses(nodes: Iterable[Node], gangs: Iterable[Gang]) -> list[NodeUse]:
    """Every node, by name, with those of the gangs that have not completed."""
    members: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for gang in gangs:
        if gang.status.phase != "Completed":
            title = f"{gang.metadata.namespace}/{gang.status.title or gang.metadata.name}"
            for placed in gang.status.placement:
                members[placed.node][title] += placed.members
    return sorted(
        (_use(node, members[node.metadata.name]) for node in nodes), key=lambda use: use.name
    )


def by_share(nodes: Iterable[NodeUse], resource: str) -> list[NodeUse]:
    """Nodes sorted by the part of a resource in use, largest first; nodes without it last."""

    def key(node: NodeUse) -> tuple[bool, float, str]:
        use = node.use(resource)
        return use is None, -(use.share if use is not None else 0.0), node.name

    return sorted(nodes, key=key)


def _use(node: Node, members: Counter[str]) -> NodeUse:
    state = "Ready" if node.status.ready else "NotReady"
    resources = (
        ResourceUse(
            resource=amounts.resource,
            used=amount(amounts.resource, amounts.requested),
            allocatable=amount(amounts.resource, amounts.allocatable),
        )
        for amounts in node.status.resources
    )
    return NodeUse(
        name=node.metadata.name,
        state=state if node.status.schedulable else f"{state},cordoned",
        resources=tuple(
            use for use in sorted(resources, key=_place) if use.allocatable or use.used
        ),
        gangs=tuple(sorted(members, key=lambda gang: (-members[gang], gang))),
    )


def _place(use: ResourceUse) -> tuple[int, str]:
    order = {"cpu": 0, "memory": 1, POD_COUNT: 3}
    return order.get(use.resource, 2), use.resource


def of_queues(queues: Sequence[Queue], width: int = 160) -> RenderableType:
    """A table of queues, sorted by the part of their share in use, with a row per resource;
    `width` in characters.
    """
    ranked = sorted(queues, key=lambda queue: (-_largest(queue), queue.metadata.name))

    def drawn(style: _Style) -> Table:
        table = _table(
            style, "QUEUE", "RUN", "WAIT", "RESOURCE", "SHARE", "", "USED", "OF", "WAITING"
        )
        for queue in ranked[:ROWS_MAX]:
            gangs = queue.status.gangs
            name = cut(queue.metadata.name, style.name_max)
            head = (name, str(gangs.running), str(gangs.waiting + gangs.not_admitted))
            if not queue.status.resources:
                table.add_row(*head)
            for index, amounts in enumerate(queue.status.resources):
                table.add_row(*(head if index == 0 else ("", "", "")), *_cells(amounts, style))
        _count_rest(table, len(ranked))
        return table

    return _fitted(drawn, width)


def of_nodes(nodes: Sequence[NodeUse], width: int = 160) -> RenderableType:
    """A table of nodes in the given order, with a bar per resource; `width` in characters."""
    resources = list(
        dict.fromkeys(
            use.resource for node in nodes for use in node.resources if use.resource not in _QUIET
        )
    )

    def drawn(style: _Style) -> Table:
        titles = (cut(name.upper(), style.name_max) for name in resources)
        table = _table(style, "NODE", "STATE", *titles, "PODS", "GANGS")
        for node in nodes[:ROWS_MAX]:
            pods = node.use("pods")
            table.add_row(
                cut(node.name, style.name_max),
                Text(node.state, "green" if node.state == "Ready" else "yellow"),
                *(_drawn(node.use(resource), style.bar) for resource in resources),
                str(pods.used if pods is not None else 0),
                cut(_named(node.gangs), style.name_max * 2),
            )
        _count_rest(table, len(nodes))
        return table

    return _fitted(drawn, width)


class _Style(NamedTuple):
    """The parts of a table that shrink on a narrow terminal; figures never do."""

    #: Characters of a bar.
    bar: int
    #: Characters of a name.
    name_max: int
    #: Characters between columns.
    gap: int


#: From the widest to the narrowest.
_STYLES: Final = (
    _Style(_BAR, _NAME_MAX, 2),
    _Style(8, _NAME_MAX, 2),
    _Style(_BAR_LEAST, 24, 1),
    _Style(_BAR_LEAST, 16, 1),
    _Style(0, 16, 1),
    _Style(0, 10, 1),
)


def _fitted(drawn: Callable[[_Style], Table], width: int) -> Table:
    """The table in the widest style that fits, else in the narrowest."""
    ruler = Console(width=_RULER)
    for style in _STYLES[:-1]:
        table = drawn(style)
        if ruler.measure(table).maximum <= width:
            return table
    return drawn(_STYLES[-1])


def _table(style: _Style, *titles: str) -> Table:
    table = Table(box=None, padding=(0, style.gap, 0, 0), header_style="bold")
    for title in titles:
        table.add_column(title, no_wrap=True)
    return table


def _count_rest(table: Table, rows: int) -> None:
    if rows > ROWS_MAX:
        table.add_row(Text(f"and {rows - ROWS_MAX} more", "dim"))


class Share(NamedTuple):
    """What a queue uses of a resource, in the model's units, and of how much: what it deserves,
    otherwise its limit. 0: it has neither.
    """

    used: int
    whole: int

    @property
    def part(self) -> float:
        return self.used / self.whole if self.whole else 0.0


def share_of(amounts: QueueAmounts) -> Share:
    whole = amounts.deserved or amounts.limit or "0"
    return Share(amount(amounts.resource, amounts.used), amount(amounts.resource, whole))


def _largest(queue: Queue) -> float:
    return max((share_of(amounts).part for amounts in queue.status.resources), default=0.0)


def _cells(amounts: QueueAmounts, style: _Style) -> tuple[RenderableType, ...]:
    share, resource = share_of(amounts), amounts.resource
    wanted = amount(resource, amounts.wanted)
    colour = "yellow" if share.part > 1 else "green"
    return (
        cut(resource, style.name_max),
        bar(share.part, 1.0, style.bar, colour) if share.whole and style.bar else "",
        f"{share.part:.0%}" if share.whole else "",
        shortened(resource, share.used),
        shortened(resource, share.whole) if share.whole else "",
        Text(shortened(resource, wanted) if wanted else "", "yellow"),
    )


def _drawn(use: ResourceUse | None, width: int) -> RenderableType:
    if use is None:
        return Text("-", "dim")
    colour = "red" if use.share > 1 else "yellow" if use.share > 0.9 else "green"
    drawn = bar(use.share, 1.0, width, colour) if width else Text()
    used, of = shortened(use.resource, use.used), shortened(use.resource, use.allocatable)
    return drawn.append(f"{' ' if width else ''}{used}/{of}", "dim" if width else colour)


def _named(gangs: Sequence[str]) -> str:
    named = ", ".join(gangs[:_GANGS_MAX])
    more = len(gangs) - _GANGS_MAX
    return f"{named} +{more}" if more > 0 else named


T = TypeVar("T")

watch_flag = click.option("--watch", "-w", is_flag=True, help="Refresh on one screen until Ctrl-C.")
interval_flag = click.option(
    "--interval",
    "interval_s",
    default=2.0,
    show_default=True,
    type=click.FloatRange(0.5, 60.0),
    help="Seconds between refreshes with --watch.",
)


@click.command()
@access_flags
@click.option(
    "--sort-by",
    default="cpu",
    show_default=True,
    metavar="RESOURCE",
    help="Nodes that use the largest part of this resource first; `name`: by name.",
)
@watch_flag
@interval_flag
@report_flag
@running(interrupted=0)
async def nodes(
    *, access: Access, sort_by: str, watch: bool, interval_s: float, output: str
) -> None:
    """Show the requests of the pods on each node, and their gangs.

    Tutti's API answers users who may list nodes; gangs are shown in namespaces whose pods they may
    list. Exits with status 2 when it does not answer.
    """
    async with open_client(access) as kube:
        client = AsyncClient(kube=kube)
        if watch or output == "text":
            read = partial(_uses, client, sort_by)
            await show_table(read, of_nodes, interval_s if watch else None)
        else:
            print_report(await _uses(client, sort_by), output, lambda: None)


async def show_table(
    read: Callable[[], Awaitable[T]],
    draw: Callable[[T, int], RenderableType],
    interval_s: float | None,
) -> None:
    """Print a table that `draw` makes for a width, once or per interval without end."""
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
        except ApiError as error:
            # The next round may succeed: no planner answers.
            if interval_s is None or error.status != _UNAVAILABLE:
                raise
            yield Text(explained(error), "yellow")
        if interval_s is None:
            return
        await asyncio.sleep(interval_s)


async def _uses(client: AsyncClient, sort_by: str) -> list[NodeUse]:
    async with asyncio.TaskGroup() as group:
        nodes = group.create_task(client.nodes(), name="nodes")
        gangs = group.create_task(client.gangs(all_namespaces=True), name="gangs")
    read = uses(nodes.result(), gangs.result())
    return read if sort_by == "name" else by_share(read, sort_by)
