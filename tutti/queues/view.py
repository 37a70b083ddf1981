"""The ledger as a table: a block per queue, a line per resource."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shared.contracts.questions import LedgerAmount, LedgerAnswer, LedgerQueue, LedgerTotal
from shared.kube.quantities import format_quantity
from tutti.terminal import plain_table

_COLUMNS = ("USED", "WAITING", "PROMISED", "OWED", "DESERVED", "GUARANTEE", "LIMIT")


def show(ledger: LedgerAnswer, console: Console) -> None:
    """Print the ledger as a table; in colour where the console has colours."""
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
