"""Tables of Queues."""

from services.api.core.tables import Column, columns
from shared.contracts.visibility import Queue

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


def queue_cells(queue: Queue, _now_ms: int) -> tuple[str | int, ...]:
    """The cells of a queue's row."""
    status = queue.status

    def each(field: str, blank: str = "0") -> str:
        shown = [
            f"{amount} {one.resource}"
            for one in status.resources
            if (amount := getattr(one, field)) not in {"", blank}
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
        # Nothing of a resource is something else than no share or limit.
        each("deserved", ""),
        each("limit", ""),
        status.message,
    )
