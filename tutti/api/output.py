"""Prints objects: as a table, by name, as JSON or as YAML."""

import os
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, get_args

import click
import msgspec

from shared.kube.resources import Resource
from tutti.api.objects import Object, name_of, without_managed_fields
from tutti.api.tables import Layout, Table

Format: TypeAlias = Literal["table", "wide", "name", "json", "yaml"]
FORMATS: tuple[str, ...] = get_args(Format)

#: The text of Volcano's tools and of kubectl.
NOTHING = "No resources found"


def echo(line: str = "") -> None:
    """Print a line, in colour only on a terminal and unless NO_COLOR is set."""
    click.echo(line, color=False if os.environ.get("NO_COLOR") else None)


class Printer:
    """Prints the objects of one kind, at once or one by one.

    Args:
        resource: Their kind.
        layout: Their table.
        format_: The format.
        out: Receives each line.
    """

    def __init__(
        self,
        resource: Resource,
        layout: Layout,
        format_: Format = "table",
        out: Callable[[str], None] = echo,
    ) -> None:
        self._resource = resource
        self._format = format_
        self._table = Table(layout, wide=format_ == "wide")
        self._out = out

    def all(self, objects: Sequence[Object]) -> None:
        if self._format in {"json", "yaml"}:
            items = [without_managed_fields(each) for each in objects]
            self._document({"apiVersion": "v1", "kind": "List", "items": items, "metadata": {}})
        elif objects:
            self.more(objects)
        else:
            self._out(NOTHING)

    def one(self, obj: Object) -> None:
        if self._format in {"json", "yaml"}:
            self._document(without_managed_fields(obj))
        else:
            self.more([obj])

    def more(self, objects: Sequence[Object]) -> None:
        if self._format == "name":
            for each in objects:
                self._out(reference(self._resource, name_of(each)))
        elif self._format in {"json", "yaml"}:
            for each in objects:
                if self._format == "yaml":
                    self._out("---")
                self._document(without_managed_fields(each))
        else:
            for line in self._table.lines(objects):
                self._out(line)

    def _document(self, document: Object) -> None:
        self._out(as_json(document) if self._format == "json" else as_yaml(document))


def reference(resource: Resource, name: str) -> str:
    """`job.batch.volcano.sh/train`, as `kubectl -o name` prints it."""
    kind = resource.kind.lower()
    return f"{kind}.{resource.group}/{name}" if resource.group else f"{kind}/{name}"


def as_json(document: Object) -> str:
    """Indented JSON."""
    return msgspec.json.format(msgspec.json.encode(document), indent=4).decode()


def echo_json(found: object) -> None:
    """Print a result of a command with `--output json`."""
    click.echo(msgspec.json.format(msgspec.json.encode(found)).decode())


def as_yaml(document: Object) -> str:
    import yaml

    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True).rstrip("\n")
