"""Tables of objects, as kubectl prints them (`meta.k8s.io/v1`)."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from services.api.core.requests import RowObject
from shared.contracts.visibility import ExpectedStart, Gang, ListMeta, ObjectMeta
from shared.kube.ages import span


class Column(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A column. Priority 0: always shown; 1: with `-o wide`."""

    name: str
    type: str = "string"
    format: str = ""
    description: str
    priority: int = 0


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row: its cells, and the object or its metadata."""

    cells: tuple[str | int, ...]
    object: Any = None


class Table(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A table; `column_definitions` is empty in all events of a watch but the first."""

    kind: str = "Table"
    api_version: str = "meta.k8s.io/v1"
    metadata: ListMeta
    column_definitions: tuple[Column, ...]
    rows: tuple[Row, ...]


class PartialObject(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An object without anything but its metadata."""

    kind: str = "PartialObjectMetadata"
    api_version: str = "meta.k8s.io/v1"
    metadata: ObjectMeta


def columns(*given: tuple[str, str, str, int]) -> tuple[Column, ...]:
    """Columns: name, type, description and priority of each."""
    return tuple(
        Column(
            name=name,
            type=kind,
            format="name" if name == "Name" else "",
            description=text,
            priority=priority,
        )
        for name, kind, text, priority in given
    )


_NODES_SHOWN_MAX: Final = 3

GANG_COLUMNS: Final = columns(
    ("Name", "string", "Name of the gang.", 0),
    ("Phase", "string", "Phase of the gang.", 0),
    ("Running", "string", "Running members, and all members.", 0),
    ("Minimum", "integer", "Members that start together.", 0),
    ("Queue", "string", "Queue of the gang.", 0),
    ("Reason", "string", "Why it waits.", 0),
    ("Expected", "string", "In how long it is expected to start: at the earliest and latest.", 0),
    ("Age", "string", "Time since it was first seen.", 0),
    ("Gang", "string", "Its name for users: the object that its user created.", 0),
    ("Position", "string", "Its place among the waiting gangs of its queue.", 1),
    ("API", "string", "API of its group.", 1),
    ("Nodes", "string", "Nodes of its members.", 1),
    ("Message", "string", "Why it waits, in a sentence.", 1),
)


def gang_cells(gang: Gang, now_ms: int) -> tuple[str | int, ...]:
    """The cells of a gang's row."""
    status = gang.status
    nodes = [placed.node for placed in status.placement[:_NODES_SHOWN_MAX]]
    more = len(status.placement) - len(nodes)
    return (
        gang.metadata.name,
        status.phase,
        f"{status.members.running}/{status.members.total}",
        status.min_member,
        status.queue,
        status.pending.reason if status.pending is not None else "",
        _expected(status.expected_start, now_ms),
        age(gang.metadata.creation_timestamp, now_ms),
        status.title,
        "<none>" if status.position is None else str(status.position),
        status.dialect or "<none>",
        ",".join([*nodes, *([f"{more} more"] if more > 0 else [])]) or "<none>",
        status.pending.message if status.pending is not None else "",
    )


def _expected(start: ExpectedStart | None, now_ms: int) -> str:
    """Spans until a start, as `12m-57m`; 0s: that instant has passed."""
    if start is None:
        return ""
    if start.earliest is None or start.latest is None:
        return "<unknown>"
    earliest, latest = (
        span(max(0, int(at.timestamp() - now_ms / 1000))) for at in (start.earliest, start.latest)
    )
    return earliest if earliest == latest else f"{earliest}-{latest}"


def age(instant: datetime | None, now_ms: int) -> str:
    """How long ago an instant was, as kubectl writes it."""
    if instant is None:
        return "<unknown>"
    return span(int((datetime.fromtimestamp(now_ms / 1000, UTC) - instant).total_seconds()))


def row(
    cells: tuple[str | int, ...],
    metadata: ObjectMeta,
    whole: msgspec.Raw,
    row_object: RowObject,
) -> Row:
    """A row with the object that was asked for."""
    match row_object:
        case "None":
            return Row(cells=cells)
        case "Metadata":
            return Row(cells=cells, object=PartialObject(metadata=metadata))
        case "Object":
            return Row(cells=cells, object=whole)


def table(head: tuple[Column, ...], rows: Iterable[Row], metadata: ListMeta) -> Table:
    return Table(metadata=metadata, column_definitions=head, rows=tuple(rows))


Cells = Callable[[Any, int], tuple[str | int, ...]]
"""The cells of an object's row, at an instant."""
