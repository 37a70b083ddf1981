"""`tutti queues`: what queues use, deserve and wait for."""

from collections.abc import Iterator, Sequence

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shared.contracts.visibility import Queue, QueueAmounts
from shared.contracts.visibility_resources import QUEUES
from shared.kube.quantities import amount
from shared.kube.resources import QUEUES_VOLCANO
from tutti.api.access import Access, open_client
from tutti.api.failures import Refusal, run
from tutti.api.flags import access_flags, completion, objects_flag
from tutti.api.output import print_objects
from tutti.client.asynchronous import AsyncClient
from tutti.nodes_command import interval_flag, of_queues, show_table, watch_flag
from tutti.terminal import plain_table, report_console

_PODS = "pods"
_COLUMNS = ("USED", "WAITING", "PROMISED", "OWED", "DESERVED", "GUARANTEE", "LIMIT")


@click.command()
@click.argument(
    "names",
    nargs=-1,
    metavar="[QUEUE]...",
    shell_complete=completion(QUEUES_VOLCANO),
)
@access_flags
@click.option(
    "--shares",
    is_flag=True,
    help="Draw the part of its share that each queue uses, the largest part first.",
)
@watch_flag
@interval_flag
@objects_flag
def queues(
    *,
    names: tuple[str, ...],
    access: Access,
    shares: bool,
    watch: bool,
    interval_s: float,
    output: str,
) -> None:
    """Show what each queue uses, deserves and has reserved, and why.

    With --shares or --watch, show the part of its share that each queue uses. The share is what a
    queue deserves while other queues want theirs, otherwise its limit.

    Tutti's API answers. Exits with status 2 when it does not, or a queue is unknown. `kubectl
    create -f` and `kubectl delete queue` create and delete queues, `vcctl queue operate` closes and
    opens them.
    """
    if watch or (shares and output == "text"):
        run(_show_shares(access, names, interval_s if watch else None), interrupted=0)
    else:
        chosen = run(_read(access, names))
        print_objects(QUEUES, chosen, output, lambda: show(chosen, report_console()))


async def _show_shares(access: Access, names: tuple[str, ...], interval_s: float | None) -> None:
    async with open_client(access) as kube:
        client = AsyncClient(kube=kube)

        async def read() -> Sequence[Queue]:
            return _chosen(names, await client.queues())

        await show_table(read, of_queues, interval_s)


async def _read(access: Access, names: tuple[str, ...]) -> Sequence[Queue]:
    async with open_client(access) as kube:
        return _chosen(names, await AsyncClient(kube=kube).queues())


def _chosen(names: Sequence[str], queues: Sequence[Queue]) -> Sequence[Queue]:
    """The named queues, or all. Raises Refusal for a queue that is not there."""
    unknown = sorted(set(names) - {queue.metadata.name for queue in queues})
    if unknown:
        raise Refusal(f"no queue {', '.join(unknown)}")
    return [queue for queue in queues if not names or queue.metadata.name in names]


def show(queues: Sequence[Queue], console: Console) -> None:
    cells = [_cells(amounts) for queue in queues for amounts in queue.status.resources]
    # Most clusters use two or three of these, and a terminal may have 80 columns only.
    shown = [at for at in range(len(_COLUMNS)) if at < 2 or any(row[at] for row in cells)]
    titles = [_COLUMNS[at] for at in shown]
    table = plain_table("QUEUE", "GANGS", "RESOURCE", *titles, right=titles)
    for queue in queues:
        _add(table, queue, shown)
    console.print(table)
    if not all(queue.status.shared for queue in queues):
        console.print(Text("queues have no shares: neither proportion nor capacity is configured"))
    usable = _usable(queues)
    if usable:
        console.print(Text(f"gangs can use {', '.join(usable)}"))
    for queue in queues:
        if queue.status.message:
            console.print(Text(f"{queue.metadata.name}: {queue.status.message}"))
    for queue in queues:
        for line in reservations(queue):
            console.print(Text(line), soft_wrap=True)


def _add(table: Table, queue: Queue, shown: Sequence[int]) -> None:
    status = queue.status
    name = f"{status.parent}/{queue.metadata.name}" if status.parent else queue.metadata.name
    if status.state not in {"", "Open"}:
        name += f" ({status.state})"
    gangs = f"{status.gangs.running} run, {status.gangs.waiting} wait"
    if status.gangs.not_admitted:
        gangs += f", {status.gangs.not_admitted} outside"
    if not status.resources:
        table.add_row(name, gangs)
    for index, amounts in enumerate(status.resources):
        first = (name, gangs) if index == 0 else ("", "")
        cells, style = _cells(amounts), "red" if _is_above_share(amounts) else ""
        table.add_row(*first, amounts.resource, *(Text(cells[at], style) for at in shown))


def _is_above_share(amounts: QueueAmounts) -> bool:
    resource, deserved = amounts.resource, amounts.deserved
    return bool(deserved) and amount(resource, amounts.used) > amount(resource, deserved)


def reservations(queue: Queue) -> Iterator[str]:
    """A line for each reservation of a queue: its owner, amounts, reason and end."""
    name, status = queue.metadata.name, queue.status
    for kept in status.reservations:
        amounts = [
            f"{text} {resource}" for resource, text in kept.resources.items() if resource != _PODS
        ]
        gang = kept.gang or "a gang of another namespace"
        until = f" until {kept.until:%Y-%m-%d %H:%M:%S} UTC" if kept.until is not None else ""
        yield f"{name}: {', '.join(amounts)} reserved for {gang} ({kept.reason}){until}"
    more = status.reservations_count - len(status.reservations)
    if more > 0:
        yield f"{name}: {more} more reservations"


def _usable(queues: Sequence[Queue]) -> list[str]:
    """`12 of 20 cpu`: of each resource by name what gangs can use, and what nodes have."""
    totals = {
        amounts.resource: f"{amounts.usable} of {amounts.cluster} {amounts.resource}"
        for queue in queues
        for amounts in queue.status.resources
        # An API service of an older version has neither.
        if amounts.cluster and amounts.usable
    }
    return [totals[resource] for resource in sorted(totals)]


def _cells(amounts: QueueAmounts) -> list[str]:
    """The cells of `_COLUMNS`: only of usage, share and limit nothing is something."""
    blank = {"0": ""}
    return [
        amounts.used,
        blank.get(amounts.wanted, amounts.wanted),
        blank.get(amounts.promised, amounts.promised),
        blank.get(amounts.reserved, amounts.reserved),
        amounts.deserved,
        blank.get(amounts.guarantee, amounts.guarantee),
        amounts.limit,
    ]
