"""Finds the dialects: every module of this package that has a `DIALECT`, or `DIALECTS`."""

import importlib
import pkgutil
from functools import cache
from typing import Final

import shared.dialects
from shared.dialects.protocol import PRECEDENCE_DEFAULT, Dialect, Kind
from shared.kube.resources import Resource
from shared.model.objects import GROUP_NAME_SCOPE

#: The scheduler name of Tutti itself; the remaining ones belong to the dialects.
OWN_SCHEDULER: Final = "tutti"


@cache
def dialects() -> tuple[Dialect, ...]:
    """All dialects, sorted by name.

    Raises:
        TypeError: What a module declares is no `Dialect`, or has the name of another one.
    """
    by_name: dict[str, Dialect] = {}
    for entry in pkgutil.iter_modules(shared.dialects.__path__):
        module = importlib.import_module(f"{shared.dialects.__name__}.{entry.name}")
        single = (module.DIALECT,) if hasattr(module, "DIALECT") else ()
        for declared in (*getattr(module, "DIALECTS", ()), *single):
            if not isinstance(declared, Dialect) or declared.name in by_name:
                raise TypeError(f"{module.__name__}: {declared!r:.80} is no Dialect of a new name")
            by_name[declared.name] = declared
    return tuple(by_name[name] for name in sorted(by_name))


@cache
def by_precedence() -> tuple[Dialect, ...]:
    """All dialects, sorted by precedence."""
    return tuple(sorted(dialects(), key=lambda dialect: (dialect.precedence, dialect.name)))


def dialect(name: str) -> Dialect:
    """The dialect of that name. Raises KeyError when there is none."""
    return _by_name()[name]


def precedence_of(name: str) -> int:
    """`Dialect.precedence` of the dialect of that name; the default for an unknown name, which a
    newer watcher may have published.
    """
    known = _by_name().get(name)
    return PRECEDENCE_DEFAULT if known is None else known.precedence


def kinds() -> tuple[Kind, ...]:
    """Every kind of every dialect, in the order of `dialects`."""
    return tuple(kind for dialect in dialects() for kind in dialect.kinds)


def readers() -> dict[Resource, tuple[Kind, ...]]:
    """The kinds that each resource is read into, in the order of `dialects`."""
    kinds_of: dict[Resource, tuple[Kind, ...]] = {}
    for kind in kinds():
        kinds_of[kind.resource] = (*kinds_of.get(kind.resource, ()), kind)
    return kinds_of


@cache
def group_resources(scope: str | None = None) -> tuple[Resource, ...]:
    """The resources of the group objects that pods name, by the precedence of their dialects; with
    a scope, only those whose names belong to it.
    """
    resources = (
        kind.resource
        for dialect in by_precedence()
        for kind in dialect.kinds
        if kind.neutral == "podgroup"
        and not kind.claims_by_owner
        and not kind.of_groups
        and scope in {None, dialect.scope}
    )
    return tuple(dict.fromkeys(resources))


def scope_of(resource: Resource) -> str:
    """The scope of the names of a group resource (`Dialect.scope`)."""
    reader = dialect_of(resource)
    return GROUP_NAME_SCOPE if reader is None else reader.scope


@cache
def shared_resources() -> frozenset[Resource]:
    """The group resources of which other schedulers have groups, too (`Kind.shared`)."""
    return frozenset(kind.resource for kind in kinds() if kind.shared)


def dialect_of(resource: Resource) -> Dialect | None:
    """The dialect that reads a resource, the first by name if there are two; None when no dialect
    does.
    """
    for dialect in dialects():
        if any(kind.resource == resource for kind in dialect.kinds):
            return dialect
    return None


@cache
def scheduler_names() -> tuple[str, ...]:
    """The scheduler names that Tutti serves by default: its own, then those of the dialects,
    sorted.
    """
    names = {
        scheduler.name
        for dialect in dialects()
        for scheduler in dialect.schedulers
        if scheduler.by_default
    }
    return (OWN_SCHEDULER, *sorted(names - {OWN_SCHEDULER}))


@cache
def preferred_dialects() -> dict[str, frozenset[str]]:
    """Scheduler name -> names of the dialects whose group objects its pods prefer; only schedulers
    with such a preference.
    """
    preferred: dict[str, frozenset[str]] = {}
    for declared in dialects():
        for scheduler in declared.schedulers:
            if scheduler.prefers_own_groups:
                preferred[scheduler.name] = preferred.get(scheduler.name, frozenset()) | {
                    declared.name
                }
    return preferred


@cache
def dialects_watched_for_pods() -> frozenset[str]:
    """Names of the dialects with both references and kinds: whether their kinds are served decides
    how pods are read (`ReadingContext.served`).
    """
    return frozenset(dialect.name for dialect in dialects() if dialect.references and dialect.kinds)


def resources_read_before_pods() -> frozenset[Resource]:
    """The resources of the dialects in `dialects_watched_for_pods`."""
    return frozenset(
        kind.resource for name in dialects_watched_for_pods() for kind in dialect(name).kinds
    )


@cache
def _by_name() -> dict[str, Dialect]:
    return {dialect.name: dialect for dialect in dialects()}
