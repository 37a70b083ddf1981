"""docs/reference: commands, kinds and messages, made from the code that they are about.

To update the pages: `.venv/bin/python -m tests.documents.tables`.
"""

import ast
import enum
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import click
import msgspec

from shared.contracts import (
    cluster,
    decisions,
    observing,
    outcomes,
    pending_reasons,
    pod_reasons,
    questions,
    verdicts,
)
from shared.kinds.catalogue import CATALOGUE
from shared.kinds.fields import Description
from shared.model import objects
from shared.schemas.structural import BuiltInSchema, root_schema
from tutti.cli import main
from tutti.vcctl.command import vcctl

FOLDER: Final = Path(__file__).parents[2] / "docs" / "reference"
_MADE: Final = "<!-- Made from the code by `python -m tests.documents.tables`. -->\n"
#: The modules of messages, in the order in which a gang meets them.
_FAMILIES: Final = (cluster, decisions, outcomes, verdicts, questions, observing)
_ANSI: Final = re.compile(r"\x1b\[[0-9;]*m")


def pages() -> dict[Path, str]:
    """Every page of the reference, as it should be."""
    makers: dict[str, Callable[[], Iterable[str]]] = {
        "commands.md": _commands,
        "kinds.md": _kinds,
        "messages.md": _messages,
    }
    return {FOLDER / name: "".join(maker()) for name, maker in makers.items()}


def table_of(head: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> str:
    """A table of Markdown."""
    parts = [head, tuple("---" for _ in head), *lines]
    return "".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in parts
    )


# --- commands ---


def _commands() -> Iterator[str]:
    yield f"# Commands\n\n{_MADE}\n"
    yield (
        "The commands of `tutti`, as `--help` prints them, and of `vcctl`, with the flags that "
        "Volcano does not have ([compatibility](../compatibility.md#command-line)).\n"
    )
    yield from _command(main, ("tutti",), None)
    yield from _command(vcctl, ("vcctl",), None)


def _command(
    command: click.Command, path: tuple[str, ...], parent: click.Context | None
) -> Iterator[str]:
    context = click.Context(command, info_name=path[-1], parent=parent)
    words = " ".join(piece for piece in command.collect_usage_pieces(context))
    yield f"\n{'#' * min(len(path) + 1, 4)} {' '.join(path)}\n\n"
    yield f"`{' '.join(path)} {words}`\n\n" if words else ""
    yield _prose(command.help or "")
    options = [
        (f"`{found[0]}`", found[1])
        for found in (each.get_help_record(context) for each in command.get_params(context))
        if found is not None and not found[0].endswith("--help")
    ]
    if options:
        yield "\n" + table_of(("option", "what it does"), options)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                yield from _command(inner, (*path, name), context)


def _prose(text: str) -> str:
    """A help text as Markdown: click's marks for "leave as it is" become code blocks."""
    parts = []
    for paragraph in inspect.cleandoc(_ANSI.sub("", text)).split("\n\n"):
        kept = paragraph.startswith("\b\n")
        parts.append(f"```\n{paragraph[2:]}\n```" if kept else " ".join(paragraph.split()))
    return "\n\n".join(parts) + "\n"


# --- kinds ---


def _kinds() -> Iterator[str]:
    yield f"# Kinds\n\n{_MADE}\n"
    yield (
        "The fields of Tutti's CRDs (`deploy/crds`). Parts with a schema of Kubernetes (pod "
        "templates, claims, selectors) are marked.\n"
    )
    for kind in CATALOGUE:
        yield f"\n## {kind.resource.kind}, {kind.resource.api_version}\n\n{_about(kind)}\n\n"
        yield table_of(("field", "type", "what it is"), _fields(root_schema(kind.struct), ""))


def _about(kind: Description) -> str:
    parts = [" ".join((inspect.getdoc(kind.struct) or "").split("\n\n")[0].split())]
    parts.append("Namespaced." if kind.resource.namespaced else "Of the whole cluster.")
    if kind.short_names:
        parts.append(f"Short: {', '.join(f'`{name}`' for name in kind.short_names)}.")
    return " ".join(parts)


