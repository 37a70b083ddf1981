"""What an object of the product still refers to, whatever its attributes are called.

For tests that show that a table is bounded, or that something is forgotten.
"""

from collections import Counter, deque
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
CONTAINERS = (dict, list, set, frozenset, tuple, deque)


def reachable(root: object, kind: type[T]) -> Iterator[T]:
    """All objects of one kind that are reachable through containers and objects of the product."""
    return (value for _, value in _walk(root) if isinstance(value, kind))


def largest(root: object) -> int:
    """The number of entries of the largest container that is reachable."""
    return max(len(value) for _, value in _walk(root) if isinstance(value, CONTAINERS))


def sizes(root: object) -> Counter[str]:
    """The number of entries of all containers that are reachable from an object, by path."""
    counts: Counter[str] = Counter()
    for path, value in _walk(root):
        if isinstance(value, CONTAINERS):
            counts[path] += len(value)
    return counts


def _walk(root: object) -> Iterator[tuple[str, object]]:
    seen: set[int] = set()
    left: list[tuple[str, Any]] = [("", root)]
    while left:
        path, value = left.pop()
        if id(value) in seen or isinstance(value, type | np.ndarray):
            continue
        seen.add(id(value))
        yield path, value
        if isinstance(value, CONTAINERS):
            items = [*value.keys(), *value.values()] if isinstance(value, dict) else list(value)
            left += [(f"{path}[]", item) for item in items]
        elif type(value).__module__.split(".")[0] in {"services", "shared"}:
            slots = [getattr(base, "__slots__", ()) for base in type(value).__mro__]
            names = {
                name for each in slots for name in ((each,) if isinstance(each, str) else each)
            }
            fields = {name: getattr(value, name) for name in names if hasattr(value, name)}
            fields |= getattr(value, "__dict__", {})
            left += [(f"{path}.{name}", field) for name, field in fields.items()]
        elif (owner := getattr(value, "__self__", None)) is not None:
            left.append((path, owner))
