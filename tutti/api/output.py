"""Prints objects and reports: as a table, by name, as JSON or as YAML.

The widths of tables are those of Volcano, so that `vcctl ... list` gives the same bytes; where a
cell would touch its neighbour there, the column grows instead.

Reports are structs of the commands and of messages, whose fields are in snake case and end in the
unit of a number. For programs their names are in camelCase and times in RFC 3339, as in Kubernetes
objects: an instant (`at_ms`) becomes a time (`at`), a duration in seconds (`silent_s`) has the unit
in full (`silentSeconds`).
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, Literal, Protocol, TypeAlias, get_args

import click
import msgspec

from shared.contracts.visibility import API_VERSION, GROUP, ObjectMeta
from shared.contracts.visibility_resources import ServedResource
from shared.kube.resources import Resource
from tutti.api.conventions import conventions
from tutti.api.objects import Object, name_of, without_managed_fields

#: Numbers of milliseconds that are durations; all other ones are instants since the epoch.
_DURATIONS: Final = frozenset({"took_ms", "partial_ms"})


def report_data(content: object) -> Any:
    """Objects, lists and plain values, as JSON and YAML have them.

    Keys of mappings (labels, names of resources) stay as they are. Of structs, fields are left out
    that have their default, if the struct leaves them out; and instants that are not known (0).
    """
    match content:
        case msgspec.Struct():
            return _struct(content)
        case Mapping():
            return {key: report_data(value) for key, value in content.items()}
        case None | str() | int() | float() | bool():
            return content
        case Sequence() | set() | frozenset():
            return [report_data(item) for item in content]
        case _:
            return msgspec.to_builtins(content)


def _struct(struct: msgspec.Struct) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for field in _fields(type(struct)):
        value = getattr(struct, field.name)
        if struct.__struct_config__.omit_defaults and _is_default(field, value):
            continue
        if field.name.endswith("_ms") and field.name not in _DURATIONS:
            if value:
                data[_name(field)] = _instant(value)
        else:
            data[_name(field)] = report_data(value)
    return data


def _is_default(field: msgspec.structs.FieldInfo, value: object) -> bool:
    if field.default_factory is not msgspec.NODEFAULT:
        return bool(value == field.default_factory())
    return field.default is not msgspec.NODEFAULT and bool(value == field.default)


def _name(field: msgspec.structs.FieldInfo) -> str:
    if field.encode_name != field.name:
        return field.encode_name
    name = field.name
    if name in _DURATIONS:
        name = f"{name.removesuffix('_ms')}_milliseconds"
    elif name.endswith("_per_s"):
        name = f"{name.removesuffix('_s')}_second"
    elif name.endswith("_s"):
        name = f"{name.removesuffix('_s')}_seconds"
    first, *rest = name.removesuffix("_ms").split("_")
    return first + "".join(map(str.capitalize, rest))


def _instant(at_ms: int) -> str:
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


Format: TypeAlias = Literal["text", "wide", "name", "json", "yaml"]
FORMATS: tuple[str, ...] = get_args(Format)

#: The text of Volcano's tools and of kubectl.
NOTHING = "No resources found"
#: Colours of phases and states.
_COLOURS = {
    **dict.fromkeys(("Running", "Completed", "Succeed", "Succeeded", "Open"), "green"),
    **dict.fromkeys(("Pending", "Inqueue", "Restarting", "Completing", "Terminating"), "yellow"),
    **dict.fromkeys(("Aborting", "Closing"), "yellow"),
    **dict.fromkeys(("Aborted", "Closed"), "magenta"),
    **dict.fromkeys(("Terminated", "Failed", "Unknown", "Error"), "red"),
    **dict.fromkeys(("CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull"), "red"),
}


class ApiObject(Protocol):
    """An object of Tutti's API."""

    @property
    def metadata(self) -> ObjectMeta: ...


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a table: its head, and the cell of an object."""

    title: str
    value: Callable[[Object], object]
    #: Fixed width; 0 for the longest cell and the table's gap.
    width: int = 0
    #: Whether only `-o wide` shows it.
    wide: bool = False
    #: Whether its values are phases, which have colours.
    coloured: bool = False


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a kind, and the space after those that have no fixed width."""

    columns: tuple[Column, ...]
    gap: int = 3
    #: Whether the head counts for the width of a column.
    heads_count: bool = True


