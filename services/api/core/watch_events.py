"""Events of a watch as lines of JSON, of objects or of tables with one row."""

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import msgspec

from services.api.core.gang_objects import GangForms
from services.api.core.requests import ReadOptions
from services.api.core.tables import GANG_COLUMNS, Column, Table, gang_cells, row
from services.api.errors import RequestFailed, status_of
from shared.contracts.visibility import API_VERSION, ListMeta

_INITIAL_END: Final = "k8s.io/initial-events-end"

EventKind: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]
"""What happened to a gang."""


class WatchEvent(msgspec.Struct, frozen=True):
    type: str
    object: Any


_encode: Final = msgspec.json.Encoder().encode


class WatchEvents:
    """Makes the events of one watch; `now_ms` is asked for ages in tables."""

    def __init__(self, options: ReadOptions, now_ms: Callable[[], int]) -> None:
        self._options = options
        self._now_ms = now_ms
        #: Sent once.
        self._columns: tuple[Column, ...] = GANG_COLUMNS

    def event(self, kind: EventKind, forms: GangForms) -> bytes:
        """A gang changed."""
        if self._options.answer == "object":
            return _line(kind, forms.json)
        gang = forms.gang
        cells = gang_cells(gang, self._now_ms())
        gang_row = row(cells, gang.metadata, forms.json, self._options.row_object)
        return _line(kind, self._table(gang.metadata.resource_version, gang_row))

    def bookmark(self, version: str, *, initial_end: bool = False) -> bytes:
        """Everything up to a version was sent; `initial_end`: and all gangs that existed."""
        metadata: dict[str, Any] = {"resourceVersion": version}
        if initial_end:
            metadata["annotations"] = {_INITIAL_END: "true"}
        if self._options.answer == "object":
            return _line(
                "BOOKMARK", {"kind": "Gang", "apiVersion": API_VERSION, "metadata": metadata}
            )
        table_object = msgspec.to_builtins(self._table(version))
        return _line("BOOKMARK", {**table_object, "metadata": metadata})

    def error(self, failure: RequestFailed) -> bytes:
        """The watch ends."""
        return _line("ERROR", status_of(failure))

    def _table(self, version: str, *rows: Any) -> Table:
        columns, self._columns = self._columns, ()
        return Table(
            metadata=ListMeta(resource_version=version), column_definitions=columns, rows=rows
        )


def _line(kind: str, whole: object) -> bytes:
    return _encode(WatchEvent(kind, whole)) + b"\n"
