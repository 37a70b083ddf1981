"""Finds the dialects: every module of this package that has a `NAME`."""

import importlib
import pkgutil
from functools import cache
from typing import cast

import shared.dialects
from shared.dialects.protocol import Dialect, Kind
from shared.kube.resources import Resource

_REQUIRED = ("NAME", "KINDS", "status", "validate")


@cache
def dialects() -> tuple[Dialect, ...]:
    """All dialects, sorted by name.

    Raises:
        TypeError: A file declares a NAME but is no dialect, or its NAME is not the file's.
    """
    found: list[Dialect] = []
    for entry in sorted(
        pkgutil.iter_modules(shared.dialects.__path__), key=lambda entry: entry.name
    ):
        module = importlib.import_module(f"{shared.dialects.__name__}.{entry.name}")
        if not hasattr(module, "NAME"):
            continue
        missing = [name for name in _REQUIRED if not hasattr(module, name)]
        if missing or entry.name != module.NAME:
            raise TypeError(
                f"dialect {entry.name}: NAME must be the file's name, "
                f"and {missing or 'nothing'} is missing"
            )
        found.append(cast("Dialect", module))
    return tuple(found)


def dialect(name: str) -> Dialect:
    """The dialect of that name. Raises KeyError when there is none."""
    return {found.NAME: found for found in dialects()}[name]


def kinds() -> tuple[Kind, ...]:
    """Every kind of every dialect, in the order of `dialects`."""
    return tuple(kind for found in dialects() for kind in found.KINDS)


def readers() -> dict[Resource, tuple[Kind, ...]]:
    """What each resource is read into, in the order of `dialects`."""
    found: dict[Resource, tuple[Kind, ...]] = {}
    for kind in kinds():
        found[kind.resource] = (*found.get(kind.resource, ()), kind)
    return found


def dialect_of(resource: Resource) -> Dialect | None:
    """The dialect that reads a resource, the first by name if there are two; None when none
    does.
    """
    for found in dialects():
        if any(kind.resource == resource for kind in found.KINDS):
            return found
    return None
