"""Builds Queues from the planner's ledger."""

from services.api.core.gang_objects import named_gangs
from services.api.core.tables import Column, columns
from shared.contracts.questions import LedgerAmount, LedgerQueue
from shared.contracts.visibility import (
    API_VERSION,
    NamedGangs,
    ObjectMeta,
    Queue,
    QueueAmounts,
    QueueGangs,
    QueueStatus,
)
from shared.kube.quantities import format_quantity

QUEUE_COLUMNS: tuple[Column, ...] = columns(
    ("Name", "string", "Name of the queue.", 0),
    ("Parent", "string", "Queue that it is in.", 0),
    ("Running", "integer", "Gangs that have started.", 0),
    ("Waiting", "integer", "Gangs that wait for free capacity.", 0),
    ("Used", "string", "What its gangs use.", 0),
    ("Wanted", "string", "What waiting gangs request.", 0),
    ("State", "string", "Open, Closed or Closing.", 1),
    ("Deserved", "string", "Its fair share.", 1),
    ("Limit", "string", "The most that it may use.", 1),
    ("Message", "string", "What limits it.", 1),
)


def build_queue(queue: LedgerQueue, visible: frozenset[str] | None) -> Queue:
    """The object of a queue; gangs of `visible` namespaces are named (None: all)."""
    return Queue(
        api_version=API_VERSION,
        kind="Queue",
        metadata=ObjectMeta(name=queue.name),
        status=QueueStatus(
            exists=queue.exists,
            state=queue.state,
            parent=queue.parent,
            weight=queue.weight,
            priority=queue.priority,
            strict=queue.strict,
            reclaimable=queue.reclaimable,
            gangs=QueueGangs(
                running=queue.running, waiting=queue.waiting, not_admitted=queue.outside
            ),
            resources=tuple(_amounts(one) for one in queue.amounts),
            holders=visible_gangs(queue.holders, visible),
            message=queue.why,
        ),
    )


def visible_gangs(names: tuple[str, ...], visible: frozenset[str] | None) -> NamedGangs | None:
    """Gangs ("namespace/name") with the names of those in `visible` namespaces; None: none."""
    seen = [one for one in names if visible is None or one.partition("/")[0] in visible]
    return named_gangs(seen, len(names), None)


def _amounts(one: LedgerAmount) -> QueueAmounts:
    def text(amount: int | None) -> str:
        return "" if amount is None else format_quantity(one.resource, amount)

    return QueueAmounts(
        resource=one.resource,
        used=text(one.used),
        wanted=text(one.wanted),
        promised=text(one.promised),
        reserved=text(one.owed),
        guarantee=text(one.guarantee),
        deserved=text(one.deserved),
        limit=text(one.ceiling),
    )


def queue_cells(queue: Queue, _now_ms: int) -> tuple[str | int, ...]:
    """The cells of a queue's row."""
    status = queue.status

    def each(field: str) -> str:
        shown = [
            f"{getattr(one, field)} {one.resource}"
            for one in status.resources
            if getattr(one, field) not in {"", "0"}
        ]
        return ", ".join(shown) or "<none>"

    return (
        queue.metadata.name,
        status.parent or "<none>",
        status.gangs.running,
        status.gangs.waiting,
        each("used"),
        each("wanted"),
        status.state or "<none>",
        each("deserved"),
        each("limit"),
        status.message,
    )
