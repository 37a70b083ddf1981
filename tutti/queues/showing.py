"""The ledger as a table: a block per queue, a line per resource."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shared.contracts.questions import LedgerAmount, LedgerAnswer, LedgerQueue, LedgerTotal
from shared.kube.quantities import format_quantity

_COLUMNS = ("USED", "WAITING", "PROMISED", "OWED", "DESERVED", "GUARANTEE", "LIMIT")


def show(ledger: LedgerAnswer, console: Console) -> None:
    """Print the ledger for people; colours only where the console has them."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("QUEUE")
    table.add_column("GANGS")
    table.add_column("RESOURCE")
    cells = [_cells(one) for queue in ledger.queues for one in queue.amounts]
    # Eighty columns are few, and most clusters use two or three of these.
    shown = [at for at in range(len(_COLUMNS)) if at < 2 or any(row[at] for row in cells)]
    for at in shown:
        table.add_column(_COLUMNS[at], justify="right")
    for queue in ledger.queues:
        _add(table, queue, shown)
    console.print(table)
    if not ledger.shared:
        console.print(Text("queues do not share: neither proportion nor capacity is configured"))
    usable = [_usable(one) for one in ledger.totals]
    if usable:
        console.print(Text(f"gangs can use {', '.join(usable)}"))
    for queue in ledger.queues:
        if queue.why:
            console.print(Text(f"{queue.name}: {queue.why}"))


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


def _usable(one: LedgerTotal) -> str:
    """`12 of 20 cpu`: without what other pods take, and nodes that keep gangs out."""
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
