"""Finds the job plugins: every module of this package with a `build`, in the order of names."""

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
    """What a plugin's file declares."""

    build: Build
    #: Names of plugins that a Job gets together with this one.
    needs: tuple[str, ...]


@cache
def registered_plugins() -> Mapping[str, RegisteredPlugin]:
    """Every plugin, by the name that Jobs give."""
    found: dict[str, RegisteredPlugin] = {}
    for entry in sorted(pkgutil.iter_modules(job_plugins.__path__), key=lambda entry: entry.name):
        module = importlib.import_module(f"{job_plugins.__name__}.{entry.name}")
        build: Build | None = getattr(module, "build", None)
        if build is not None:
            needs: tuple[str, ...] = getattr(module, "NEEDS", ())
            found[entry.name] = RegisteredPlugin(build, needs)
    return found


def missing_plugins(names: Iterable[str]) -> list[str]:
    """Plugins that these plugins need and that are not among them, sorted."""
    named = set(names)
    known = registered_plugins()
    needed = {need for name in named if name in known for need in known[name].needs}
    return sorted(needed - named)


def with_needed_plugins(job: Job) -> Job:
    """The job with the plugins that its plugins need, which get no arguments."""
    missing = missing_plugins(job.spec.plugins)
    if not missing:
        return job
    plugins = {**job.spec.plugins, **dict.fromkeys(missing, ())}
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, plugins=plugins))


def plugins_of(job: Job) -> list[JobPlugin]:
    """The plugins of a job, by name. Unknown names are left out: the job's webhook refuses them."""
    known = registered_plugins()
    return [
        known[name].build(job.spec.plugins[name], job)
        for name in sorted(job.spec.plugins)
        if name in known
    ]
