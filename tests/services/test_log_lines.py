"""Log lines name a gang by namespace and name, in every service."""

import ast
from collections.abc import Iterator
from pathlib import Path

import services
import shared
import tutti

_LOGGERS = frozenset({"logger", "log"})


def _lines(source: Path) -> Iterator[ast.Call]:
    """The calls that write a line."""
    for node in ast.walk(ast.parse(source.read_text())):
        called = node.func if isinstance(node, ast.Call) else None
        if (
            isinstance(node, ast.Call)
            and isinstance(called, ast.Attribute)
            and isinstance(called.value, ast.Name)
            and called.value.id in _LOGGERS
        ):
            yield node


def _shown(line: ast.Call) -> Iterator[str]:
    """The names and attributes that a line shows; fields beside the message do not count."""
    for argument in line.args:
        if isinstance(argument, ast.Name):
            yield argument.id
        elif isinstance(argument, ast.Attribute):
            yield argument.attr
            if isinstance(argument.value, ast.Name | ast.Attribute):
                owner = argument.value
                yield f"{owner.id if isinstance(owner, ast.Name) else owner.attr}.{argument.attr}"


def test_no_line_shows_the_id_of_a_gang_or_its_name_without_the_namespace() -> None:
    lines = 0
    for package in (services, shared, tutti):
        for source in Path(str(package.__file__)).parent.rglob("*.py"):
            for line in _lines(source):
                lines += 1
                shown = set(_shown(line))
                assert "gang_id" not in shown, f"{source}:{line.lineno} shows a hash"
                alone = "verdict.name" in shown and "verdict.namespace" not in shown
                assert not alone, f"{source}:{line.lineno} shows a name without namespace"
    assert lines > 50