def _fields(schema: dict[str, Any], path: str) -> Iterator[tuple[str, ...]]:
    for name, inner in schema.get("properties", {}).items():
        if not path and name in ("apiVersion", "kind", "metadata"):
            continue
        at = f"{path}{name}"
        below = inner
        if inner.get("type") == "array":
            at, below = f"{at}[]", inner["items"]
        elif isinstance(inner.get("additionalProperties"), dict):
            at, below = f"{at}.*", inner["additionalProperties"]
        yield f"`{at}`", _type(below), _description(inner, below)
        if not isinstance(below, BuiltInSchema):
            yield from _fields(below, f"{at}.")


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(f"`{one}`" if one else "empty" for one in schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    return str(schema.get("format") or schema.get("type", "anything"))


def _description(outer: dict[str, Any], inner: dict[str, Any]) -> str:
    parts = [outer.get("description") or inner.get("description") or ""]
    if isinstance(inner, BuiltInSchema):
        parts.append("Kubernetes' own schema.")
    for key, word in (("default", "Default"), ("minimum", "At least"), ("maximum", "At most")):
        if key in inner:
            parts.append(f"{word} `{inner[key]}`.")
    return " ".join(one for one in parts if one)


# --- messages ---


def _messages() -> Iterator[str]:
    yield f"# Messages\n\n{_MADE}\n"
    yield (
        "The messages on NATS: msgpack of these structs (`shared/contracts`), with their streams, "
        "writers and readers. Readers ignore unknown fields. [Versions and support](../support.md) "
        "says which messages are stable.\n"
    )
    for module in (*_FAMILIES, objects):
        yield f"\n## {module.__name__.rpartition('.')[2]}\n\n{_text(module)}\n"
        for struct in _structs(module):
            yield f"\n### {struct.__name__}\n\n"
            tag = struct.__struct_config__.tag
            yield f"Tag `{tag}`. " if tag else ""
            yield "".join(f"Begins as `{one.__name__}`. " for one in _extended(struct))
            yield f"{_text(struct)}\n\n" if struct.__doc__ else "\n\n"
            yield table_of(("field", "type", "what it is"), _documented(struct))
    yield f"\n## pending_reasons\n\n{_text(pending_reasons)}\n\n"
    yield table_of(
        ("reason", "reason of its pods' condition", "what it is"),
        _pending_reasons(),
    )
    yield f"\n## pod_reasons\n\n{_text(pod_reasons)}\n\n**NewNodes**: "
    yield f"{_text(pod_reasons.NewNodes)}\n\n"
    yield table_of(("reason of the pods' condition", "new nodes"), _members(pod_reasons.NewNodes))


def _pending_reasons() -> Iterator[tuple[str, ...]]:
    for reason, comment in _members(pending_reasons.PendingReason):
        known = pending_reasons.PendingReason(reason.strip("`"))
        words = {pod_reasons.pod_reason(known, each) for each in pod_reasons.NewNodes}
        yield reason, f"`{words.pop()}`" if len(words) == 1 else "see `NewNodes`", comment


def _text(parts: object) -> str:
    return _prose(inspect.getdoc(parts) or "").strip()


def _structs(module: ModuleType) -> Iterator[type[msgspec.Struct]]:
    for value in vars(module).values():
        of_structs = isinstance(value, type) and issubclass(value, msgspec.Struct)
        if of_structs and value.__module__ == module.__name__:
            yield value


def _extended(struct: type[msgspec.Struct]) -> list[type[msgspec.Struct]]:
    """The structs whose fields it has beside its own."""
    bases = [one for one in struct.__bases__ if issubclass(one, msgspec.Struct)]
    return [one for one in bases if one.__struct_fields__]


def _members(enumeration: type[enum.StrEnum]) -> Iterator[tuple[str, ...]]:
    """Values of an enumeration, and the `#:` comment above each."""
    for field, comment in _commented(enumeration):
        if isinstance(field, ast.Assign):
            yield f"`{ast.literal_eval(field.value)}`", comment


def _documented(struct: type[msgspec.Struct]) -> Iterator[tuple[str, ...]]:
    """Fields as the wire names them, their types as written, and the `#:` comment above each."""
    wire_names = {field.name: field.encode_name for field in msgspec.structs.fields(struct)}
    for field, comment in _commented(struct):
        if isinstance(field, ast.AnnAssign):
            yield (
                f"`{wire_names[ast.unparse(field.target)]}`",
                f"`{ast.unparse(field.annotation)}`",
                comment,
            )


def _commented(of_class: type) -> Iterator[tuple[ast.stmt, str]]:
    """The statements of a class, and the `#:` comment above each."""
    lines = inspect.getsource(of_class).splitlines()
    (body,) = ast.parse("\n".join(lines)).body
    assert isinstance(body, ast.ClassDef)
    for field in body.body:
        comment: list[str] = []
        above = field.lineno - 2
        while lines[above].strip().startswith("#:"):
            comment.insert(0, lines[above].strip().removeprefix("#:").strip())
            above -= 1
        yield field, " ".join(comment)
