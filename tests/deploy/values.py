"""The chart's values as deploy/chart/values.yaml has them: each with the comment above it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

_VALUES: Final = Path(__file__).parents[2] / "deploy" / "chart" / "values.yaml"
#: Deeper than this a value is one, whatever it consists of.
_WHOLE: Final = frozenset(
    {
        "resources",
        "reloadResources",
        "labels",
        "metricsFrom",
        "podSecurityContext",
        "containerSecurityContext",
    }
)


def documented_values() -> Iterator[tuple[str, str, str]]:
    """Path, default and comment of every value, in the order of the file."""
    text = _VALUES.read_text("utf-8")
    comments = comments_of(text)
    for path, value in _leaves(yaml.safe_load(text), ""):
        default = "empty" if value in ("", {}, []) else f"`{_short(value)}`"
        yield f"`{path}`", default, comments.get(path, "").replace("|", "\\|")


def comments_of(text: str) -> dict[str, str]:
    """The comment above each key, by the key's path."""
    found: dict[str, str] = {}
    above: list[str] = []
    parents: list[tuple[int, str]] = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("#"):
            above.append(stripped.lstrip("# "))
            continue
        key, colon, _ = stripped.partition(":")
        if colon and not key.startswith("-"):
            depth = len(line) - len(line.lstrip())
            parents = [*(one for one in parents if one[0] < depth), (depth, key)]
            if above:
                found[".".join(name for _, name in parents)] = " ".join(above)
        above = []
    return found


def _leaves(values: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        path = f"{prefix}{name}"
        if isinstance(value, dict) and value and name not in _WHOLE:
            yield from _leaves(value, f"{path}.")
        else:
            yield path, value


def _short(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