class Table:
    """Formats objects as rows: the head once, and later rows at least as wide as earlier ones."""

    def __init__(self, layout: Layout, *, wide: bool = False) -> None:
        self._layout = layout
        self._columns = [each for each in layout.columns if wide or not each.wide]
        self._widths = [each.width for each in self._columns]
        self._headed = False

    def lines(self, objects: Iterable[Object]) -> list[str]:
        """The lines for these objects, preceded by the head the first time."""
        rows = [[_cell(column, obj) for column in self._columns] for obj in objects]
        self._grow(rows)
        heads = [] if self._headed else [self._line([each.title for each in self._columns])]
        self._headed = True
        return heads + [self._line(row, self._columns) for row in rows]

    def _grow(self, rows: Sequence[Sequence[str]]) -> None:
        layout = self._layout
        for index, column in enumerate(self._columns):
            longest = max((len(row[index]) for row in rows), default=0)
            if column.width:
                # The last column needs no space behind its cells.
                if index + 1 < len(self._columns):
                    longest = max(longest, len(column.title))
                needed = longest + 1 if longest >= column.width else 0
            else:
                head = len(column.title) if layout.heads_count or not rows else 0
                needed = max(longest, head) + layout.gap
            self._widths[index] = max(self._widths[index], needed)

    def _line(self, cells: Sequence[str], columns: Sequence[Column] = ()) -> str:
        padded = [cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True)]
        for index, column in enumerate(columns):
            if column.coloured and cells[index] in _COLOURS:
                padded[index] = click.style(padded[index], fg=_COLOURS[cells[index]])
        return "".join(padded)


def _cell(column: Column, obj: Object) -> str:
    value = column.value(obj)
    return "" if value is None else str(value)


def echo(line: str = "") -> None:
    """Print a line, in colour only on a terminal and unless NO_COLOR is set."""
    click.echo(line, color=False if os.environ.get("NO_COLOR") else None)


def echo_nothing() -> None:
    """Report an empty list: on standard error, as kubectl does, so that no program reads it as a
    name. Volcano's programs print it among their output.
    """
    if conventions().volcano_failures:
        echo(NOTHING)
    else:
        click.echo(NOTHING, err=True)


class Printer:
    """Prints the objects of one kind, at once or one by one."""

    def __init__(self, resource: Resource, layout: Layout, format_: Format) -> None:
        self._resource = resource
        self._format = format_
        self._table = Table(layout, wide=format_ == "wide")

    def all(self, objects: Sequence[Object]) -> None:
        if self._format in {"json", "yaml"}:
            items = [without_managed_fields(each) for each in objects]
            self._document({"apiVersion": "v1", "kind": "List", "items": items, "metadata": {}})
        elif objects:
            self.more(objects)
        else:
            echo_nothing()

    def one(self, obj: Object) -> None:
        if self._format in {"json", "yaml"}:
            self._document(without_managed_fields(obj))
        else:
            self.more([obj])

    def more(self, objects: Sequence[Object]) -> None:
        if self._format == "name":
            for each in objects:
                echo(reference(self._resource, name_of(each)))
        elif self._format in {"json", "yaml"}:
            for each in objects:
                if self._format == "yaml":
                    echo("---")
                self._document(without_managed_fields(each))
        else:
            for line in self._table.lines(objects):
                echo(line)

    def _document(self, document: Object) -> None:
        echo(as_json(document) if self._format == "json" else as_yaml(document))


def reference(resource: Resource, name: str) -> str:
    """`job.batch.volcano.sh/train`, as `kubectl -o name` prints it."""
    kind = resource.kind.lower()
    return f"{kind}.{resource.group}/{name}" if resource.group else f"{kind}/{name}"


def as_json(document: Object) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=4).decode()


def print_report(report: object, output: str, show: Callable[[], None]) -> None:
    """Print the result of a command with `report_flag`: as data, or as `show` does."""
    match output:
        case "json":
            click.echo(msgspec.json.format(msgspec.json.encode(report_data(report))).decode())
        case "yaml":
            click.echo(as_yaml(report_data(report)))
        case _:
            show()


def print_objects(
    resource: ServedResource,
    objects: Sequence[ApiObject],
    output: str,
    show: Callable[[], None],
) -> None:
    """Print objects of Tutti's API of one kind with `objects_flag`: as a list, by name, or as
    `show` does.
    """
    if output == "name":
        for obj in objects:
            click.echo(f"{resource.singular}.{GROUP}/{obj.metadata.name}")
        return
    listed = {
        "apiVersion": API_VERSION,
        "kind": f"{resource.kind}List",
        "metadata": {},
        "items": objects,
    }
    print_report(listed, output, show)


def as_yaml(document: Object) -> str:
    import yaml

    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True).rstrip("\n")
