"""`tutti queues`: what queues use, deserve and wait for."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shared.contracts.questions import LedgerAmount, LedgerAnswer, LedgerQueue, LedgerTotal
from shared.contracts.visibility import Queue
from shared.contracts.visibility_resources import QUEUES
from shared.kube.errors import MalformedAnswer
from shared.kube.quantities import QuantityError, format_quantity
from shared.kube.resources import QUEUES_VOLCANO
from shared.visible_objects import ledger_of
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
        found = run(_read(access, names))
        print_objects(QUEUES, found.queues, output, lambda: show(found.ledger, report_console()))


class QueueReport(msgspec.Struct, frozen=True, kw_only=True):
    """All queues, as the API has them, and as the planner answers."""

    queues: tuple[Queue, ...]
    ledger: LedgerAnswer


async def read_queues(client: AsyncClient) -> QueueReport:
    """All queues. Raises KubeError."""
    queues = await client.queues()
    try:
        return QueueReport(queues=tuple(queues), ledger=ledger_of(queues))
    except QuantityError as error:
        raise MalformedAnswer(f"queues: {error}") from None


async def _show_shares(access: Access, names: tuple[str, ...], interval_s: float | None) -> None:
    async with open_client(access) as kube:
        client = AsyncClient(kube=kube)

        async def read() -> LedgerAnswer:
            return _chosen(names, await read_queues(client)).ledger

        await show_table(read, of_queues, interval_s)


async def _read(access: Access, names: tuple[str, ...]) -> QueueReport:
    async with open_client(access) as kube:
        return _chosen(names, await read_queues(AsyncClient(kube=kube)))


def _chosen(names: Sequence[str], found: QueueReport) -> QueueReport:
    """The report on the named queues, or on all. Raises Refusal for a queue that is not in it."""
    unknown = sorted(set(names) - {one.name for one in found.ledger.queues})
    if unknown:
        raise Refusal(f"no queue {', '.join(unknown)}")
    if not names:
        return found
    ledger = found.ledger
    chosen = tuple(one for one in ledger.queues if one.name in names)
    return QueueReport(
        queues=tuple(one for one in found.queues if one.metadata.name in names),
        ledger=msgspec.structs.replace(ledger, queues=chosen),
    )


def show(ledger: LedgerAnswer, console: Console) -> None:
    cells = [_cells(one) for queue in ledger.queues for one in queue.amounts]
    # Most clusters use two or three of these, and a terminal may have 80 columns only.
    shown = [at for at in range(len(_COLUMNS)) if at < 2 or any(row[at] for row in cells)]
    titles = [_COLUMNS[at] for at in shown]
    table = plain_table("QUEUE", "GANGS", "RESOURCE", *titles, right=titles)
    for queue in ledger.queues:
        _add(table, queue, shown)
    console.print(table)
    if not ledger.shared:
        console.print(Text("queues have no shares: neither proportion nor capacity is configured"))
    usable = [_usable(one) for one in ledger.totals]
    if usable:
        console.print(Text(f"gangs can use {', '.join(usable)}"))
    for queue in ledger.queues:
        if queue.why:
            console.print(Text(f"{queue.name}: {queue.why}"))
    for queue in ledger.queues:
        for line in reservations(queue):
            console.print(Text(line), soft_wrap=True)


def _add(table: Table, queue: LedgerQueue, shown: Sequence[int]) -> None:
    name = f"{queue.parent}/{queue.name}" if queue.parent else queue.name
    if queue.state not in {"", "Open"}:
        name += f" ({queue.state})"
    gangs = f"{queue.running} run, {queue.waiting} wait"
    if queue.outside:
        gangs += f", {queue.outside} outside"
    if not queue.amounts:
        table.add_row(name, gangs)
    for index, one in enumerate(queue.amounts):
        style = "red" if one.deserved is not None and one.used > one.deserved else ""
        first = (name, gangs) if index == 0 else ("", "")
        cells = _cells(one)
        table.add_row(*first, one.resource, *(Text(cells[at], style) for at in shown))


def reservations(queue: LedgerQueue) -> Iterator[str]:
    """A line for each reservation of a queue: its owner, amounts, reason and end."""
    for one in queue.reservations:
        amounts = [
            f"{format_quantity(name, amount)} {name}"
            for name, amount in one.amounts
            if name != _PODS
        ]
        gang = one.gang or "a gang of another namespace"
        until = ""
        if one.until_ms > 0:
            until = (
                f" until {datetime.fromtimestamp(one.until_ms / 1_000, UTC):%Y-%m-%d %H:%M:%S} UTC"
            )
        yield f"{queue.name}: {', '.join(amounts)} reserved for {gang} ({one.reason}){until}"
    more = queue.reservations_count - len(queue.reservations)
    if more > 0:
        yield f"{queue.name}: {more} more reservations"


def _usable(one: LedgerTotal) -> str:
    """`12 of 20 cpu`: without other pods' usage and nodes that gangs cannot use."""
    usable = format_quantity(one.resource, one.usable)
    return f"{usable} of {format_quantity(one.resource, one.total)} {one.resource}"


def _cells(one: LedgerAmount) -> list[str]:
    amounts = (
        one.used,
        one.wanted or None,
        one.promised or None,
        one.owed or None,
        one.deserved,
        one.guarantee or None,
        one.ceiling,
    )
    return ["" if each is None else format_quantity(one.resource, each) for each in amounts]
