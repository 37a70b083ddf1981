"""Finds the job plugins: the modules of this package with a function `build`, sorted by name."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

import msgspec

from shared import job_plugins
from shared.job_plugins.plugin import JobPlugin
from shared.kinds.job import Job

Build: TypeAlias = Callable[[Sequence[str], Job], JobPlugin]


class RegisteredPlugin(NamedTuple):
    """The declarations in a plugin's file."""

    build: Build
    #: Names of plugins that a Job gets together with this one.
    needs: tuple[str, ...]


@cache
def registered_plugins() -> Mapping[str, RegisteredPlugin]:
    """Every plugin, by its name in a Job."""
    plugins: dict[str, RegisteredPlugin] = {}
    for entry in sorted(pkgutil.iter_modules(job_plugins.__path__), key=lambda entry: entry.name):
        module = importlib.import_module(f"{job_plugins.__name__}.{entry.name}")
        build: Build | None = getattr(module, "build", None)
        if build is not None:
            needs: tuple[str, ...] = getattr(module, "NEEDS", ())
            plugins[entry.name] = RegisteredPlugin(build, needs)
    return plugins


def missing_plugins(names: Iterable[str]) -> list[str]:
    """The plugins that `names` need and do not contain, sorted."""
    named = set(names)
    known = registered_plugins()
    needed = {need for name in named if name in known for need in known[name].needs}
    return sorted(needed - named)


def with_needed_plugins(job: Job) -> Job:
    """The job with the missing plugins that its plugins need, without arguments."""
    missing = missing_plugins(job.spec.plugins)
    if not missing:
        return job
    plugins = {**job.spec.plugins, **dict.fromkeys(missing, ())}
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, plugins=plugins))


def plugins_of(job: Job) -> list[JobPlugin]:
    """The plugins of a job, sorted by name. Unknown names are skipped; the webhook refuses them."""
    known = registered_plugins()
    return [
        known[name].build(job.spec.plugins[name], job)
        for name in sorted(job.spec.plugins)
        if name in known
    ]
